"""The sections of docs/troubleshooting.md, which explain problems by their code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

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
