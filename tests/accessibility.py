"""The rules of axe-core for accessibility, applied to a page in Chromium.

A test that uses them needs `pytestmark = [pytest.mark.slow, needs_axe, pytest.mark.xdist_group("chromium")]`.
"""

import json
from pathlib import Path

import pytest

from chromium import PROGRAM, Tab

AXE = Path(__file__).parents[1] / ".axe/node_modules/axe-core/axe.min.js"
"""Where `make axe` installs it."""

needs_axe = pytest.mark.skipif(
    PROGRAM is None or not AXE.exists(), reason="this machine has no Chromium, or no axe-core: make axe"
)

_OF_COLOURS = ("color-contrast", "link-in-text-block")

# What fades or moves has ended when colours are compared. What moves for ever cannot be ended.
_RUN = """
document.getAnimations().forEach((each) => { try { each.finish() } catch { } });
axe.run(OPTIONS).then(({ passes, violations }) => ({
    passed: passes.length,
    found: violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) =>
        `${id}: ${target.join(" ")}: ${failureSummary.split("\\n").slice(1).join(";").trim()}`)),
}))
"""


def violations(tab: Tab, *rules: str) -> list[str]:
    """Return what axe-core finds in the page as it is shown: the rule, the element, and what is wrong with it.

    rules: those that are applied; default: all that axe-core applies by itself
    """
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(f"{AXE.read_text(encoding='utf-8')}; null")
    options = {"runOnly": rules} if rules else {}
    result = tab.evaluate(_RUN.replace("OPTIONS", json.dumps(options)))
    assert result["passed"], "no rule was applied"
    found: list[str] = result["found"]
    return found


def violations_in_both_modes(tab: Tab) -> list[str]:
    """Return what axe-core finds in the light mode, and what its rules of colours find in the dark one."""
    found = violations(tab)
    tab.use_dark_mode(True)
    found += [f"dark: {each}" for each in violations(tab, *_OF_COLOURS)]
    tab.use_dark_mode(False)
    return found


def assert_accessible(tab: Tab) -> None:
    """No rule is violated, in neither mode."""
    assert violations_in_both_modes(tab) == []
