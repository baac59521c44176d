"""A step: a component's command."""

from __future__ import annotations

from allranks.local.nodes.execution import Execution
from allranks.local.scope import Scope
from allranks.plan.graph import Step
from allranks.runs.records import StepRecord


async def run(execution: Execution, scope: Scope, node: Step, record: StepRecord) -> None:
    """Run the command on its ranks, or reuse an earlier result."""
    await execution.run_step(scope, node, record)
