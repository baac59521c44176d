"""The rules of `allranks check`, explained by their code as in docs/checks.md."""

from __future__ import annotations

from allranks.cli.troubleshooting import Explanation
from allranks.components.check import rules as component_rules
from allranks.environments import any_project
from allranks.plan import check as plan_check
from allranks.plan.check.rule import Level, Rule

_IGNORABLE = (Level.WARNING, Level.ADVICE)


def rule_explanations() -> dict[str, Explanation]:
    """Return the explanations by code. Rules of components come first, then those of pipelines and environments."""
    rules = (*component_rules.CATALOGUE, *plan_check.CATALOGUE, *any_project.CATALOGUE)
    return {rule.code: Explanation(rule.code, _text(rule)) for rule in rules}


def _text(rule: Rule) -> str:
    lines = [rule.what, "", f"level   {rule.level.value}", f"fix     {rule.fix}", f"source  {rule.source}"]
    if rule.level in _IGNORABLE:
        lines.append(f"ignore  a comment in the line, or above all content: # allranks: ignore {rule.code}")
    return "\n".join(lines)
