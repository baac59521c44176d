"""The page about starting ranks has the tables of the code."""

from __future__ import annotations

from pathlib import Path

from allranks.local.forkserver.packages import PRELOADED

PAGE = Path(__file__).parents[2] / "docs" / "starting-ranks.md"


def test_the_tables_are_those_of_the_code() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if "| `" in line]
    shown = {name.strip("`"): text for name, text in rows}
    assert list(shown)[: len(PRELOADED)] == [*PRELOADED]
    for name, package in PRELOADED.items():
        modules, _, note = shown[name].partition(" (")
        assert modules == ", ".join(f"`{module}`" for module in package.modules)
        assert ("not worth" in note) is not package.heavy
        assert ("GPUs" in note) is package.looks_for_gpus
