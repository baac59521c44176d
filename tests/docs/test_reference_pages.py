"""The reference pages are what the help and the docstrings say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["api", "cli"])
def test_a_page_is_up_to_date(page: str) -> None:
    """If it is not: make docs"""
    made = runpy.run_path(str(DOCS / f"make_{page}.py"))
    assert (DOCS / f"reference/{page}.md").read_text(encoding="utf-8") == made["page"]()
