"""The tables of figures in docs/reports/performance.md are those that their script writes."""

import json
import re
import runpy
from datetime import date
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
NUMBER = re.compile(r"\d+(\.\d+)?")


def test_the_table_is_the_script_s_but_for_the_numbers() -> None:
    """Where it is not: python tools/make_figures.py"""
    made = runpy.run_path(str(DOCS.parent / "tools" / "make_figures.py"))
    figures = {figure for _, _, names in made["ROWS"] for figure in names.values()}
    printed = "\n".join(json.dumps({"figure": figure, "ours": 1, "peer": 2}) for figure in figures)
    expected = made["table"](printed, date.today(), "MACHINE")
    shown = made["PERFORMANCE"].read_text(encoding="utf-8").partition(made["BEGIN"])[2].partition(made["END"])[0]
    rows, shown_rows = ([line for line in text.splitlines() if line[:1] == "|"] for text in (expected, shown))
    assert [NUMBER.sub("N", row) for row in rows] == [NUMBER.sub("N", row) for row in shown_rows]
    assert re.search(r"Measured on \d{4}-\d\d-\d\d, \d+ cores of ", shown)


def test_a_benchmark_s_log_becomes_its_table(tmp_path: Path) -> None:
    made = runpy.run_path(str(DOCS.parent / "tools" / "make_figures.py"))
    log = tmp_path / "launch.log"
    figure = {"figure": "1x2, s", "ours": 1.25, "peer": 5, "ratio": 0.25, "goal": "ratio <= 0.2", "holds": False}
    log.write_text(f"a line\n{json.dumps(figure)}\n")
    page = "\n".join(
        f"<!-- table: benchmarks/{name}.py -->\nold {name}\n<!-- end of the table -->" for name in ("launch", "steps")
    )
    made_page = made["with_tables"](f"{page}\n", [log], "MACHINE")
    assert "| 1x2, s | 1.25 | 5.00 | 0.250 | ratio ≤ 0.2, missed |" in made_page
    assert "old launch" not in made_page
    assert "old steps" in made_page


def test_every_table_of_the_page_about_performance_is_of_a_benchmark() -> None:
    made = runpy.run_path(str(DOCS.parent / "tools" / "make_figures.py"))
    blocks = made["BLOCK"].findall(made["PERFORMANCE"].read_text(encoding="utf-8"))
    assert blocks
    for _, name, _ in blocks:
        assert (DOCS.parent / "benchmarks" / f"{name}.py").is_file()
