"""Run plans on this machine, and resume runs whose engine was stopped."""

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Container, Iterator
from dataclasses import replace
from pathlib import Path

from allranks.contract.report import FULL_DISK_NUMBERS
from allranks.errors import InputError, Problem
from allranks.history import locks, secret_values, stored
from allranks.history.cleaning import size_of
from allranks.history.node_records import graph_records
from allranks.history.observer import Observer
from allranks.history.recorder import RunRecorder
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.history.store import Store
from allranks.local import gpus, stop_signals
from allranks.local.data.inputs import fetch_data
from allranks.local.executor import initial_record
from allranks.local.nodes.sweep import finished_trials
from allranks.local.options import AUTO, Options
from allranks.local.run_context import RunContext
from allranks.local.run_execution import RunExecution
from allranks.local.selection import modes_of
from allranks.local.slots import SharedLocks
from allranks.plan import codec, values
from allranks.plan import secrets as plan_secrets
from allranks.plan.graph import Plan
from allranks.text import in_bytes
from allranks.workspace import Workspace


class DiskFullError(Exception):
    """The disk of the workspace is full. All processes of the run have ended; results that were saved before remain."""


def run(
    plan: Plan,
    workspace: Workspace,
    options: Options,
    observer: Observer | None = None,
    origin: RunRecord | None = None,
) -> RunRecord:
    """Run the plan. Return its record after all its processes have ended.

    origin:  the run whose results are used for the steps that the selection reuses; None: any run with a result for the
             same code and inputs

    The caller has checked the plan (`requirements`). Raise InputError if its data cannot be downloaded, DiskFullError
    if the disk is full.
    """
    with stop_signals.raised():
        plan, notes = fetch_data(plan, workspace, offline=options.offline, sample=options.sample)
        modes = modes_of(plan.graph, options.selection)
        record = _new_record(plan, workspace, options)
        with _open(workspace, record.id) as store:
            context, hidden = _prepare(plan, record, workspace, options, store, observer)

            def save() -> None:
                secret_values.save(Path(record.folder), hidden.values | secret_values.of_settings(options.settings))
                store.add_run(record, hidden.plan)

            context = replace(context, modes=modes, origin=origin)
            return RunExecution(context, store, notes).execute({}, save)


def _new_record(plan: Plan, workspace: Workspace, options: Options) -> RunRecord:
    identity = secrets.token_hex(4)
    folder = workspace.run_folder(identity)
    return RunRecord(
        id=identity,
        name=plan.name,
        display_name=plan.display_name or plan.name,
        source=plan.source,
        instances=options.instances,
        created=time.time(),
        job_name=options.run_name or identity,
        trigger_time=None if options.trigger_time is None else values.seconds(options.trigger_time),
        folder=str(folder),
        steps=list(graph_records(plan.graph, folder)),
        target=options.target,
        settings=dict(options.settings),
    )


def require_local(record: RunRecord) -> None:
    """Raise InputError for a run in Azure ML."""
    if record.submitted is not None:
        found = f"runs in Azure ML, in the workspace {record.submitted.workspace_name}"
        raise InputError(Problem(f"run {record.id}", found, "a run on this machine", "submit it again"))


def require_resumable(record: RunRecord) -> None:
    """Raise InputError for a run in Azure ML or a complete run."""
    require_local(record)
    if record.status is Status.COMPLETED:
        expected = "a run that was interrupted, stopped, or failed"
        fix = f"to run it again: allranks rerun {record.id}"
        raise InputError(Problem(f"run {record.id}", "is complete", expected, fix, code="run-is-complete"))


def stored_plan(record: RunRecord, workspace: Workspace, replaced: Container[str] = ()) -> Plan:
    """Return the plan of a run, with its secrets. Raise InputError if a secret is missing.

    replaced: names of inputs with new values, whose stored secrets are not needed
    """
    secrets_of_plan = secret_values.load(Path(record.folder))
    with Store(workspace.database, reads=True) as store:
        return codec.loads(plan_secrets.restored(store.plan(record.id), secrets_of_plan, replaced))


def resume(
    run_id: str, workspace: Workspace, options: Options, observer: Observer | None = None, latest: Plan | None = None
) -> RunRecord:
    """Resume a run that was interrupted, stopped, or failed. Its finished nodes do not run again.

    A step that was running starts again with its earlier output files in place, as after an eviction on Azure ML. A
    loop continues with its current iteration.

    latest: the latest version of the run's plan. The run continues with it, and keeps the results of finished steps
            whose code and inputs have not changed. None: the run continues with the plan and code that it started with

    Raise InputError if there is no such run, it is complete, or another process executes it. Otherwise raise as `run`
    does.
    """
    # Raises InputError if the run does not exist, without creating a workspace.
    existing = stored.run(workspace, run_id)
    require_local(existing)
    with stop_signals.raised(), _open(workspace, existing.id) as store:
        record = store.run(existing.id)
        store.load_usage(record)  # for the page
        require_resumable(record)
        if options.instances == AUTO:
            options = replace(options, instances=record.instances)
        plan, _ = fetch_data(latest or stored_plan(record, workspace), workspace, offline=options.offline)
        record.ended = None
        if latest is not None:
            return _continue(record, plan, workspace, store, options, observer)
        decisions = store.decisions(record.id)
        settled = finished_trials(record.steps, decisions)
        for step in record.steps:
            if step.name not in settled:
                # The last node runs after the others of this execution too.
                _reset(step, again=step.name == plan.graph.last)
        context, _ = _prepare(plan, record, workspace, options, store, observer)

        def save() -> None:
            # Other processes must see immediately that failed steps run again.
            for step in record.steps:
                store.save_step(record, step)

        return RunExecution(context, store).execute(decisions, save)


def _prepare(
    plan: Plan, record: RunRecord, workspace: Workspace, options: Options, store: Store, observer: Observer | None
) -> tuple[RunContext, plan_secrets.Hidden]:
    """Return the context of an execution of the plan, and the plan without its secrets. Set the record's inputs."""
    triggered = record.created if record.trigger_time is None else record.trigger_time
    filled = values.filled(plan, record.job_name or record.id, triggered)
    record.inputs = {name: text for name, text in values.inputs_of(filled).items() if text is not None}
    hidden = plan_secrets.hidden(codec.dumps(plan))
    recorder = RunRecorder(record, store, observer, hidden.known)
    return RunContext(filled, record, workspace, options, recorder, gpus.find(os.environ)), hidden


def _continue(
    record: RunRecord, plan: Plan, workspace: Workspace, store: Store, options: Options, observer: Observer | None
) -> RunRecord:
    """Execute every node of a new version of a run's plan. Reuse results that are still valid."""
    folder = Path(record.folder)
    earlier = replace(record, steps=record.steps)
    record.steps = [initial_record(fresh, earlier) for fresh in graph_records(plan.graph, folder)]
    record.settings = dict(options.settings)
    context, hidden = _prepare(plan, record, workspace, options, store, observer)

    def save() -> None:
        secret_values.save(folder, hidden.values | secret_values.of_settings(options.settings))
        for sweep in (step for step in earlier.steps if step.kind == "sweep"):
            store.clear_points(record.id, sweep.name)
        store.put_run(record, hidden.plan)

    return RunExecution(replace(context, earlier=earlier), store).execute({}, save)


def _reset(step: StepRecord, *, again: bool) -> None:
    """Reset a node that has not finished, so that it runs again. again: whether a finished one runs again too"""
    finished = step.status in (Status.COMPLETED, Status.SKIPPED) and not again
    if finished or step.status is Status.NOT_STARTED:
        return
    step.status, step.ended, step.verdict = Status.NOT_STARTED, None, None
    step.outputs, step.artifacts, step.progress = [], [], None
    if step.kind == "command":
        step.attempt += 1


@contextlib.contextmanager
def _open(workspace: Workspace, run_id: str) -> Iterator[Store]:
    """Open the store, and hold the run's lock, for the duration of the block."""
    SharedLocks().check()
    try:
        workspace.make()
        with locks.hold(workspace.run_folder(run_id)), Store(workspace.database) as store:
            store.interrupt(lambda other: locks.holder(workspace.run_folder(other)) is not None)
            try:
                yield store
            except BaseException:
                if not store.has(run_id):  # the run was not created
                    shutil.rmtree(workspace.run_folder(run_id), ignore_errors=True)
                raise
    except OSError as error:
        if error.errno in FULL_DISK_NUMBERS:
            raise DiskFullError(_full_disk(workspace, run_id, error)) from error
        raise


def _full_disk(workspace: Workspace, run_id: str, error: OSError) -> str:
    """Describe the file that could not be written, and the step of the run that has written most."""
    text = f"no space left on the disk of {workspace.root}"
    if error.filename:
        text += f" for {os.path.relpath(os.fsdecode(error.filename), workspace.root)}"
    with contextlib.suppress(OSError, ValueError):
        size, name = max((size_of(each), each.name) for each in workspace.run_folder(run_id).iterdir() if each.is_dir())
        text += f"; most of run {run_id} is in {name}: {in_bytes(size)}"
    return text
