"""The runners of pipeline components, of if_else nodes, and of nodes whose outputs come from a folder."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from allranks.history.records import Status, StepRecord, Verdict
from allranks.local.attempt import collect
from allranks.local.executor import BRANCH, Executor
from allranks.local.scope import Scope
from allranks.plan import values
from allranks.plan.graph import Condition, Pipeline, StandIn
from allranks.plan.values import graph_output_paths


async def run(execution: Executor, scope: Scope, node: Pipeline, record: StepRecord) -> None:
    """Run the graph. The graph's outputs become the node's outputs."""
    inputs = values.of_pipeline(node, scope.lookup)
    begin(execution, record, inputs)
    inner = Scope(node.graph, f"{record.name}.", inputs, graph_output_paths(node.graph, scope.output_paths_of(node)))
    record.status = await execution.run_graph(inner)
    record.outputs = inner.outputs()
    end(execution, record)


def begin(execution: Executor, record: StepRecord, inputs: Mapping[str, str | None]) -> None:
    """Set the record of a node that contains others to Running, and save it. inputs: its inputs as text"""
    record.status, record.ended = Status.RUNNING, None
    record.started = record.started or time.time()
    record.inputs = {name: text for name, text in inputs.items() if text is not None}
    execution.recorder.changed(record)


def end(execution: Executor, record: StepRecord) -> None:
    """Set the end time of a node that contains others, and save its record. Its status must be set."""
    record.ended = time.time()
    execution.recorder.changed(record)


_TRUTH = {"true": True, "false": False}


async def run_condition(execution: Executor, scope: Scope, node: Condition, record: StepRecord) -> None:
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


async def run_stand_in(execution: Executor, scope: Scope, node: StandIn, record: StepRecord) -> None:  # noqa: ARG001
    """Record the outputs in the user's folder, without copying them."""
    begin(execution, record, {})
    places = [(output, Path(output.path or node.folder)) for output in node.outputs]
    record.outputs = [await asyncio.to_thread(collect.describe, output, place) for output, place in places]
    execution.recorder.note(record, f"not run: its outputs are those of {node.folder}")
    record.status = Status.COMPLETED
    end(execution, record)
