"""The rules of axe-core for accessibility, applied to a page in Chromium.

A test that uses them needs `pytestmark = [pytest.mark.slow, needs_axe, pytest.mark.xdist_group("chromium")]`.
"""

from pathlib import Path

import pytest

from chromium import PROGRAM, Tab

AXE = Path(__file__).parents[1] / ".axe/node_modules/axe-core/axe.min.js"
"""Where `make axe` installs it."""

needs_axe = pytest.mark.skipif(
    PROGRAM is None or not AXE.exists(), reason="this machine has no Chromium, or no axe-core: make axe"
)

# What fades or moves has ended when colours are compared. What moves for ever cannot be ended.
_RUN = """
document.getAnimations().forEach((each) => { try { each.finish() } catch { } });
axe.run().then(({ passes, violations }) => ({
    passed: passes.length,
    found: violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) =>
        `${id}: ${target.join(" ")}: ${failureSummary.split("\\n").slice(1).join(";").trim()}`)),
}))
"""


def violations(tab: Tab) -> list[str]:
    """Return what axe-core finds in the page as it is shown: the rule, the element, and what is wrong with it."""
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(f"{AXE.read_text(encoding='utf-8')}; null")
    result = tab.evaluate(_RUN)
    assert result["passed"], "no rule was applied"
    found: list[str] = result["found"]
    return found


def assert_accessible(tab: Tab) -> None:
    """No rule is violated in the light mode, nor in the dark one."""
    found = {}
    for mode in ("light", "dark"):
        tab.use_dark_mode(mode == "dark")
        found[mode] = violations(tab)
    tab.use_dark_mode(False)
    assert found == {"light": [], "dark": []}
