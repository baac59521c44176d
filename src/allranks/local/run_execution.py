"""One execution of a run by this process: its signals, its supervisor, its tracking, and its page at the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.local import gpus, requirements, stop_signals
from allranks.local.attempt.runner import CommandRunner, Settings
from allranks.local.attempt.tracked_run import status_of
from allranks.local.executor import Executor
from allranks.local.forkserver.warm.early import EarlyStarters
from allranks.local.instances.kinds import INSTANCE_KINDS
from allranks.local.instances.supervisor import Supervisor, UnfitError
from allranks.local.nodes.runners import RUNNERS
from allranks.local.options import AUTO, Options
from allranks.local.scope import Scope, text_of
from allranks.local.selection import EVERYTHING, Modes
from allranks.local.slots import Slots
from allranks.local.tracking.client import ParentRun, Tracking, TrackingError
from allranks.local.tracking.process import EarlyTracker
from allranks.plan import values
from allranks.plan.graph import Plan, command_job, steps
from allranks.plan.output_paths import passed_on
from allranks.runs import secret_values
from allranks.runs.observer import Observer, Observers
from allranks.runs.recorder import RunRecorder, results_of
from allranks.runs.records import RunRecord, Status
from allranks.runs.store import Store
from allranks.runs.workspace import Workspace


class RunExecution:
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
        modes: Modes = EVERYTHING,
        origin: RunRecord | None = None,
        earlier: RunRecord | None = None,
        tracker: EarlyTracker | None = None,
        starters: EarlyStarters | None = None,
    ) -> None:
        self._tracker = tracker
        self._starters = starters
        self._modes = modes
        self._origin = origin
        self._earlier = earlier
        self._plan = plan
        self._record = record
        self._workspace = workspace
        self._store = store
        self._options = options
        from allranks.runs.page.live_page import LivePage  # slow to import

        self._page = LivePage(Path(record.folder), secrets)
        self._recorder = RunRecorder(record, store, Observers([self._page, observer or Observer()]), secrets)
        self._executor: Executor | None = None
        self._runner: CommandRunner | None = None
        self._starting: asyncio.Task[Any] | None = None
        self._tracking: Tracking | None = None
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
        parent = _parent_of(self._plan, self._record)
        self._tracking = tracking = Tracking(
            self._workspace, enabled=self._options.track, parent=parent, early=self._tracker
        )
        if any(tracking.tracks(step) for _, step in steps(self._plan.graph)):
            tracking.warm_up()
        try:
            supervisor, missing = await _start_supervisor(self._options.instances, self._warm())
            try:
                self._starting = None
                kind, folder = INSTANCE_KINDS[supervisor.kind], Path(self._record.folder)
                if problems := requirements.of_instances(self._plan, self._options.mpi, kind, folder):
                    raise InputError(*problems)
                self._record.instances, self._record.status = supervisor.kind, Status.RUNNING
                self._record.page = str(self._page.path)
                save()
                self._recorder.started()
                if missing:
                    self._recorder.note(None, f"instances are on {supervisor.kind}; this machine has no {missing}")
                scope = await self._run_graph(supervisor, tracking, decisions)
                await _end_parent(tracking, self._recorder, self._record)
                return scope
            finally:
                await supervisor.close()
        finally:
            await tracking.close()

    def _warm(self) -> str:
        """Return the socket of the process that lends starters to this run; "" if there is none."""
        if self._starters is not None and self._starters.socket:
            return self._starters.socket
        return str(self._workspace.warm) if self._workspace.warm.exists() else ""

    def _finish(self, scope: Scope) -> None:
        """Record how the run ended, and write its page. It contains no await, so no signal is handled meanwhile."""
        record = self._record
        record.ended = time.time()
        record.outputs = {output.name: text_of(output) for output in scope.outputs()}
        self._page.finish(record)
        self._recorder.ended()
        if record.status is Status.COMPLETED:
            secret_values.remove(Path(record.folder))

    async def _run_graph(
        self, supervisor: Supervisor, tracking: Tracking, decisions: Mapping[tuple[str, str], str]
    ) -> Scope:
        plan, options = self._plan, self._options
        runner = CommandRunner(
            self._record,
            Settings(
                plan.experiment or plan.name,
                plan.source,
                options.force_rerun or plan.force_rerun,
                self._origin,
                self._earlier,
                options.cold,
                options.mpi,
                options.start_timeout,
            ),
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
            modes=self._modes,
            earlier=self._earlier,
        )
        self._executor, self._runner = executor, runner
        self._cancel()  # handle requests that arrived while the run started
        try:
            return await executor.execute(plan.graph, inputs_of(plan), passed_on(plan.graph, {}))
        finally:
            self._executor = self._runner = None
            if self._starters is not None:
                self._starters.remember(runner.starters)
            runner.close()
            with contextlib.suppress(
                sqlite3.Error
            ):  # of a full disk, for example, which ends the run with its own error
                self._recorder.flush()
            for task in self._tasks:
                task.cancel()

    def _stop(self, number: signal.Signals) -> None:
        """Stop the run: the first time with a grace period, then immediately."""
        if self._executor is None or self._runner is None:
            if self._starting is not None:
                self._starting.cancel()
                self._starting = None
            elif self._tracking is not None:
                self._tracking.abandon()  # the graph has ended, and only MLflow may still be working
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


async def _start_supervisor(kind: str, warm: str) -> tuple[Supervisor, str]:
    """Return a supervisor for a kind of instances, and a note on each preferred kind that this machine does not
    support.

    `auto` selects the first supported kind. Raise InputError if the kind is not supported.
    """
    missing: list[str] = []
    for name in INSTANCE_KINDS if kind == AUTO else (kind,):
        try:
            return await Supervisor.start(name, warm), "; ".join(missing)
        except UnfitError as error:
            missing.append(f"{name}: {error}")
    fix = "use --instances loopback, which works everywhere"
    found = f"this machine has no {'; '.join(missing)}"
    raise InputError(Problem("--instances", found, "", fix, code="no-user-namespaces"))


def inputs_of(plan: Plan) -> dict[str, str | None]:
    """Return the pipeline's inputs as text."""
    return {port.name: values.resolve(port.value, lambda _: None) for port in plan.graph.inputs}


def _parent_of(plan: Plan, run: RunRecord) -> ParentRun | None:
    """Return the parent of the steps' MLflow runs; None for a command job, whose only run has no parent on Azure ML
    either. A resumed run has the parent that it had before."""
    if command_job(plan) is not None:
        return None
    tags = {"allranks.run": run.id, "mlflow.source.name": plan.source}
    return ParentRun(
        run.display_name or run.name, {name: tag for name, tag in tags.items() if tag}, run.inputs, run.mlflow_run_id
    )


async def _end_parent(tracking: Tracking, recorder: RunRecorder, run: RunRecord) -> None:
    """Add the models that the run's steps registered to their records, and end the pipeline's MLflow run.

    If MLflow fails, add a note.
    """
    if not tracking.enabled:
        return
    steps = {step.mlflow_run_id: step for step in run.steps if step.mlflow_run_id and not step.reused_from}
    if not steps:
        return
    try:
        for run_id, models in (await tracking.registered(list(steps))).items():
            steps[run_id].models = models
            recorder.save(steps[run_id])
    except TrackingError as error:
        recorder.note(None, f"MLflow gave no list of registered models: {error}")
    if tracking.parent_id is None:
        return
    try:
        await tracking.finish(status_of(run.status), results_of(run))
    except TrackingError as error:
        recorder.note(None, f"MLflow did not end the pipeline's run: {error}")
