"""Each view by the rules of axe-core, on a screen and on a phone, without an error that a developer would see."""

from accessibility import needs_axe, violations_in_both_modes
from chromium import Tab
from user_input import UserInput

pytestmark = needs_axe

PIPELINE = "pipelines/two_spirals.py"
VIEWS = {
    "/": "[data-line]",
    "/runs/failed/graph": ".verdict",
    "/runs/failed/timeline": ".timeline .track",
    "/runs/run01/curves": "canvas",
    "/runs/failed/resources": ".bar.plain",
    "/runs/failed/logs": "[data-part]",
    "/compare?runs=run01,run02": "canvas",
    "/schedules": ".schedules tbody",
    "/designer": ".tiles button",
    f"/designer?path={PIPELINE}": ".react-flow__node",
}
"""Address of each view, and what it shows when it is ready."""


def test_each_view_is_accessible_and_fits_a_phone(studio: Tab) -> None:
    """The designer says on a phone that it needs more room."""
    origin = studio.evaluate("location.origin")
    found = {}
    for address, shown in VIEWS.items():
        studio.call("Page.navigate", url=origin + address)
        studio.wait_for(f"document.querySelector({shown!r})")
        found[address] = violations_in_both_modes(studio)
        studio.resize(390, 844)
        needs_room = "document.body.innerText.includes('The designer needs more room.')"
        studio.wait_for(needs_room if address.startswith("/designer") else f"document.querySelector({shown!r})")
        assert not studio.is_too_wide(), address
        studio.resize(1440, 900)
    user = UserInput(studio)
    user.click(".react-flow__node")
    found["form"] = violations_in_both_modes(studio)
    for button in ("Export", "Run"):
        user.click(f"//button[.='{button}']")
        studio.wait_for("document.querySelector('dialog[open]')")
        found[button] = violations_in_both_modes(studio)
        user.press("Escape")
    assert studio.errors == []
    assert {address: each for address, each in found.items() if each} == {}
