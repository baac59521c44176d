"""Each view by the rules of axe-core, on a screen and on a phone, without an error that a developer would see."""

from accessibility import needs_axe, violations
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
    "/schedules": ".schedules .facts",
    "/designer": ".tiles button",
    f"/designer?path={PIPELINE}": ".react-flow__node",
}
"""Address of each view, and what it shows when it is ready."""


def test_each_view_is_accessible(studio: Tab) -> None:
    origin = studio.evaluate("location.origin")
    found = {}
    for address, shown in VIEWS.items():
        studio.call("Page.navigate", url=origin + address)
        studio.wait_for(f"document.querySelector({shown!r})")
        found[address] = in_both_modes(studio)
    assert studio.errors == []
    user = UserInput(studio)
    user.click(".react-flow__node")
    found["form"] = in_both_modes(studio)
    for button in ("Export", "Run"):
        user.click(f"//button[.='{button}']")
        studio.wait_for("document.querySelector('dialog[open]')")
        found[button] = in_both_modes(studio)
        user.press("Escape")
    assert {address: each for address, each in found.items() if each} == {}


def test_runs_can_be_read_on_a_phone(studio: Tab) -> None:
    """The designer says that it needs more room."""
    origin = studio.evaluate("location.origin")
    studio.resize(390, 844)
    try:
        for address, shown in VIEWS.items():
            is_designer = address.startswith("/designer")
            studio.call("Page.navigate", url=origin + address)
            studio.wait_for(f"document.querySelector({('main' if is_designer else shown)!r})")
            if is_designer:
                studio.wait_for("document.body.innerText.includes('The designer needs more room.')")
            assert not studio.is_too_wide(), address
    finally:
        studio.resize(1440, 900)


def in_both_modes(tab: Tab) -> list[str]:
    """Return what axe-core finds in the light mode and in the dark one."""
    found = []
    for mode in ("light", "dark"):
        tab.use_dark_mode(mode == "dark")
        found += [f"{mode}: {each}" for each in violations(tab)]
    return found
