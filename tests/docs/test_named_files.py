"""What the documents name without a link is there: components, tests, pipelines."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
MAP = PROJECT / "docs" / "from-the-documents.md"


def test_a_file_that_the_map_names_is_there() -> None:
    named = re.findall(r"`((?:components|tests)/[\w./-]+)`", MAP.read_text(encoding="utf-8"))
    assert len(named) > 20
    assert [name for name in named if not (PROJECT / name).exists()] == []


def test_every_component_is_somebodys_counterpart() -> None:
    text = MAP.read_text(encoding="utf-8")
    trainings = {
        path.name for path in (PROJECT / "components").iterdir() if re.match("train_|finetune_|run_", path.name)
    }
    assert {name for name in trainings if f"components/{name}`" not in text} == set()
