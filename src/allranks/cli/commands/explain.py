"""`allranks explain`: explain a problem by its code, or a rule of `allranks check`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from allranks.cli.console import print_result
from allranks.cli.options import JsonOption, argument
from allranks.errors import InputError, Problem, Rule, did_you_mean

_NAME = "troubleshooting.md"
_SECTION = re.compile(r"^### ([\w-]+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def explain(
    code: Annotated[str | None, argument("CODE", "The code or rule in a message, such as missing-package.")] = None,
    json: JsonOption = False,
) -> None:
    """Explain a problem by the code or the rule in its message.

    Without a code: list all codes. docs/checks.md lists the rules of `allranks check`.
    """
    known = explanations()
    if code is None:
        width = max(map(len, known))
        lines = [f"{each.code:<{width}}  {each.summary}" for each in known.values()]
        print_result(json, list(known.values()), *lines)
        return
    if code not in known:
        known |= rule_explanations()
    if code not in known:
        fix = did_you_mean(code, known, "list all codes: allranks explain")
        raise InputError(Problem(f"code {code}", "it is unknown", "a code from a message", fix))
    print_result(json, known[code], known[code].text)


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
    """Return the page: in the wheel it is in the folder above, and in a checkout in docs/."""
    packaged = Path(__file__).parents[1] / _NAME
    return packaged if packaged.exists() else Path(__file__).resolve().parents[4] / "docs" / _NAME


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
