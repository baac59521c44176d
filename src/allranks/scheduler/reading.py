"""Save declared schedules, and those that `LocalClient` creates, in the ledger."""

import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from allranks.errors import Problem, Problems, raise_any
from allranks.history import registered, secret_values
from allranks.local import requirements
from allranks.plan import codec
from allranks.plan.assets.lookup import AssetLookup
from allranks.plan.graph import Plan
from allranks.plan.reader import pipeline, snapshot
from allranks.plan.secrets import hidden
from allranks.scheduler.data_trigger import content_of
from allranks.scheduler.ledger import Ledger
from allranks.scheduler.paths import SchedulerPaths
from allranks.schedules.finding import Schedule, find_schedules
from allranks.sdk import session
from allranks.sdk.compilation import job_request


def read(paths: SchedulerPaths, target: Path | None) -> None:
    """Read the schedules of a file or a folder (by default the project's) into the ledger.

    Raise InputError with all problems, without changing the ledger.
    """
    with session.session(client=False), tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
        schedules = _read_schedules(paths, target, Path(snapshots))
    with Ledger(paths.ledger) as ledger:
        ledger.replace(schedules, datetime.now(UTC))


def _read_schedules(paths: SchedulerPaths, target: Path | None, snapshots: Path) -> list[tuple[Schedule, str, str]]:
    schedules: list[tuple[Schedule, str, str]] = []
    secrets_by_schedule: dict[str, Mapping[str, str]] = {}
    problems = Problems()
    for schedule in find_schedules(target, required=not paths.created()):
        job = schedule.entity.create_job
        if isinstance(job, str):
            found = f"{job}, a job of a workspace"
            fix = "declare it with the pipeline itself"
            where = f"schedule {schedule.name}, key create_job ({schedule.where})"
            problems.append(Problem(where, found, "a pipeline: only pipelines can run here", fix))
            continue
        with problems:
            lookup = AssetLookup.of(Path(job.base_path or "."), registered.of(paths.workspace))
            plan = pipeline.read(job_request(job, schedule.where), snapshots, schedule.where, lookup=lookup)
            requirements.require(plan)
            plan = snapshot.save(plan, paths.workspace.snapshots)
            masked, content = hidden(codec.dumps(plan)), _content(paths, schedule, plan)
            secrets_by_schedule[schedule.name] = masked.values
            schedules.append((schedule, masked.plan, content))
    raise_any(problems)
    for name, secrets_of_plan in secrets_by_schedule.items():
        _save_secrets(paths, name, secrets_of_plan)
    return schedules


def put(paths: SchedulerPaths, schedule: Schedule, plan: Plan | None, *, enabled: bool) -> None:
    """Add a schedule that no file declares to the ledger, or change it. plan: None to keep the existing plan"""
    paths.make()
    content, masked = _content(paths, schedule, plan), hidden(codec.dumps(plan)) if plan else None
    if masked:
        _save_secrets(paths, schedule.name, masked.values)
    with Ledger(paths.ledger) as ledger:
        ledger.put(schedule, masked.plan if masked else None, content, datetime.now(UTC), enabled=enabled)


def _content(paths: SchedulerPaths, schedule: Schedule, plan: Plan | None) -> str:
    """Return the content that a data trigger compares with: that of the last firing, or the present one of a schedule
    that is new. "" without a data trigger, or without a plan."""
    on_change, entry = schedule.policy.on_change, paths.entries().get(schedule.name)
    if not on_change or (entry and entry.policy.on_change == on_change):
        return entry.content if on_change and entry else ""
    return content_of(plan, on_change, f"schedule {schedule.name} ({schedule.where})", paths.workspace) if plan else ""


def _save_secrets(paths: SchedulerPaths, schedule: str, values: Mapping[str, str]) -> None:
    secret_values.remove(paths.secrets(schedule))
    secret_values.save(paths.secrets(schedule), values)
