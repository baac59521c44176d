"""The interface between the runners of nodes and the execution of their run; and the runners of pipeline components,
of if_else nodes, and of nodes whose outputs come from a folder."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from allranks.history.recorder import RunRecorder
from allranks.history.records import Point, Status, StepRecord, Verdict
from allranks.local.attempt import collect
from allranks.local.scope import Scope
from allranks.plan import values
from allranks.plan.graph import Condition, Graph, Pipeline, StandIn, Step
from allranks.plan.values import graph_output_paths


class Execution(Protocol):
    """One execution of a plan. stopped: whether no more nodes may start"""

    recorder: RunRecorder
    stopped: bool

    async def run_step(self, scope: Scope, step: Step, record: StepRecord) -> None:
        """Run a step's command, or reuse an earlier result. Set the record's status."""

    async def run_graph(self, scope: Scope) -> Status:
        """Run every node of a graph that can run. Return the resulting status."""

    def iteration(self, loop: StepRecord, label: str, graph: Graph) -> tuple[StepRecord, Scope]:
        """Return the record and scope of one iteration of a loop. A resumed run's iteration keeps its record."""

    def at_once(self, step: Step) -> int:
        """Return the number of steps with the layout of this one that the machine executes concurrently."""

    def is_canceled(self, path: str) -> bool:
        """Return whether a user or another node has canceled a node or one around it."""

    async def cancel(self, path: str) -> None:
        """Cancel a node and everything inside it."""

    async def curve(self, record: StepRecord, metric: str) -> Sequence[Point]:
        """Return the values of a metric that a running step has logged so far."""

    def decision(self, path: str, key: str) -> str | None:
        """Return a node's decision; None if it has not decided."""

    def decide(self, path: str, key: str, value: str) -> None:
        """Save a node's decision before it takes effect."""


NodeRunner = Callable[[Execution, Scope, Any, StepRecord], Awaitable[None]]
"""Runs a node of one kind after all nodes that it needs have ended. Sets the record's status and outputs."""


async def run(execution: Execution, scope: Scope, node: Pipeline, record: StepRecord) -> None:
    """Run the graph. The graph's outputs become the node's outputs."""
    inputs = inputs_of(node, scope)
    begin(execution, record, inputs)
    inner = Scope(node.graph, f"{record.name}.", inputs, graph_output_paths(node.graph, scope.output_paths_of(node)))
    record.status = await execution.run_graph(inner)
    record.outputs = inner.outputs()
    end(execution, record)


def inputs_of(node: Pipeline, scope: Scope) -> dict[str, str | None]:
    """Return the inputs of a node's graph as text. An input that the node does not set has the graph's own default."""
    return values.of_pipeline(node, scope.lookup)


def begin(execution: Execution, record: StepRecord, inputs: Mapping[str, str | None]) -> None:
    """Set the record of a node that contains others to Running, and save it. inputs: its inputs as text"""
    record.status, record.ended = Status.RUNNING, None
    record.started = record.started or time.time()
    record.inputs = {name: text for name, text in inputs.items() if text is not None}
    execution.recorder.changed(record)


def end(execution: Execution, record: StepRecord) -> None:
    """Set the end time of a node that contains others, and save its record. Its status must be set."""
    record.ended = time.time()
    execution.recorder.changed(record)


BRANCH = "branch"
_TRUTH = {"true": True, "false": False}


async def run_condition(execution: Execution, scope: Scope, node: Condition, record: StepRecord) -> None:
    """Decide the branch, once per run. A resumed run keeps the decision."""
    record.started = time.time()
    text = execution.decision(record.name, BRANCH) or values.resolve(node.condition, scope.lookup) or ""
    outcome = truth(text)
    record.inputs = {"condition": text}
    if outcome is None:
        record.status = Status.FAILED
        record.verdict = Verdict(record.name, f"the condition is {text!r}, which is neither true nor false")
    else:
        execution.decide(record.name, BRANCH, str(outcome))
        record.status = Status.COMPLETED
    record.ended = time.time()
    execution.recorder.changed(record)


def truth(text: str) -> bool | None:
    """Parse the text of a boolean. Return None for any other text."""
    return _TRUTH.get(text.strip().lower())


def condition_outcome(execution: Execution, record: StepRecord) -> bool | None:
    """Return the decision of a condition that has run."""
    return truth(execution.decision(record.name, BRANCH) or "")


async def run_stand_in(execution: Execution, scope: Scope, node: StandIn, record: StepRecord) -> None:  # noqa: ARG001
    """Record the outputs in the user's folder, without copying them."""
    begin(execution, record, {})
    places = [(output, Path(output.path or node.folder)) for output in node.outputs]
    record.outputs = [await asyncio.to_thread(collect.describe, output, place) for output, place in places]
    execution.recorder.note(record, f"not run: its outputs are those of {node.folder}")
    record.status = Status.COMPLETED
    end(execution, record)
