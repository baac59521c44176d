"""Continue a run with the latest version of its pipeline.

Every node is executed again, and a finished step whose code and inputs have not changed keeps its result. So what is
kept does not depend on how the pipeline was changed.
"""

from __future__ import annotations

from dataclasses import replace

from allranks.runs import executions
from allranks.runs.records import RunRecord, Status, StepRecord


def renewed(fresh: StepRecord, earlier: RunRecord | None) -> StepRecord:
    """Return the initial record of a node. If the node was in the run before, its attempts are counted on.

    earlier: the run as it was before it continued with the latest code; None for any other run

    The outputs of a completed step are never overwritten, because other runs may reuse them: its next attempt has its
    own folder. A step that did not complete finds its files in place, as after an eviction.
    """
    before = None if earlier is None else earlier.find(fresh.name)
    if before is None or before.kind != "command" or not before.ranks:
        return fresh
    attempt = before.attempt + 1
    has_result = before.status is Status.COMPLETED
    folder = f"{fresh.folder}@{attempt}" if has_result or before.reused_from else before.folder
    attempts = executions.attempts_of(before)
    return replace(fresh, attempt=attempt, folder=folder, metrics=before.metrics, key=before.key, attempts=attempts)


def restore(record: StepRecord, earlier: StepRecord) -> None:
    """Restore the result that a step had before its run continued."""
    needs = record.needs
    vars(record).update(vars(replace(earlier, needs=needs)))
