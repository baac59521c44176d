"""An if_else node: decide which of its nodes run. The executor skips the others."""

from __future__ import annotations

import time

from allranks.local.nodes.execution import Execution
from allranks.local.scope import Scope
from allranks.plan import values
from allranks.plan.graph import Condition
from allranks.runs.records import Status, StepRecord, Verdict

BRANCH = "branch"
_TRUTH = {"true": True, "false": False}


async def run(execution: Execution, scope: Scope, node: Condition, record: StepRecord) -> None:
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
    execution.changed(record)


def truth(text: str) -> bool | None:
    """Parse the text of a boolean. Return None for any other text."""
    return _TRUTH.get(text.strip().lower())


def outcome_of(execution: Execution, record: StepRecord) -> bool | None:
    """Return the decision of a condition that has run."""
    return truth(execution.decision(record.name, BRANCH) or "")
