"""The table of figures in the README is one that its script writes."""

from __future__ import annotations

import json
import re
import runpy
from datetime import date
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
NUMBER = re.compile(r"\d+(\.\d+)?")


def test_the_table_is_the_script_s_but_for_the_numbers() -> None:
    """Where it is not: python docs/make_figures.py"""
    made = runpy.run_path(str(DOCS / "make_figures.py"))
    figures = {figure for _, _, names in made["ROWS"] for figure in names.values()}
    printed = "\n".join(json.dumps({"figure": figure, "ours": 1, "peer": 2}) for figure in figures)
    expected = made["table"](printed, date.today(), "MACHINE")
    shown = made["README"].read_text(encoding="utf-8").partition(made["BEGIN"])[2].partition(made["END"])[0]
    rows, shown_rows = ([line for line in text.splitlines() if line[:1] == "|"] for text in (expected, shown))
    assert [NUMBER.sub("N", row) for row in rows] == [NUMBER.sub("N", row) for row in shown_rows]
    assert re.search(r"Measured on \d{4}-\d\d-\d\d, \d+ cores of ", shown)
