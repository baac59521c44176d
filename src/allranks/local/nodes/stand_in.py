"""A node that does not run: its outputs are those of the user's folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

from allranks.local.attempt import collect
from allranks.local.nodes.execution import Execution
from allranks.local.nodes.graph import begin, end
from allranks.local.scope import Scope
from allranks.plan.graph import StandIn
from allranks.runs.records import Status, StepRecord


async def run(execution: Execution, scope: Scope, node: StandIn, record: StepRecord) -> None:  # noqa: ARG001
    """Record the outputs, without copying them."""
    begin(execution, record, {})
    places = [(output, Path(output.path or node.folder)) for output in node.outputs]
    record.outputs = [await asyncio.to_thread(collect.recorded, output, place) for output, place in places]
    execution.recorder.note(record, f"not run: its outputs are those of {node.folder}")
    record.status = Status.COMPLETED
    end(execution, record)
