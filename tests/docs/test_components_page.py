"""The page of components is what the specs say."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_table_is_of_these_components() -> None:
    """Where it is not: python docs/make_components.py"""
    made = runpy.run_path(str(DOCS / "make_components.py"))
    assert (DOCS / "components.md").read_text(encoding="utf-8") == made["page"]()
