"""Run plans on this machine, and resume runs whose engine was stopped."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import secrets
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.local import gpus, requirements, stop_signals
from allranks.local.executor import Executor
from allranks.local.instances.kinds import INSTANCE_KINDS
from allranks.local.instances.supervisor import Supervisor, UnfitError
from allranks.local.nodes.runners import RUNNERS
from allranks.local.scope import Scope, text_of
from allranks.local.slots import Slots
from allranks.local.step.runner import CommandRunner, Settings
from allranks.local.tracking.client import Tracking
from allranks.plan import codec, macros, values
from allranks.plan import secrets as plan_secrets
from allranks.plan.graph import Plan, steps
from allranks.plan.node_records import graph_records
from allranks.plan.output_paths import passed_on
from allranks.runs import history, locks, secret_values
from allranks.runs.observer import Observer
from allranks.runs.recorder import RunRecorder
from allranks.runs.records import RunRecord, Status, StepRecord
from allranks.runs.store import Store
from allranks.runs.workspace import Workspace

AUTO = "auto"
"""Selects the first kind of instances that this machine supports."""


class DiskFullError(Exception):
    """The disk of the workspace is full. All processes of the run have ended; results that were saved before remain."""


@dataclass(frozen=True)
class Options:
    """Options of a run.

    instances:    auto, rack or loopback
    force_rerun:  whether to ignore earlier results
    retries:      maximum retries of a failed step
    slots:        maximum ranks at once; a step with more ranks runs alone. None: the number of cores
    gpus:         auto (each rank has its own), share, or the number of GPUs to use
    track:        whether steps that run Python get an MLflow run
    grace:        seconds from SIGTERM to SIGKILL when the run is stopped
    trigger_time: when the schedule fired that starts the run (without a time zone: in UTC); None without a schedule. A
                  resumed run keeps its own
    run_name:     the job's name, the value of ``${{name}}``. None: the run's id
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
    """Run the plan. Return its record after all its processes have ended.

    Raise InputError for a plan that cannot run, before anything is started or written. Raise DiskFullError if the disk
    is full.
    """
    if problems := requirements.problems(plan):
        raise InputError(*problems)
    identity = secrets.token_hex(4)
    folder = workspace.run_folder(identity)
    record = RunRecord(
        id=identity,
        name=plan.name,
        display_name=plan.display_name or plan.name,
        source=plan.source,
        instances=options.instances,
        created=time.time(),
        job_name=options.run_name or identity,
        trigger_time=None if options.trigger_time is None else macros.seconds(options.trigger_time),
        folder=str(folder),
        steps=list(graph_records(plan.graph, folder)),
    )
    filled = macros.filled(plan, record)
    record.inputs = {name: text for name, text in _inputs(filled).items() if text is not None}
    hidden = plan_secrets.hidden(codec.dumps(plan))
    with stop_signals.raised(), _opened(workspace, record.id) as store:

        def save() -> None:
            secret_values.save(folder, hidden.values)
            store.add_run(record, hidden.plan)

        execution = _Execution(filled, record, workspace, store, options, observer, hidden.known)
        return execution.execute({}, save)


def resume(run_id: str, workspace: Workspace, options: Options, observer: Observer | None = None) -> RunRecord:
    """Resume a run that was interrupted, stopped, or failed. Its finished nodes do not run again.

    A step that was running starts again with its earlier output files in place, as after an eviction on Azure ML. A
    loop continues with its current iteration. Raise InputError if there is no such run, it is complete, or another
    process executes it. Otherwise raise as `run` does.
    """
    existing = history.run(workspace, run_id)  # raises InputError if there is none, and creates no workspace
    if existing.submitted is not None:
        found = f"runs in Azure ML, in the workspace {existing.submitted.workspace_name}"
        raise InputError(Problem(f"run {existing.id}", found, "a run on this machine", "submit it again"))
    with stop_signals.raised(), _opened(workspace, existing.id) as store:
        record = store.run(existing.id)
        if record.status is Status.COMPLETED:
            expected = "a run that was interrupted, stopped, or failed"
            raise InputError(Problem(f"run {record.id}", "is complete", expected, f"see: allranks show {record.id}"))
        text = plan_secrets.restored(store.plan(record.id), secret_values.load(Path(record.folder)))
        plan, known = codec.loads(text), plan_secrets.hidden(text).known
        record.ended = None
        for step in record.steps:
            _reset(step)
        if options.instances == AUTO:
            options = replace(options, instances=record.instances)
        filled = macros.filled(plan, record)
        execution = _Execution(filled, record, workspace, store, options, observer, known)

        def save() -> None:
            # Other processes must see immediately that failed steps run again.
            for step in record.steps:
                store.save_step(record, step)

        return execution.execute(store.decisions(record.id), save)


def _reset(step: StepRecord) -> None:
    """Reset a node that has not finished, so that it runs again."""
    if step.status in (Status.COMPLETED, Status.SKIPPED, Status.NOT_STARTED):
        return
    step.status, step.ended, step.verdict = Status.NOT_STARTED, None, None
    step.outputs, step.artifacts, step.progress = [], [], None
    if step.kind == "command":
        step.attempt += 1


@contextlib.contextmanager
def _opened(workspace: Workspace, run_id: str) -> Iterator[Store]:
    """Open the store, and hold the run's lock, for the duration of the block."""
    workspace.make()
    try:
        with locks.hold(workspace.run_folder(run_id)), Store(workspace.database) as store:
            store.interrupt(lambda other: locks.holder(workspace.run_folder(other)) is not None)
            try:
                yield store
            except BaseException:
                if not store.has(run_id):  # the run was not created
                    shutil.rmtree(workspace.run_folder(run_id), ignore_errors=True)
                raise
    except (OSError, sqlite3.OperationalError) as error:
        if getattr(error, "errno", None) == errno.ENOSPC or "disk is full" in str(error):
            raise DiskFullError(f"no space left on the disk of {workspace.root}") from error
        raise


def _inputs(plan: Plan) -> dict[str, str | None]:
    """Return the pipeline's inputs as text."""
    return {port.name: values.resolve(port.value, lambda _: None) for port in plan.graph.inputs}


class _Execution:
    """One execution of a plan, new or resumed."""

    def __init__(
        self,
        plan: Plan,
        record: RunRecord,
        workspace: Workspace,
        store: Store,
        options: Options,
        observer: Observer | None,
        secrets: frozenset[str],
    ) -> None:
        self._plan = plan
        self._record = record
        self._workspace = workspace
        self._store = store
        self._options = options
        self._recorder = RunRecorder(record, store, observer or Observer(), secrets)
        self._executor: Executor | None = None
        self._runner: CommandRunner | None = None
        self._starting: asyncio.Task[Any] | None = None
        self._stops = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._gpus = gpus.found(os.environ)
        if problems := gpus.problems(plan, options.gpus, self._gpus):
            raise InputError(*problems)

    def execute(self, decisions: Mapping[tuple[str, str], str], save: Callable[[], None]) -> RunRecord:
        """Run the nodes that are not finished.

        decisions: decisions of nodes from before the run was resumed
        save:      adds the run to the store. Called when it is certain that the run can start here.
        """
        from allranks.runs.page import page  # noqa: F401  # slow to import, and `_finish` must not fail on it

        execution = self._run(decisions, save)
        try:
            asyncio.run(execution)
        except asyncio.CancelledError:
            # A signal arrived before there was anything to stop.
            raise KeyboardInterrupt from None
        finally:
            execution.close()  # a signal may have arrived before the event loop ran it
        return self._record

    async def _run(self, decisions: Mapping[tuple[str, str], str], save: Callable[[], None]) -> None:
        with stop_signals.handled(self._stop, self._cancel):
            stop_signals.check()
            self._finish(await self._run_with_supervisor(decisions, save))

    async def _run_with_supervisor(self, decisions: Mapping[tuple[str, str], str], save: Callable[[], None]) -> Scope:
        self._starting = asyncio.current_task()
        tracking = Tracking(self._workspace, enabled=self._options.track)
        if any(tracking.tracks(step) for _, step in steps(self._plan.graph)):
            tracking.warm_up()
        try:
            supervisor, missing = await _start_supervisor(self._options.instances)
            try:
                self._starting = None
                self._record.instances, self._record.status = supervisor.kind, Status.RUNNING
                save()
                self._recorder.started()
                if missing:
                    self._recorder.note(None, f"instances are on {supervisor.kind}; this machine has no {missing}")
                return await self._run_graph(supervisor, tracking, decisions)
            finally:
                await supervisor.close()
        finally:
            await tracking.close()

    def _finish(self, scope: Scope) -> None:
        """Record how the run ended, and write its page. It contains no await, so no signal is handled meanwhile."""
        from allranks.runs.page.page import write_page

        record = self._record
        record.ended = time.time()
        record.outputs = {output.name: text_of(output) for output in scope.outputs()}
        page = Path(record.folder) / "run.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        write_page(record, page)
        record.page = str(page)
        self._recorder.ended()
        if record.status is Status.COMPLETED:
            secret_values.remove(Path(record.folder))

    async def _run_graph(
        self, supervisor: Supervisor, tracking: Tracking, decisions: Mapping[tuple[str, str], str]
    ) -> Scope:
        plan, options = self._plan, self._options
        runner = CommandRunner(
            self._record,
            Settings(plan.experiment or plan.name, plan.source, options.force_rerun or plan.force_rerun),
            self._workspace,
            self._recorder,
            supervisor,
            INSTANCE_KINDS[supervisor.kind],
            tracking,
            lambda step, step_gpus: gpus.of_instances(step, options.gpus, self._gpus, step_gpus),
        )
        waiting_note = "waits for slots or GPUs that other runs on this machine use"
        slots = Slots(
            options.slots or os.cpu_count() or 1,
            gpus.allowed(options.gpus, self._gpus),
            notice=lambda: self._recorder.note(None, waiting_note),
        )
        executor = Executor(
            self._record,
            self._recorder,
            RUNNERS,
            runner,
            slots,
            gpus_of=lambda step: gpus.exclusive(step, options.gpus, self._gpus),
            halt=lambda: runner.running.stop(options.grace),
            decisions=decisions,
            retries=options.retries,
            continue_on_failure=plan.continue_on_step_failure,
        )
        self._executor, self._runner = executor, runner
        self._cancel()  # handle requests that arrived while the run started
        try:
            return await executor.execute(plan.graph, _inputs(plan), passed_on(plan.graph, {}))
        finally:
            self._executor = self._runner = None
            for task in self._tasks:
                task.cancel()

    def _stop(self, number: signal.Signals) -> None:
        """Stop the run: the first time with a grace period, then immediately."""
        if self._executor is None or self._runner is None:
            if self._starting is not None:
                self._starting.cancel()
                self._starting = None
            return
        running, grace, again = self._runner.running, self._options.grace, self._stops > 0
        self._stops += 1
        self._executor.stop()
        effect = "ranks are ended at once" if again else f"ranks have {grace:g} s to end; another one ends them at once"
        self._recorder.note(None, f"stopped by {number.name}: {effect}")
        self._create_task(running.kill() if again else running.stop(grace))

    def _cancel(self) -> None:
        """Cancel the nodes for which a user has requested it since the last call."""
        if self._executor is None:
            return  # the run is starting and calls this later, or it has ended
        for path in self._store.cancellations(self._record.id):
            self._recorder.note(None, f"{path} is canceled")
            self._create_task(self._executor.cancel(path))

    def _create_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))


async def _start_supervisor(kind: str) -> tuple[Supervisor, str]:
    """Return a supervisor for a kind of instances, and a note on each preferred kind that this machine does not
    support.

    `auto` selects the first supported kind. Raise InputError if the kind is not supported.
    """
    missing: list[str] = []
    for name in INSTANCE_KINDS if kind == AUTO else (kind,):
        try:
            return await Supervisor.start(name), "; ".join(missing)
        except UnfitError as error:
            missing.append(f"{name}: {error}")
    fix = "use --instances loopback, which works everywhere"
    raise InputError(Problem("--instances", f"this machine has no {'; '.join(missing)}", "", fix))
