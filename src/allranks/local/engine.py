"""Runs plans on this machine, and resumes runs whose engine was stopped."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import os
import secrets
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.local import gpus, requirements
from allranks.local.executor import Executor, processes_per_instance
from allranks.local.instances.kinds import INSTANCE_KINDS
from allranks.local.instances.supervisor import Supervisor, UnfitError
from allranks.local.slots import Slots
from allranks.local.step.runner import Attempts, GpuShare
from allranks.local.tracking.client import Tracking
from allranks.plan import codec, macros, values
from allranks.plan import secrets as plan_secrets
from allranks.plan.graph import Plan, StepOutput
from allranks.runs import history, secret_values
from allranks.runs.observer import Observer
from allranks.runs.recorder import Notebook
from allranks.runs.records import RunRecord, Status, StepRecord
from allranks.runs.store import Store
from allranks.runs.workspace import Workspace

AUTO = "auto"
"""The kind of instances that is the best that this machine can offer."""


class DiskFullError(Exception):
    """The disk under the workspace is full. Every process of the run is gone; what had ended before is kept."""


@dataclass(frozen=True)
class Options:
    """How a plan is run.

    instances:    auto, rack or loopback
    force_rerun:  whether earlier results are left aside
    retries:      how often a failed step is tried again
    slots:        how many ranks may run at once; a step of more runs alone. None: the number of cores
    gpus:         auto (each rank has its own), share, or how many may be used
    track:        whether steps that run Python get an MLflow run
    grace:        seconds from SIGTERM to SIGKILL when the run is stopped
    trigger_time: when the schedule fired that starts the run (without a time zone: in UTC). None: there is none. A run
                  that is resumed keeps its own
    run_name:     the job's name, which ``${{name}}`` stands for. None: the run's id
    """

    instances: str = AUTO
    force_rerun: bool = False
    retries: int = 0
    slots: int | None = None
    gpus: str = "auto"
    track: bool = True
    grace: float = 10.0
    trigger_time: datetime | None = None
    run_name: str | None = None


def run(plan: Plan, workspace: Workspace, options: Options, observer: Observer | None = None) -> RunRecord:
    """Runs the plan and returns its record once no process of it is left.

    Raises InputError for a plan that cannot run, before anything is started or written, or where another engine holds
    the workspace; DiskFullError.
    """
    if problems := requirements.problems(plan):
        raise InputError(*problems)
    identity = secrets.token_hex(4)
    record = RunRecord(
        id=identity,
        name=plan.name,
        display_name=plan.display_name or plan.name,
        source=plan.source,
        instances=options.instances,
        created=time.time(),
        job_name=options.run_name or identity,
        trigger_time=None if options.trigger_time is None else macros.seconds(options.trigger_time),
        folder=str(workspace.runs / identity),
        steps=[_new_step(plan, name, workspace.runs / identity) for name in (step.name for step in plan.steps)],
    )
    filled = macros.filled(plan, record)
    given = {port.name: values.resolve(filled, port.value, str) for port in filled.inputs}
    record.inputs = {name: text for name, text in given.items() if text is not None}
    hidden = plan_secrets.hidden(codec.dumps(plan))

    def keep() -> None:
        secret_values.save(Path(record.folder), hidden.values)
        store.add_run(record, hidden.plan)

    with _held(workspace) as store:
        return _execute(filled, record, workspace, store, options, observer, keep, hidden.known)


def resume(run_id: str, workspace: Workspace, options: Options, observer: Observer | None = None) -> RunRecord:
    """Goes on with a run that was interrupted, stopped, or failed: its finished steps stay as they are.

    A step that was under way starts again, with what it wrote to its outputs still there, as after an eviction on Azure
    ML. Raises InputError where there is no such run, or it is complete; else as `run`.
    """
    history.run(workspace, run_id)  # says what is wrong where there is none, and makes no workspace
    with _held(workspace) as store:
        record = store.run(run_id)
        if record.submitted is not None:
            found = f"runs in Azure ML, in the workspace {record.submitted.workspace_name}"
            raise InputError(Problem(f"run {record.id}", found, "a run on this machine", "submit it again"))
        if record.status is Status.COMPLETED:
            expected = "a run that was interrupted, stopped, or failed"
            raise InputError(Problem(f"run {record.id}", "is complete", expected, f"see: allranks show {record.id}"))
        text = plan_secrets.restored(store.plan(run_id), secret_values.load(Path(record.folder)))
        plan, known = codec.loads(text), plan_secrets.hidden(text).known
        for step in record.steps:
            if step.status is not Status.COMPLETED and step.status is not Status.NOT_STARTED:
                step.status, step.attempt = Status.NOT_STARTED, step.attempt + 1
        if options.instances == AUTO:
            options = replace(options, instances=record.instances)
        return _execute(macros.filled(plan, record), record, workspace, store, options, observer, lambda: None, known)


@contextlib.contextmanager
def _held(workspace: Workspace) -> Iterator[Store]:
    try:
        with workspace.hold(), Store(workspace.database) as store:
            store.interrupt()
            yield store
    except (OSError, sqlite3.OperationalError) as error:
        if getattr(error, "errno", None) == errno.ENOSPC or "disk is full" in str(error):
            raise DiskFullError(f"no space left on the disk of {workspace.root}") from error
        raise


def _new_step(plan: Plan, name: str, folder: Path) -> StepRecord:
    step = plan.step(name)
    return StepRecord(
        name=step.name,
        display_name=step.display_name or step.name,
        component=step.component,
        distribution=step.distribution.type,
        instance_count=step.instance_count,
        process_count_per_instance=processes_per_instance(step.distribution),
        needs=step.needs(),
        folder=str(folder / step.name),
    )


def _execute(
    plan: Plan,
    record: RunRecord,
    workspace: Workspace,
    store: Store,
    options: Options,
    observer: Observer | None,
    keep: Callable[[], None],
    known: frozenset[str],
) -> RunRecord:
    """Runs the steps that are not finished.

    keep:  adds the run to the store, once it is clear that it can run here
    known: the plan's secrets
    """
    from allranks.runs.page.page import write_page

    available = gpus.found(os.environ)
    if problems := gpus.problems(plan, options.gpus, available):
        raise InputError(*problems)
    notebook = Notebook(record, store, observer or Observer(), known)
    share = functools.partial(gpus.of_instances, choice=options.gpus, available=available)
    asyncio.run(_run(plan, record, workspace, notebook, options, share, keep))
    record.ended = time.time()
    record.outputs = _pipeline_outputs(plan, record)
    page = Path(record.folder) / "run.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    write_page(record, page)
    record.page = str(page)
    notebook.ended()
    if record.status is Status.COMPLETED:
        secret_values.remove(Path(record.folder))
    return record


async def _run(
    plan: Plan,
    record: RunRecord,
    workspace: Workspace,
    notebook: Notebook,
    options: Options,
    share: GpuShare,
    keep: Callable[[], None],
) -> None:
    tracking = Tracking(workspace, wanted=options.track)
    if any(tracking.tracks(step) for step in plan.steps):
        tracking.warm_up()
    try:
        supervisor, missing = await _start_supervisor(options.instances)
        try:
            record.instances, record.status = supervisor.kind, Status.RUNNING
            keep()
            notebook.started()
            if missing:
                notebook.note(None, f"instances are on {supervisor.kind}; this machine has no {missing}")
            await _run_steps(plan, record, workspace, notebook, options, supervisor, tracking, share)
        finally:
            await supervisor.close()
    finally:
        await tracking.close()


async def _run_steps(
    plan: Plan,
    record: RunRecord,
    workspace: Workspace,
    notebook: Notebook,
    options: Options,
    supervisor: Supervisor,
    tracking: Tracking,
    share: GpuShare,
) -> None:
    attempts = Attempts(
        plan,
        record,
        workspace,
        notebook,
        supervisor,
        INSTANCE_KINDS[supervisor.kind],
        tracking,
        share,
        force_rerun=options.force_rerun or plan.force_rerun,
    )
    executor = Executor(
        plan,
        record,
        Slots(options.slots or os.cpu_count() or 1),
        attempts,
        notebook.note,
        halt=lambda: attempts.stop(options.grace),
        retries=options.retries,
    )
    with _interruptible(executor, attempts, options.grace, lambda text: notebook.note(None, text)):
        record.status = await executor.execute()


async def _start_supervisor(kind: str) -> tuple[Supervisor, str]:
    """A supervisor for the kind of instances that is asked for or, for `auto`, the first that this machine can offer,
    and what it cannot, with the reason.

    Raises InputError where it cannot offer what is asked for.
    """
    missing: list[str] = []
    for name in INSTANCE_KINDS if kind == AUTO else (kind,):
        try:
            return await Supervisor.start(name), "; ".join(missing)
        except UnfitError as error:
            missing.append(f"{name}: {error}")
    fix = "use --instances loopback, which works everywhere"
    raise InputError(Problem("--instances", f"this machine has no {'; '.join(missing)}", "", fix))


@contextlib.contextmanager
def _interruptible(executor: Executor, attempts: Attempts, grace: float, say: Callable[[str], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the run: once in good order, twice at once."""
    loop = asyncio.get_running_loop()
    stops: list[asyncio.Task[None]] = []

    def interrupted(number: signal.Signals) -> None:
        executor.stop()
        then = "ranks are ended at once" if stops else f"ranks have {grace:g} s to end; another one ends them at once"
        say(f"stopped by {number.name}: {then}")
        stops.append(loop.create_task(attempts.kill() if stops else attempts.stop(grace)))

    handled = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        try:
            loop.add_signal_handler(number, interrupted, number)
        except (RuntimeError, ValueError):
            break  # not on the main thread: whoever owns that has the signals
        handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
        for task in stops:
            task.cancel()


def _pipeline_outputs(plan: Plan, record: RunRecord) -> dict[str, str]:
    output_of = values.outputs_of(record)
    written = {StepOutput(step.name, output.name) for step in record.steps for output in step.outputs}
    return {output.name: output_of(output.source) for output in plan.outputs if output.source in written}
