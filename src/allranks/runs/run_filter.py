"""Which runs of a workspace a list contains."""

from __future__ import annotations

from dataclasses import dataclass

from allranks.runs.records import RunRecord, Status


@dataclass(frozen=True)
class RunFilter:
    """The conditions that a run must meet. An empty value is no condition.

    statuses: the states, one of which the run is in
    name:     a part of the name of the pipeline or of the job, in upper or lower case
    schedule: the schedule that started it
    since:    it was created then or later, in seconds since the epoch
    """

    statuses: frozenset[Status] = frozenset()
    name: str = ""
    schedule: str = ""
    since: float = 0.0

    def condition(self) -> tuple[str, dict[str, object]]:
        """Return the condition in SQL for the rows of the table `run`, with its parameters.

        It admits a run that is stored as running although its engine has died, whose state is known to `admits` only.
        """
        parts, values = ["created >= :since"], dict[str, object](since=self.since)
        if self.statuses:
            stored = set(self.statuses)
            if Status.INTERRUPTED in stored:
                stored |= {status for status in Status if not status.ended}
            words = sorted(map(str, stored))
            values |= {f"status{place}": word for place, word in enumerate(words)}
            marks = ", ".join(f":status{place}" for place in range(len(words)))
            parts.append(f"json_extract(record, '$.status') IN ({marks})")
        if self.name:
            names = (f"instr(lower(json_extract(record, '$.{key}')), :name)" for key in _NAMES)
            parts.append(f"({' OR '.join(names)})")
            values["name"] = self.name.lower()
        if self.schedule:
            parts += [
                "json_extract(record, '$.trigger_time') IS NOT NULL",
                "substr(json_extract(record, '$.job_name'), 1, length(:schedule)) = :schedule",
            ]
            values["schedule"] = f"{self.schedule}-"
        return " AND ".join(parts), values

    def admits(self, run: RunRecord) -> bool:
        """Return whether a run that meets `condition` is in one of the states."""
        return not self.statuses or run.status in self.statuses


_NAMES = ("name", "display_name", "job_name")

EVERY_RUN = RunFilter()
