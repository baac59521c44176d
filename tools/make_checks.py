"""Writes docs/reference/checks.md from the tables of rules.

python tools/make_checks.py
"""

from collections.abc import Iterable
from pathlib import Path

from allranks.errors import Level, Rule

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "checks.md"

HEAD = "# The rules of `allranks check`\n\nMade by `make docs`. [Check](../how-to/check.md) explains the levels.\n"
HEAD_PLAN = """
## Pipelines and jobs

These rules apply to each step of the compiled pipeline, at any depth. `allranks run` and `allranks submit` apply them
too. A component that is checked by itself is treated as a step that sets nothing: a launcher in its command, a size or
an image that it names get the same warnings and advice.

"""
HEAD_ENVIRONMENTS = """
## Environments

`allranks environments check` applies these rules to the environments of any project, at any depth of a folder: YAML
files with an image or a build context, and their conda files and Dockerfiles.

"""
HEAD_COMPONENTS = "\n## Components\n\n"
COLUMNS = ("rule", "level", "what it finds", "source", "fix")


def page() -> str:
    """Return the page."""
    parts = (HEAD, HEAD_COMPONENTS, table(Rule.all_about("component")), HEAD_PLAN, table(Rule.all_about("plan")))
    return "".join((*parts, HEAD_ENVIRONMENTS, table(Rule.all_about("environment"))))


def table(rules: Iterable[Rule]) -> str:
    """Return the rules as a table, errors first."""
    order = list(Level)
    rows = sorted(rules, key=lambda rule: order.index(rule.level))
    lines = [_line(COLUMNS), "|" + "---|" * len(COLUMNS)]
    lines += [_line((f"`{rule.code}`", _level(rule), rule.what, rule.source, rule.fix)) for rule in rows]
    return "\n".join(lines) + "\n"


def _level(rule: Rule) -> str:
    return f"{rule.level.value}{', can be ignored' if rule.accepted_by_sdk else ''}"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
