"""The events of the scheduler, and those of them that are sent as notices."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from allranks.errors import InputError
from allranks.history import secret_values, stored
from allranks.history.records import RunRecord, Status
from allranks.history.store import Store
from allranks.plan import codec
from allranks.plan.walk import changed, steps, without_labels
from allranks.scheduler.ledger import Firing
from allranks.scheduler.paths import SchedulerPaths
from allranks.secrets import redact, secrets_in
from allranks.text import local_time
from allranks.workspace import Workspace

FAILED, NOT_STARTED, RECOVERED, REUSED, MISSED = "failed", "not-started", "recovered", "reused", "missed"
"""Events that are sent.

Failed: the run of a firing failed, and its retries are spent. Not started: likewise, but there is no run. Recovered:
the first completed run after one of these. Reused: a completed run in which no step ran whose results can be reused.
Missed: firings that are not run.
"""

_TEXTS = {
    FAILED: "failed: ",
    NOT_STARTED: "could not start: ",
    RECOVERED: "completed, the first after a failure",
    REUSED: "reused earlier results for all steps, and trained nothing",
}


@dataclass(frozen=True)
class Event:
    """An event of the scheduler.

    kind:   one of those above, or: next, fired, resumed, retries, retried, ended, unreadable, undelivered, disabled,
            stopping, stopped
    text:   a sentence for a reader
    values: the same data for a program
    """

    kind: str
    schedule: str
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def notice(self) -> tuple[str, str]:
        """Return the id and the JSON of the notice. An event always has the same id."""
        run, at = self.values.get("run"), self.values["at"]
        identity = f"{run or f'{self.schedule}-{at:%Y%m%dT%H%M%SZ}'}:{self.kind}"
        about = {"id": identity, "event": self.kind, "schedule": self.schedule, "text": self.text}
        body = {**about, "run": None, "verdict": None, "page": None, "link": None, **self.values}
        return identity, json.dumps(body, default=datetime.isoformat)


def of_missed(schedule: str, missed: list[datetime]) -> Event:
    """Return the event of firings that are not run."""
    first, last = map(local_time, (missed[0], missed[-1]))
    which = first if len(missed) == 1 else f"{len(missed):,} from {first} to {last}"
    values = {"at": missed[-1], "first": missed[0], "last": missed[-1], "count": len(missed)}
    return Event(MISSED, schedule, f"missed, not run later: {which}", values)


def of_end(paths: SchedulerPaths, firing: Firing, before: str) -> list[Event]:
    """Return the events of the end of a firing that is not retried, without secrets.

    before: the events of the schedule's last firing before it
    """
    record, is_reused = paths.record(firing.run), False
    with contextlib.suppress(InputError):  # its steps may be damaged
        record = record and stored.run(paths.workspace, record.id)
        is_reused = record is not None and _is_reused(record, paths.workspace)
    kinds = [FAILED if record else NOT_STARTED] if firing.status != Status.CANCELED else []
    if firing.status == Status.COMPLETED:
        kinds = [RECOVERED] if {FAILED, NOT_STARTED} & {*before.split()} else []
        kinds += [REUSED] if is_reused else []
    saved = secret_values.load(paths.secrets(firing.schedule)).values()
    known = frozenset(saved).union(*map(secrets_in, saved))
    values = {"at": firing.at, "run": firing.run, "status": firing.status, "reason": firing.reason}
    if record:
        link = Path(record.page).as_uri() if record.page else None
        values |= {"verdict": record.verdict and asdict(record.verdict), "page": record.page, "link": link}
    values = changed(values, lambda each: redact(each, known) if isinstance(each, str) else each)
    reason = values["reason"]
    return [Event(kind, firing.schedule, f"run {firing.run} {_TEXTS[kind]}{reason}", values) for kind in kinds]


def _is_reused(record: RunRecord, workspace: Workspace) -> bool:
    """Return whether all steps whose results can be reused have been. False if there are none."""
    with Store(workspace.database, reads=True) as store:
        graph = codec.loads(store.plan(record.id)).graph
    reusable = {without_labels(path) for path, step in steps(graph) if step.deterministic}
    completed = [step for step in record.steps if step.kind == "command" and step.status is Status.COMPLETED]
    reused = [step.reused_from for step in completed if without_labels(step.name) in reusable]
    return bool(reused) and all(reused)
