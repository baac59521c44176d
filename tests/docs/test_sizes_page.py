"""The page of sizes is what the table says."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_of_this_table() -> None:
    """Where it is not: python docs/make_sizes.py"""
    made = runpy.run_path(str(DOCS / "make_sizes.py"))
    assert (DOCS / "sizes.md").read_text(encoding="utf-8") == made["page"]()
