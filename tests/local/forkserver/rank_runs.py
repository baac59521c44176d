"""Run the ranks of a test on one instance, as new processes or forked from a fork server."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from allranks.local.forkserver import shims
from allranks.local.instances.supervisor import INSTANCE_KINDS, Event, ForkServerSpec, InstanceSpec, Program, Supervisor

BOUND = 60
MODULES = ("json", "multiprocessing", "logging", "random", "runpy")
"""What a fork server imports by default."""


@dataclass(frozen=True)
class Ended:
    """What the ranks of a job left: their exit codes and their logs, in the order of the ranks."""

    codes: tuple[int | None, ...]
    logs: tuple[str, ...]


def run_programs(kind: str, programs: Sequence[Program], spec: ForkServerSpec | None, folder: Path) -> Ended:
    """Run programs, which are in the folder, on one instance. spec: the fork server; None: they start cold"""
    if spec is not None:
        path = shims.write(folder / "forks", Path(spec.interpreter))
        programs = [
            replace(each, environment={**each.environment, "PATH": f"{path}:{each.environment['PATH']}"})
            for each in programs
        ]
    return asyncio.run(asyncio.wait_for(_run(kind, programs, spec, folder), BOUND))


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
            forks=str(folder / "forks") if spec else "",
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
