"""Ranks that are started as new processes, and forked from a fork server."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from allranks.contract.commands import PythonProgram
from allranks.local.instances.kinds import INSTANCE_KINDS
from allranks.local.instances.programs import ForkServerSpec, Program
from allranks.local.instances.supervisor import Event, InstanceSpec, Supervisor

BOUND = 60


@dataclass(frozen=True)
class Ended:
    """What the ranks of a job left: their exit codes and their logs, in the order of the ranks."""

    codes: tuple[int | None, ...]
    logs: tuple[str, ...]


RunRanks = Callable[..., Ended]


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of every rank."""
    path = os.pathsep.join([os.path.dirname(sys.executable), "/usr/bin", "/bin"])
    return {"PATH": path, "HOME": os.environ.get("HOME", "/"), "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture
def run_ranks(tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> RunRanks:
    """Run a script on ranks of one instance.

    forked:    whether to fork them from a fork server
    modules:   that the fork server imports
    command:   the words after `python`; the default is the script's name and the arguments
    shared:    variables of all ranks
    """
    monkeypatch.delenv("PYTHONPATH", raising=False)

    def run(
        kind: str,
        source: str,
        *,
        forked: bool,
        modules: Sequence[str] = ("json", "multiprocessing", "logging", "random", "runpy"),
        program: PythonProgram | None = None,
        command: str = "python train.py",
        ranks: int = 1,
        shared: dict[str, str] | None = None,
    ) -> Ended:
        folder = tmp_path / "code"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(source, encoding="utf-8")
        common = environment | (shared or {})
        python = program or PythonProgram((), script="train.py")
        programs = [
            Program(
                f"rank {rank}",
                ("/bin/bash", "-c", command),
                common | {"RANK": str(rank)},
                str(folder),
                str(tmp_path / f"log_{rank}"),
                python if forked else None,
            )
            for rank in range(ranks)
        ]
        for each in programs:
            Path(each.log).write_text("", encoding="utf-8")
        spec = ForkServerSpec(sys.executable, tuple(sorted(common.items())), tuple(modules))
        return asyncio.run(asyncio.wait_for(_run(kind, programs, spec if forked else None, tmp_path), BOUND))

    return run


async def _run(kind: str, programs: Sequence[Program], spec: ForkServerSpec | None, folder: Path) -> Ended:
    supervisor = await Supervisor.start(kind)
    try:
        (instance,) = INSTANCE_KINDS[kind].instances([0])
        temporary = folder / "temporary"
        temporary.mkdir(exist_ok=True)
        on = InstanceSpec(
            0,
            instance.address,
            instance.hostname,
            ((instance.address, instance.hostname),),
            1 << 20,
            str(temporary),
            (str(folder), sys.prefix, str(Path(__file__).parents[3])),
        )
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        await supervisor.launch("agent", on, programs, events, spec)
        codes = dict.fromkeys(program.name for program in programs)
        while (event := await events.get()) is None or event.kind != "gone":
            assert event is not None
            assert event.kind != "failed", event.reason
            if event.kind == "exited":
                codes[event.program] = event.code
    finally:
        await supervisor.close()
    logs = tuple(Path(program.log).read_text(encoding="utf-8") for program in programs)
    return Ended(tuple(codes.values()), logs)
