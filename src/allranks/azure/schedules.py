"""Apply declared schedules to an Azure ML workspace. Unchanged schedules are skipped.

A schedule's properties hold a digest of the applied content: its trigger, its texts, and the request that would submit
its pipeline, in which the versions of code and components are derived from their content.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from allranks.azure.changes import cluster_sizes, set_compute, set_sizes
from allranks.azure.checks import of_sizes
from allranks.azure.dry_run import body_of
from allranks.azure.errors import service_errors
from allranks.azure.requirements import requirements
from allranks.azure.workspace import WorkspaceName, quiet_uploads
from allranks.errors import InputError, Problem, did_you_mean, raise_any
from allranks.plan.graph import Graph
from allranks.plan.reader import OpenJob
from allranks.schedules.finding import Schedule, find_schedules
from allranks.schedules.reading import read_trigger
from allranks.schedules.triggers import Trigger, firings, in_words
from allranks.sdk import internals
from allranks.sdk.compilation import job_request
from allranks.sdk.session import session

DIGEST, DECLARED_IN = "allranks.digest", "allranks.declared_in"
"""The properties of a schedule with the digest of the applied content, and with its file."""

CREATE, UPDATE, KEEP, DELETE = "create", "update", "unchanged", "delete"


@dataclass(frozen=True)
class Applied:
    """A schedule of the workspace.

    trigger:     None for an unsupported kind, such as a monitor's
    digest:      of the applied content; "" if allranks has not applied it
    declared_in: the file that declares it; "" likewise
    """

    name: str
    display_name: str
    description: str
    enabled: bool
    trigger: Trigger | None
    digest: str = ""
    declared_in: str = ""


@dataclass(frozen=True)
class Difference:
    """The change of one key of a schedule."""

    key: str
    before: str
    after: str


@dataclass(frozen=True)
class Change:
    """The change of one schedule. digest: of its new content; "" for a deleted one"""

    name: str
    action: str
    differences: tuple[Difference, ...] = ()
    digest: str = ""


def applied(client: Any) -> dict[str, Applied]:
    """Return the workspace's schedules by name, including disabled ones. Raise the errors of `service_errors`."""
    with session(), service_errors("listing the workspace's schedules"):
        entities = list(client.schedules.list(list_view_type="All"))
    return {entity.name: _applied(entity) for entity in entities}


def _applied(entity: Any) -> Applied:
    trigger = None
    if getattr(entity, "trigger", None) is not None:
        with contextlib.suppress(InputError):
            trigger = read_trigger(entity.trigger, str, any_offset=True)
    properties = entity.properties or {}
    return Applied(
        name=entity.name,
        display_name=entity.display_name or entity.name,
        description=" ".join((entity.description or "").split()),
        enabled=entity.is_enabled is not False,
        trigger=trigger,
        digest=properties.get(DIGEST, ""),
        declared_in=properties.get(DECLARED_IN, ""),
    )


@dataclass(frozen=True)
class Order:
    """The schedules to apply to a workspace.

    client:  the SDK's, of the workspace
    target:  the file or folder that declares them; None: the project's `pipelines`
    compute: the cluster for steps without a compute
    prune:   whether to delete schedules that were applied from the same files and are no longer declared
    """

    client: Any
    workspace: WorkspaceName
    target: Path | None
    compute: str = ""
    prune: bool = False

    @cached_property
    def existing(self) -> dict[str, Applied]:
        """The schedules of the workspace by name, before the order is applied."""
        return applied(self.client)

    @cached_property
    def clusters(self) -> dict[str, str]:
        """The sizes of the workspace's clusters by name."""
        return cluster_sizes(self.client)


def changes(order: Order) -> list[Change]:
    """Return the changes that applying an order would make.

    Raise InputError for a schedule that is invalid or has ended, and for steps without a compute or with an unsuitable
    size.
    """
    existing = order.existing
    with session():
        declared = _declared(order)
        problems = [problem for each in declared if (problem := _ended(each, datetime.now(UTC)))]
        problems += [problem for each in declared for problem in _misplaced(each, order.clusters)]
        raise_any(problems)
        planned = [_change(each, order) for each in declared]
    if order.prune:
        names, files = {change.name for change in planned}, _files(declared, order.target)
        planned += [
            Change(name, DELETE)
            for name, other in sorted(existing.items())
            if name not in names and other.declared_in and files(other.declared_in)
        ]
    return planned


def apply(order: Order, planned: Sequence[Change], done: Callable[[Change], None]) -> None:
    """Make the changes of an order, in sequence.

    done: is called after each change, including unchanged schedules

    Raise the errors of `service_errors`. Completed changes remain, and the next call does not repeat them.
    """
    with session():
        # Read again: computing the digests has added ids to the first entities.
        is_changing = any(change.action in (CREATE, UPDATE) for change in planned)
        fresh = {each.name: each for each in (_declared(order) if is_changing else ())}
        for change in planned:
            if change.action in (CREATE, UPDATE):
                _put(order.client, fresh[change.name], change.digest, order.existing.get(change.name))
            elif change.action == DELETE:
                delete(order.client, order.existing[change.name])
            done(change)


def switch(client: Any, existing: Mapping[str, Applied], name: str, *, on: bool) -> bool:
    """Enable or disable a schedule. Return whether its state has changed. Raise InputError if it does not exist."""
    schedule = named(existing, name)
    if schedule.enabled is on:
        return False
    doing = f"{'enabling' if on else 'disabling'} schedule {name}"
    with session(), service_errors(doing):
        begin = client.schedules.begin_enable if on else client.schedules.begin_disable
        begin(name).result()
    return True


def trigger(client: Any, existing: Mapping[str, Applied], name: str) -> str:
    """Start the job of a schedule now, and return its name. Raise InputError if there is no such schedule."""
    named(existing, name)
    with session(), service_errors(f"starting the job of schedule {name}"):
        return str(client.schedules.trigger(name).job_name)


def delete(client: Any, schedule: Applied) -> None:
    """Delete a schedule. Azure ML requires disabling it first."""
    with session(), service_errors(f"deleting schedule {schedule.name}"):
        if schedule.enabled:
            client.schedules.begin_disable(schedule.name).result()
        client.schedules.begin_delete(schedule.name).result()


def named(existing: Mapping[str, Applied], name: str) -> Applied:
    """Return the workspace's schedule with a name. Raise InputError if it does not exist."""
    if name in existing:
        return existing[name]
    expected = f"one of {', '.join(sorted(existing))}" if existing else "none: the workspace has no schedules"
    fix = did_you_mean(name, existing, "apply it first: allranks schedules apply")
    raise InputError(Problem(f"schedule {name}", "the workspace has no schedule of that name", expected, fix))


def trigger_differs(declared: Trigger, other: Trigger | None) -> bool:
    """Return whether the workspace's trigger is different. The service sets a start that is not declared."""
    if other is None:
        return True
    return replace(other, start=None) != declared if declared.start is None else other != declared


def _change(schedule: Schedule, order: Order) -> Change:
    digest = _digest(schedule, order.workspace)
    other = order.existing.get(schedule.name)
    if other is None:
        return Change(schedule.name, CREATE, (Difference("trigger", "", _words(schedule.trigger)),), digest)
    differences: list[Difference] = []
    if trigger_differs(schedule.trigger, other.trigger):
        before = _words(other.trigger) if other.trigger else "something else"
        differences.append(Difference("trigger", before, _words(schedule.trigger)))
    for key in ("display_name", "description"):
        if getattr(schedule, key) != getattr(other, key):
            differences.append(Difference(key, getattr(other, key), getattr(schedule, key)))
    if not differences and digest != other.digest:
        before = "as applied" if other.digest else "not applied by this command"
        differences.append(Difference("create_job", before, "its pipeline, its inputs or its code have changed"))
    return Change(schedule.name, UPDATE if differences else KEEP, tuple(differences), digest)


def _put(client: Any, schedule: Schedule, digest: str, other: Applied | None) -> None:
    entity = schedule.entity
    entity.properties = {**(entity.properties or {}), DIGEST: digest, DECLARED_IN: _file(schedule.file)}
    # A schedule that was disabled in the studio remains disabled.
    internals.set_enabled(entity, other.enabled if other else True)
    with service_errors(f"applying schedule {schedule.name}"), quiet_uploads():
        client.schedules.begin_create_or_update(entity).result()


def _declared(order: Order) -> tuple[Schedule, ...]:
    """Return the declared schedules with the compute and size of every step, as `allranks submit` sends them.

    Raise InputError for steps without a compute.
    """
    declared = find_schedules(order.target)
    if order.compute:
        for each in declared:
            if hasattr(each.entity.create_job, "compute"):
                set_compute(each.entity.create_job, order.compute)
    problems, fix = [], "--compute NAME; or name one in the pipeline: settings.default_compute"
    for each in declared:
        job = each.entity.create_job
        if steps := () if isinstance(job, str) else job_request(job).without_compute:
            where = f"schedule {each.name}, key compute ({each.where})"
            found = f"no compute is given for {', '.join(steps)}"
            problems.append(Problem(where, found, "a cluster", fix, code="no-compute"))
    raise_any(problems)
    for each in declared:
        if not isinstance(each.entity.create_job, str):  # a job of the workspace, by its id
            set_sizes(each.entity.create_job, order.clusters)
    return declared


def _digest(schedule: Schedule, workspace: WorkspaceName) -> str:
    """Return the digest of everything that a PUT would change. Add ids to the entity's job."""
    job = schedule.entity.create_job
    # Ignore the commit, and the experiment's name, whose default is the name of the current folder.
    ignored = {"properties", "experimentName"}
    if not getattr(job, "display_name", None):
        ignored.add("displayName")  # the SDK makes one up for each request
    body: Any = job if isinstance(job, str) else body_of(job, workspace).get("properties", {})
    if isinstance(body, dict):
        body = {key: value for key, value in body.items() if key not in ignored}
    content = {
        "trigger": {"kind": type(schedule.trigger).__name__, **asdict(schedule.trigger)},
        "texts": [schedule.display_name, schedule.description],
        "tags": schedule.entity.tags or {},
        "job": body,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _ended(schedule: Schedule, now: datetime) -> Problem | None:
    if next(firings(schedule.trigger, now - timedelta(microseconds=1), now), None) is not None:
        return None
    end = schedule.trigger.end
    found = f"its end is in the past: {end.isoformat() if end else '–'}"
    fix = "set a later end, or remove the schedule and apply with --prune"
    where = f"schedule {schedule.name}, key trigger.end_time ({schedule.where})"
    return Problem(where, found, "an end in the future", fix)


def _misplaced(schedule: Schedule, clusters: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the problems of the steps on the sizes of their computes; none for a job of the workspace."""
    job = OpenJob(schedule.entity.create_job, schedule.where, lambda _: None)
    if isinstance(job.job, str):
        return
    graph = Graph() if job.unread() else job.plan().graph
    for problem in of_sizes(requirements(job.job, graph), clusters):
        yield replace(problem, where=f"schedule {schedule.name}, {problem.where} ({schedule.where})")


def _files(declared: Iterable[Schedule], target: Path | None) -> Callable[[str], bool]:
    """Return a function that checks whether a recorded file is one of the declaring files."""
    if target is not None and target.is_file():
        return lambda file: file == _file(str(target))
    folder = target or Path(next(iter(declared)).file).parent
    return lambda file: Path(file).parent == Path(_file(str(folder)))


def _file(path: str) -> str:
    """Return a path that is the same in every clone of the project: relative to the folder above `pipelines`."""
    absolute = Path(path).absolute()
    for parent in absolute.parents:
        if (parent / ".git").exists() or (parent / "pyproject.toml").exists():
            return absolute.relative_to(parent).as_posix()
    return absolute.relative_to(absolute.parent.parent).as_posix()


def _words(trigger: Trigger) -> str:
    parts = [in_words(trigger), trigger.time_zone]
    parts += [f"from {trigger.start.isoformat()}"] if trigger.start else []
    parts += [f"until {trigger.end.isoformat()}"] if trigger.end else []
    return ", ".join(parts)
