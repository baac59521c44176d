"""The events of the scheduler, and those among them that somebody may want to be notified of."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from allranks.errors import InputError
from allranks.history import secret_values, stored
from allranks.history.records import RunRecord, Status
from allranks.history.store import Store
from allranks.plan import codec
from allranks.plan.walk import steps, without_labels
from allranks.scheduler.ledger import Firing, Notice, SchedulerPaths
from allranks.secrets import redact, secrets_in
from allranks.text import local_time
from allranks.workspace import Workspace

FAILED, NOT_STARTED, RECOVERED, REUSED, MISSED = "failed", "not-started", "recovered", "reused", "missed"
"""Events with a notice.

Failed: the run of a firing failed, and its retries are spent. Not started: likewise, but there is no run. Recovered:
the first completed run after one of these. Reused: a completed run in which no step ran whose results can be reused.
Missed: firings that are not run.
"""

_TEXTS = {
    FAILED: "run {run} failed: {reason}",
    NOT_STARTED: "run {run} could not start: {reason}",
    RECOVERED: "run {run} completed, the first after a failure",
    REUSED: "run {run} reused earlier results for all steps, and trained nothing",
}


@dataclass(frozen=True)
class Event:
    """An event of the scheduler.

    kind:   one of the five above, or: next, fired, resumed, retries, retried, ended, unreadable, undelivered, disabled,
            stopping, stopped
    text:   a sentence for a reader
    values: the same data for a program
    """

    kind: str
    schedule: str
    text: str
    values: Mapping[str, object] = field(default_factory=dict)

    def notice(self) -> Notice:
        """Return the notice of the event. Its id is the same each time it is sent."""
        run, at = self.values["run"], self.values["at"]
        identity = f"{run or f'{self.schedule}-{at:%Y%m%dT%H%M%SZ}'}:{self.kind}"
        body = {"id": identity, "event": self.kind, "schedule": self.schedule, "text": self.text, **self.values}
        return Notice(identity, json.dumps(body, default=datetime.isoformat))


def of_missed(schedule: str, missed: list[datetime]) -> Event:
    """Return the event of firings that are not run."""
    first, last = map(local_time, (missed[0], missed[-1]))
    which = first if len(missed) == 1 else f"{len(missed):,} from {first} to {last}"
    values = {"first": missed[0], "last": missed[-1], "count": len(missed)}
    return Event(MISSED, schedule, f"missed, not run later: {which}", {**_values(missed[-1]), **values})


def of_end(paths: SchedulerPaths, firing: Firing, before: str) -> list[Event]:
    """Return the events of the end of a firing that is not retried, without secrets.

    before: the events of the schedule's last firing before it
    """
    record = _record(paths.workspace, firing.run)
    kinds: list[str] = []
    if firing.status == Status.COMPLETED:
        kinds += [RECOVERED] if {FAILED, NOT_STARTED} & {*before.split()} else []
        kinds += [REUSED] if record and _is_reused(record, paths.workspace) else []
    elif firing.status != Status.CANCELED:
        kinds.append(FAILED if record else NOT_STARTED)
    saved = secret_values.load(paths.secrets(firing.schedule)).values()
    known = frozenset(saved).union(*map(secrets_in, saved))
    values = _masked(_values(firing.at, firing, record), known)
    texts = [_TEXTS[kind].format(**values).removesuffix(": ") for kind in kinds]
    return [Event(kind, firing.schedule, text, values) for kind, text in zip(kinds, texts, strict=True)]


def _values(at: datetime, firing: Firing | None = None, record: RunRecord | None = None) -> dict[str, Any]:
    return {
        "at": at.astimezone(UTC),
        "run": firing and firing.run,
        "status": firing and firing.status,
        "reason": firing and firing.reason,
        "verdict": record and record.verdict and asdict(record.verdict),
        "page": record and record.page,
        "link": Path(record.page).as_uri() if record and record.page else None,
    }


def _record(workspace: Workspace, run: str) -> RunRecord | None:
    try:
        record = stored.run(workspace, run)
    except InputError:
        return None
    return record if record.job_name == run else None


def _is_reused(record: RunRecord, workspace: Workspace) -> bool:
    """Return whether all steps whose results can be reused have been. False if there are none."""
    with Store(workspace.database, reads=True) as store:
        graph = codec.loads(store.plan(record.id)).graph
    reusable = {without_labels(path) for path, step in steps(graph) if step.deterministic}
    ran = [step for step in record.steps if step.kind == "command" and without_labels(step.name) in reusable]
    ran = [step for step in ran if step.status is Status.COMPLETED]
    return bool(ran) and all(step.reused_from for step in ran)


def _masked(value: Any, known: Iterable[str]) -> Any:
    if isinstance(value, str):
        return redact(value, known)
    if isinstance(value, dict):
        return {key: _masked(item, known) for key, item in value.items()}
    return [_masked(item, known) for item in value] if isinstance(value, (list, tuple)) else value
