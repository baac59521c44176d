"""Compare histories and write the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import page
import trainings
from trainings import BadHistory, Row

__all__ = ["BadHistory", "compare"]


def compare(histories: Sequence[Path], title: str, output: Path) -> list[Row]:
    """Write comparison.html and comparison.json, and return their rows. Raise BadHistory before anything is written."""
    compared = trainings.read(histories)
    rows = trainings.rows(compared)
    content = page.html(title, compared, rows)
    figures = json.dumps([asdict(row) for row in rows], indent=2) + "\n"
    # Files in ./outputs become the run's artifacts, which Azure ML's studio shows.
    for folder in (output, Path("outputs")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "comparison.html").write_text(content, encoding="utf-8")
        (folder / "comparison.json").write_text(figures, encoding="utf-8")
    return rows
