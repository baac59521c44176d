"""Runs a graph by the executor alone: its steps are run by a fake, without processes."""

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path

from allranks.history.observer import Observer
from allranks.history.recorder import RunRecorder
from allranks.history.records import OutputRecord, Point, RunRecord, Status, StepRecord
from allranks.history.store import Store
from allranks.local.executor import Executor
from allranks.local.nodes import RUNNERS
from allranks.local.nodes.sweep import finished_trials
from allranks.local.options import Options
from allranks.local.run_context import RunContext
from allranks.local.scope import Scope
from allranks.local.selection import Mode
from allranks.local.slots import Share, SharedLocks, Slots
from allranks.plan.graph import Graph, Node, Plan, Step
from allranks.plan.ports import GraphInput, NodeOutput
from allranks.plan.walk import is_within
from allranks.workspace import Workspace


class Trial:
    """Runs a graph whose steps do nothing but end as they are told.

    ends:   by path, the state of each try; Completed if it says nothing
    writes: by path, the text of every primitive output of the step
    logs:   by path, the values that the step logs of each metric
    holds:  paths of steps that run until they are canceled
    """

    def __init__(
        self,
        folder: Path,
        *nodes: Node,
        ends: dict[str, list[Status]] | None = None,
        writes: dict[str, str] | None = None,
        inputs: dict[str, str] | None = None,
        logs: dict[str, dict[str, list[float]]] | None = None,
        holds: Collection[str] = (),
        slots: int = 8,
        retries: int = 0,
        go_on: bool = True,
    ) -> None:
        self.graph = Graph(nodes)
        self.store = Store(folder / "trial.db")
        self.run = RunRecord("r", "p", "p", "", "loopback", folder=str(folder))
        self.store.add_run(self.run, "{}")
        self.ends, self.writes, self.inputs = ends or {}, writes or {}, inputs or {}
        self.logs, self.holds = logs or {}, {path: asyncio.Event() for path in holds}
        self.tries: list[str] = []
        self.given: dict[str, dict[str, str]] = {}
        self.at_once: list[frozenset[str]] = []
        self.halted = False
        self._now: set[str] = set()
        self._slots = Slots(slots, locks=SharedLocks(folder / "slots"))
        self._retries, self._go_on = retries, go_on
        self.executor = self.again()

    def again(self) -> Executor:
        """An executor that goes on with what the last one has saved, as `resume` does."""
        settled = finished_trials(self.run.steps, self.store.decisions("r"))
        for record in self.run.steps:
            if record.status not in (Status.COMPLETED, Status.SKIPPED) and record.name not in settled:
                record.status = Status.NOT_STARTED
        plan = Plan("p", self.graph, continue_on_step_failure=self._go_on)
        recorder = RunRecorder(self.run, self.store, Observer())
        context = RunContext(plan, self.run, Workspace(Path(self.run.folder)), Options(retries=self._retries), recorder)
        self.executor = Executor(context, RUNNERS, self, self._slots, self.store.decisions("r"))
        return self.executor

    async def reuse(self, scope: Scope, step: Step, record: StepRecord, mode: Mode) -> bool:
        return False

    async def attempt(self, scope: Scope, step: Step, record: StepRecord, share: Share) -> None:
        path = record.name
        self.tries.append(path)
        self._now.add(path)
        self.at_once.append(frozenset(self._now))
        self.given[path] = {
            port.name: text
            for port in step.inputs
            if isinstance(port.value, (GraphInput, NodeOutput)) and (text := scope.lookup(port.value)) is not None
        }
        for name, values in self.logs.get(path, {}).items():
            record.metrics[name] = [Point(step, value, 0.0) for step, value in enumerate(values)]
        record.status = Status.RUNNING
        for _ in range(3):
            await asyncio.sleep(0)
        if path in self.holds:
            await self.holds[path].wait()
            self.ends.setdefault(path, []).append(Status.CANCELED)
        self._now.discard(path)
        told = self.ends.get(path)
        record.status = told.pop(0) if told else Status.COMPLETED
        if record.status is Status.COMPLETED:
            record.outputs = [
                OutputRecord(port.name, port.type, f"/{path}/{port.name}", self.writes.get(path))
                for port in step.outputs
            ]

    async def cancel(self, path: str) -> None:
        for held, event in self.holds.items():
            if is_within(held, path):
                event.set()

    async def curve(self, record: StepRecord, metric: str) -> list[Point]:
        return record.metrics.get(metric, [])

    async def stop(self) -> None:
        self.halted = True

    def execute(self) -> Status:
        self.run.status = asyncio.run(self.executor.run_graph(Scope(self.graph, "", self.inputs)))
        return self.run.status

    def states(self) -> dict[str, Status]:
        return {record.name: record.status for record in self.run.steps}


Trials = Callable[..., Trial]
