"""The wrapper of a rank that mpirun starts."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import NoReturn

import pytest

from allranks.local.launchers import mpi_rank


def test_a_signal_for_a_rank_that_has_just_ended_does_not_end_its_wrapper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait() -> dict[str, object]:
        os.kill(os.getpid(), signal.SIGCONT)
        return {"code": 3, "cpu": None, "memory": None}

    def leave(code: int) -> NoReturn:
        raise SystemExit(code)

    forwarded = (signal.SIGTERM, signal.SIGINT, signal.SIGCONT)
    handlers = {number: signal.getsignal(number) for number in forwarded}
    no_process = 1 << 30
    monkeypatch.setattr(mpi_rank, "_start", lambda program: (no_process, wait))
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    (tmp_path / "ranks.json").write_text('[{"environment": {}}]')
    try:
        with pytest.raises(SystemExit, match=r"^3$"):
            mpi_rank.main(str(tmp_path / "ranks.json"), str(tmp_path / "events.jsonl"))
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    events = [json.loads(line)["event"] for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert events == ["started", "exited"]
