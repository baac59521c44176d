"""Run a graph in a scope: each node starts when the nodes that it needs have ended, with the runner of its kind.

Nodes downstream of a node that did not complete are handled as on Azure ML ("CLI (v2) pipeline job YAML schema"). A
node that needs the output of a skipped node is skipped too, unless the input is optional; then the input is dropped. A
node that needs a failed node does not start. All others continue, unless the pipeline's `continue_on_step_failure` is
false.
"""

import asyncio
import contextlib
import errno
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from allranks.history import records
from allranks.history.node_records import iteration_record, node_record
from allranks.history.records import RunRecord, Status, StepRecord, Verdict
from allranks.local.attempt.runner import CommandRunner
from allranks.local.run_context import RunContext
from allranks.local.scope import Scope
from allranks.local.selection import Mode
from allranks.local.slots import Slots, WithdrawnError
from allranks.plan.graph import Graph, Node, Step, Sweep
from allranks.plan.ports import needed_nodes
from allranks.plan.walk import is_within

BRANCH = "branch"
"""The key of a condition's decision: True or False."""

_log = logging.getLogger(__name__)

NodeRunner = Callable[["Executor", Scope, Any, StepRecord], Awaitable[None]]
"""Runs a node of one kind after all nodes that it needs have ended. Sets the record's status and outputs."""


class Executor:
    """One execution of a plan.

    runners:   the runner of each kind of node, by its class
    steps:     runs the commands of steps
    decisions: the decisions of nodes from before the run was resumed
    stopped:   whether no more nodes may start
    """

    def __init__(
        self,
        context: RunContext,
        runners: Mapping[type[Any], NodeRunner],
        steps: CommandRunner,
        slots: Slots,
        decisions: Mapping[tuple[str, str], str] = MappingProxyType({}),
    ) -> None:
        self.recorder = context.recorder
        self.stopped = False
        self._context = context
        self._modes = context.modes
        self._runners = runners
        self.steps = steps
        self._slots = slots
        self._decisions = dict(decisions)
        self._stopped_by_failure = False
        self._canceled: set[str] = set()
        self._folder = Path(context.run.folder)
        # Records of an earlier execution, by path. This execution may not reach all of them.
        self._earlier = {record.name: record for record in context.run.steps}

    def stop(self) -> None:
        """Start no more nodes. Running steps are not affected."""
        self.stopped, self._stopped_by_failure = True, False
        self._slots.withdraw(lambda _: True)

    async def cancel(self, path: str) -> None:
        """Cancel a node and everything inside it. Nodes that need it do not start; the rest of the run continues."""
        self._canceled.add(path)
        self._slots.withdraw(self.is_canceled)
        await self.steps.cancel(path)

    async def run_graph(self, scope: Scope) -> Status:
        """Run every node of a graph that can run.

        Return Failed if a node failed, Canceled if a node was canceled or did not start, else Completed. Nodes that are
        excluded do not count.
        """
        graph = scope.graph
        needs = {node.name: [name for name in graph.needs(node) if name in graph.by_name] for node in graph.nodes}
        for node in graph.nodes:
            self._prepare(scope, node, needs[node.name])
        waiting = {name: len(needed) for name, needed in needs.items()}
        ready = deque(name for name, count in waiting.items() if not count)
        ended: asyncio.Queue[str] = asyncio.Queue()
        tasks: dict[str, asyncio.Task[None]] = {}
        try:
            while ready or tasks:
                while ready:
                    name = ready.popleft()
                    task = asyncio.create_task(self._run_node(scope, graph.by_name[name]))
                    tasks[name] = task
                    task.add_done_callback(lambda _, name=name: ended.put_nowait(name))  # type: ignore[misc]
                name = await ended.get()
                await tasks.pop(name)  # raises an error that ends the whole run
                for follower in graph.followers.get(name, ()):
                    waiting[follower.name] -= 1
                    if not waiting[follower.name]:
                        ready.append(follower.name)
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
        states = {
            scope.records[node.name].status
            for node in graph.nodes
            if self._modes.at(scope.path_of(node)) is not Mode.EXCLUDED
        }
        if Status.FAILED in states:
            return Status.FAILED
        return Status.COMPLETED if states <= {Status.COMPLETED, Status.SKIPPED} else Status.CANCELED

    async def run_step(self, scope: Scope, step: Step, record: StepRecord) -> None:
        """Run a step's command, with retries, or reuse an earlier result, which needs no slots."""
        if await self.steps.reuse(scope, step, record, self._modes.at(record.name)):
            return
        if not (self.stopped or self.is_canceled(record.name)):
            with contextlib.suppress(WithdrawnError):
                async with self._slots.acquire(step.ranks, self._context.gpus_of(step), record.name) as share:
                    for retries_left in range(self._context.options.retries, -1, -1):
                        if self.stopped or self.is_canceled(record.name):
                            break
                        await self.steps.attempt(scope, step, record, share)
                        if record.status is not Status.FAILED:
                            break
                        if retries_left and not self.stopped:
                            noun = "retry" if retries_left == 1 else "retries"
                            self.recorder.note(record, f"failed, retrying ({retries_left} {noun} left)")
                            record.attempt += 1
        if record.status is Status.NOT_STARTED and self.is_canceled(record.name):
            record.status = Status.CANCELED
            self.recorder.changed(record)

    def _register(self, node: Step | Sweep, record: StepRecord) -> None:
        """Register the outputs of a completed node that have the name of an asset."""
        for port in node.outputs:
            if port.asset and record.status is Status.COMPLETED:
                kind = "model" if port.type.endswith("_model") else "data"
                self.recorder.register(record, port.name, kind, port.asset)

    def is_canceled(self, path: str) -> bool:
        """Return whether a node or one around it has been canceled."""
        return any(is_within(path, canceled) for canceled in self._canceled)

    def at_once(self, step: Step) -> int:
        """Return the number of steps with the layout of this one that the machine executes concurrently."""
        return self._slots.at_once(step.ranks, self._context.gpus_of(step))

    def iteration(self, loop: StepRecord, label: str, graph: Graph) -> tuple[StepRecord, Scope]:
        """Return the record and scope of one iteration of a loop. A resumed run's iteration keeps its record."""
        path = f"{loop.name}[{label}]"
        record = self._earlier.get(path)
        if record is None:
            record = iteration_record(path, label, self._folder)
            self.recorder.added(record)
        return record, Scope(graph, f"{path}.")

    def decision(self, path: str, key: str) -> str | None:
        """Return a node's decision; None if it has not decided."""
        return self._decisions.get((path, key))

    def decide(self, path: str, key: str, value: str) -> None:
        """Save a node's decision before it takes effect."""
        if self._decisions.get((path, key)) != value:
            self._decisions[path, key] = value
            self.recorder.decided(path, key, value)

    def _prepare(self, scope: Scope, node: Node, needs: list[str]) -> None:
        path = scope.path_of(node)
        record = self._earlier.get(path)
        if record is None:
            fresh = node_record(node, path, (f"{scope.path}{name}" for name in needs), self._folder)
            record = initial_record(fresh, self._context.earlier)
            self.recorder.added(record)
        scope.records[node.name] = record

    async def _run_node(self, scope: Scope, node: Node) -> None:
        record = scope.records[node.name]
        if record.status.ended:
            return
        try:
            outcome = self._readiness(scope, node)
            if outcome is None:
                await self._runners[type(node)](self, scope, node, record)
                if isinstance(node, (Step, Sweep)):
                    self._register(node, record)
            elif outcome is not record.status:
                record.status = outcome
                self.recorder.changed(record)
        except Exception as error:
            _log.exception("node failed", extra={"node": record.name})
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise  # nothing more can be saved
            record.status = Status.FAILED
            record.verdict = Verdict(record.name, f"{type(error).__name__}: {error}".rstrip(": "))
            self.recorder.changed(record)
        _log.info("node ended", extra={"node": record.name, "status": record.status.value})
        ends_run = not (self._context.plan.continue_on_step_failure or scope.tolerates_failures)
        if record.status is Status.FAILED and ends_run and not self.stopped:
            self.stop()
            self._stopped_by_failure = True
            await self.steps.stop()

    def _readiness(self, scope: Scope, node: Node) -> Status | None:
        """Return None if the node may run now, else the status that follows from the nodes that it needs."""
        if self.is_canceled(scope.path_of(node)):
            return Status.CANCELED
        is_last = node.name == scope.graph.last
        if is_last and self._stopped_by_failure:
            self.stopped = False  # this node is the last one
        if self.stopped or self._modes.at(scope.path_of(node)) is Mode.EXCLUDED:
            return Status.NOT_STARTED
        if is_last:
            return None
        records = scope.records
        for name, expected in scope.graph.conditions.get(node.name, ()):
            condition = records[name]
            if condition.status is Status.SKIPPED:
                return Status.SKIPPED
            if condition.status is not Status.COMPLETED:
                return Status.NOT_STARTED
            if self.decision(condition.name, BRANCH) != str(expected):
                return Status.SKIPPED
        needed = [records[name].status for name in scope.graph.needs(node) if name in records]
        if any(status not in (Status.COMPLETED, Status.SKIPPED) for status in needed):
            return Status.NOT_STARTED
        if Status.SKIPPED not in needed:
            return None
        dropped = {name for port in node.inputs if port.optional for name in needed_nodes([port.value])}
        required = {name for port in node.inputs if not port.optional for name in needed_nodes([port.value])}
        others = set(needed_nodes(node.values())) - dropped - required
        is_lost = any(records[name].status is Status.SKIPPED for name in required | others if name in records)
        return Status.SKIPPED if is_lost else None


def initial_record(fresh: StepRecord, earlier: RunRecord | None) -> StepRecord:
    """Return the initial record of a node. If the node was in the run before, the count of its attempts continues.

    earlier: the run as it was before it continued with the latest code; None for any other run

    The outputs of a completed step are never overwritten, because other runs may reuse them: its next attempt has its
    own folder. A step that did not complete starts again with its files in place, as after an eviction.
    """
    before = None if earlier is None else earlier.find(fresh.name)
    if before is None or before.kind != "command" or not before.ranks:
        return fresh
    attempt = before.attempt + 1
    has_result = before.status is Status.COMPLETED
    folder = f"{fresh.folder}@{attempt}" if has_result or before.reused_from else before.folder
    attempts = records.attempts_of(before)
    return replace(fresh, attempt=attempt, folder=folder, metrics=before.metrics, key=before.key, attempts=attempts)
