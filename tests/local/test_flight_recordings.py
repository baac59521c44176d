"""The files in which ranks tell their last collectives."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.local import flight_recordings
from allranks.local.forkserver.flight_recorder import RECORDING

Order = Callable[[list[str]], list[str]]


@pytest.mark.parametrize("order", [sorted, lambda names: sorted(names, reverse=True)])
def test_they_are_in_the_order_of_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Order) -> None:
    """Whatever the order of their folder: what has changed its place between two looks seems to make progress."""
    reports = {rank: tmp_path / f"rank_{rank}.jsonl" for rank in range(3)}
    for rank, report in reports.items():
        Path(f"{report}.{rank}{RECORDING}").write_text('{"entries": []}')
    names = order(os.listdir(tmp_path))
    monkeypatch.setattr(os, "listdir", lambda _: names)
    assert [recording.rank for recording in flight_recordings.read(reports)] == [0, 1, 2]
