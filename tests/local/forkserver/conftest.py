"""Ranks that are started as new processes, and forked from a fork server."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rank_runs import MODULES, Ended, run_programs

from allranks.local.instances.supervisor import ForkServerSpec, Program

RunRanks = Callable[..., Ended]


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment of every rank."""
    path = os.pathsep.join([os.path.dirname(sys.executable), "/usr/bin", "/bin"])
    return {"PATH": path, "HOME": os.environ.get("HOME", "/"), "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture
def run_ranks(tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> RunRanks:
    """Run a script on ranks of one instance.

    forked:    whether to fork them from a fork server
    modules:   that the fork server imports
    command:   of each rank
    commands:  of the ranks, if they differ
    shared:    variables of all ranks
    """
    monkeypatch.delenv("PYTHONPATH", raising=False)

    def run(
        kind: str,
        source: str,
        *,
        forked: bool,
        modules: Sequence[str] = MODULES,
        command: str = "python train.py",
        ranks: int = 1,
        commands: Sequence[str] = (),
        shared: dict[str, str] | None = None,
    ) -> Ended:
        folder = tmp_path / "code"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(source, encoding="utf-8")
        common = environment | (shared or {})
        commands = commands or [command] * ranks
        programs = [
            Program(
                f"rank {rank}",
                ("/bin/bash", "-c", own),
                common | {"RANK": str(rank)},
                str(folder),
                str(tmp_path / f"log_{rank}"),
            )
            for rank, own in enumerate(commands)
        ]
        for each in programs:
            Path(each.log).write_text("", encoding="utf-8")
        spec = ForkServerSpec(sys.executable, tuple(sorted(common.items())), tuple(modules))
        return run_programs(kind, programs, spec if forked else None, tmp_path)

    return run
