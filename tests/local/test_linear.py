"""Graphs of many nodes: the work for one node does not grow with their number."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from allranks.history.observer import Observer
from allranks.history.recorder import RunRecorder
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.history.store import Store
from allranks.local.executor import Executor
from allranks.local.nodes import RUNNERS
from allranks.local.options import Options
from allranks.local.run_context import RunContext
from allranks.local.scope import Scope
from allranks.local.selection import Mode
from allranks.local.slots import Share, SharedLocks, Slots
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace


def operations(action: Callable[[], object]) -> int:
    """How many bytecode operations of allranks an action takes."""
    done = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal done
        if event == "call" and "allranks" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        done += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return done


class Instant:
    """Completes each step at once."""

    async def reuse(self, scope: Scope, step: Step, record: StepRecord, mode: Mode) -> bool:
        return False

    async def attempt(self, scope: Scope, step: Step, record: StepRecord, share: Share) -> None:
        await asyncio.sleep(0)
        record.status = Status.COMPLETED

    async def cancel(self, path: str) -> None:
        pass

    async def stop(self) -> None:
        pass


def executed(count: int, chained: bool, folder: Path) -> int:
    folder.mkdir()
    after = (lambda number: (f"s{number - 1}",) if number else ()) if chained else (lambda _: ())
    graph = Graph(tuple(Step(f"s{number}", "true", after=after(number)) for number in range(count)))
    run = RunRecord("r", "p", "p", "", "loopback", folder=str(folder))
    with Store(folder / "runs.db") as store:
        store.add_run(run, "{}")

        async def scenario() -> Status:
            recorder = RunRecorder(run, store, Observer())
            context = RunContext(Plan("p", graph), run, Workspace(folder), Options(), recorder)
            executor = Executor(context, RUNNERS, Instant(), Slots(1, locks=SharedLocks(folder / "slots")))
            return await executor.run_graph(Scope(graph))

        found = operations(lambda: asyncio.run(scenario()))
    assert all(step.status is Status.COMPLETED for step in run.steps)
    return found


@pytest.mark.parametrize("chained", [True, False])
def test_a_graph_of_many_steps(chained: bool, tmp_path: Path) -> None:
    few, many = (executed(count, chained, tmp_path / str(count)) for count in (100, 400))
    assert many < 4.4 * few
