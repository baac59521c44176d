"""Explanations of problems by their code: the sections of docs/troubleshooting.md, and the rules of docs/checks.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import Rule

_NAME = "troubleshooting.md"
_SECTION = re.compile(r"^### ([\w-]+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


@dataclass(frozen=True)
class Explanation:
    """A section of the page. code: its name. text: Markdown without links, which lead nowhere on a terminal"""

    code: str
    text: str

    @property
    def summary(self) -> str:
        """The first sentence."""
        return re.split(r"(?<=[.:])\s", " ".join(self.text.split()), maxsplit=1)[0].rstrip(".:")


def page() -> Path:
    """Return the page: in the wheel it is next to this file, and in a checkout in docs/."""
    packaged = Path(__file__).with_name(_NAME)
    return packaged if packaged.exists() else Path(__file__).resolve().parents[3] / "docs" / _NAME


def explanations() -> dict[str, Explanation]:
    """Return the sections by code, in the order of the page."""
    sections = _SECTION.findall(page().read_text(encoding="utf-8"))
    return {code: Explanation(code, _LINK.sub(r"\1", text).strip()) for code, text in sections}


def rule_explanations() -> dict[str, Explanation]:
    """Return the rules by code. Rules of components come first, then those of pipelines and environments."""
    from allranks.checks import component, environment, plan

    rules = (*component.catalogue(), *plan.catalogue(), *environment.catalogue(), *environment.own_catalogue())
    return {rule.code: Explanation(rule.code, _text(rule)) for rule in rules}


def _text(rule: Rule) -> str:
    lines = [rule.what, "", f"level   {rule.level.value}", f"fix     {rule.fix}", f"source  {rule.source}"]
    if rule.ignorable:
        lines.append(f"ignore  a comment in the line, or above all content: # allranks: ignore {rule.code}")
    return "\n".join(lines)
