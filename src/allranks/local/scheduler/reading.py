"""Read declared schedules into the ledger: ``python -m allranks.local.scheduler.reading WORKSPACE TARGET``.

This is a separate process, because importing azure-ai-ml takes 100 MB and two seconds, and the scheduler runs for a
long time."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from allranks.errors import InputError, Problem
from allranks.history.workspace import Workspace
from allranks.local.scheduler.ledger import Ledger, SchedulesPlace

if TYPE_CHECKING:
    from allranks.plan.graph import Plan
    from allranks.schedules.finding import Schedule


def read(place: SchedulesPlace, target: Path | None) -> None:
    """Read the schedules of a file or a folder (by default the project's) into the ledger, in a separate process.

    Raise InputError with all problems. The ledger does not change then.
    """
    command = [sys.executable, "-m", "allranks.local.scheduler.reading", str(place.workspace.root)]
    with tempfile.NamedTemporaryFile(prefix="allranks-", suffix=".json") as answer:
        # Ctrl-C at the terminal must reach this process only, which then ends the other one.
        process = subprocess.run(
            [*command, answer.name, *([str(target)] if target else [])], check=False, start_new_session=True
        )
        problems = json.loads(answer.read() or "null")
    if problems:
        raise InputError.of(Problem(**problem) for problem in problems)
    if process.returncode:
        raise InputError(
            Problem(str(target or "schedules"), "the process that reads them ended without a reason", "", "see above")
        )


def read_here(place: SchedulesPlace, target: Path | None) -> None:
    from allranks.sdk import session

    with session.session(client=False), tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
        schedules = _read_schedules(place, target, Path(snapshots))
    with Ledger(place.ledger) as ledger:
        ledger.replace(schedules, datetime.now(timezone.utc))


def _read_schedules(place: SchedulesPlace, target: Path | None, snapshots: Path) -> list[tuple[Schedule, str]]:
    from allranks.history import registered
    from allranks.local import requirements
    from allranks.plan.assets.lookup import AssetLookup
    from allranks.plan.codec import converter
    from allranks.plan.graph import Plan
    from allranks.plan.reader import pipeline, snapshot
    from allranks.plan.secrets import hidden
    from allranks.schedules.finding import find_schedules

    schedules: list[tuple[Schedule, str]] = []
    secrets_by_schedule: dict[str, Mapping[str, str]] = {}
    problems: list[Problem] = []
    for declared in find_schedules(target, required=not place.created()):
        schedule = declared.schedule
        if isinstance(declared.entity.create_job, str):
            found = f"{declared.entity.create_job}, a job of a workspace"
            fix = "declare it with the pipeline itself"
            where = f"schedule {schedule.name}, key create_job ({schedule.where})"
            problems.append(Problem(where, found, "a pipeline: only pipelines can run here", fix))
            continue
        try:
            job = declared.entity.create_job
            lookup = AssetLookup.of(Path(job.base_path or "."), registered.of(place.workspace))
            plan = pipeline.read(job, snapshots, schedule.where, lookup=lookup)
            requirements.require(plan)
            plan = snapshot.save(plan, place.workspace.snapshots)
        except InputError as error:
            problems += error.problems
            continue
        masked = hidden(converter().dumps(plan, Plan))
        secrets_by_schedule[schedule.name] = masked.values
        schedules.append((schedule, masked.plan))
    if problems:
        raise InputError.of(problems)
    for name, secrets_of_plan in secrets_by_schedule.items():
        _save_secrets(place, name, secrets_of_plan)
    return schedules


def put(place: SchedulesPlace, schedule: Schedule, plan: Plan | None, *, enabled: bool) -> None:
    """Add a schedule that no file declares to the ledger, or change it. plan: None to keep the plan that it has"""
    from allranks.plan import codec
    from allranks.plan.secrets import hidden

    place.make()
    masked = hidden(codec.dumps(plan)) if plan else None
    if masked:
        _save_secrets(place, schedule.name, masked.values)
    with Ledger(place.ledger) as ledger:
        ledger.put(schedule, masked.plan if masked else None, datetime.now(timezone.utc), enabled=enabled)


def _save_secrets(place: SchedulesPlace, schedule: str, values: Mapping[str, str]) -> None:
    from allranks.history import secret_values

    secret_values.remove(place.secrets(schedule))
    secret_values.save(place.secrets(schedule), values)


def main() -> None:
    root, answer, *target = sys.argv[1:]
    place = SchedulesPlace(Workspace(Path(root)))
    try:
        read_here(place, Path(target[0]) if target else None)
    except InputError as error:
        Path(answer).write_text(json.dumps([asdict(problem) for problem in error.problems]), encoding="utf-8")
        sys.exit(2)


if __name__ == "__main__":
    main()
