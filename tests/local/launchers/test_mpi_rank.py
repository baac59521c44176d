"""The wrapper of a rank that mpirun starts."""

import json
import os
import resource
import signal
from pathlib import Path
from typing import NoReturn

import pytest

from allranks.local.launchers import mpi_rank


def test_a_signal_for_a_rank_that_has_just_ended_does_not_end_its_wrapper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(pid: int, options: int) -> tuple[int, int, resource.struct_rusage]:
        os.kill(os.getpid(), signal.SIGCONT)
        return pid, 3 << 8, resource.getrusage(resource.RUSAGE_SELF)

    def leave(code: int) -> NoReturn:
        raise SystemExit(code)

    forwarded = (signal.SIGTERM, signal.SIGINT, signal.SIGCONT)
    handlers = {number: signal.getsignal(number) for number in forwarded}
    no_process = 1 << 30
    monkeypatch.setattr(mpi_rank.processes, "start", lambda program: no_process)
    monkeypatch.setattr(os, "wait4", wait)
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
