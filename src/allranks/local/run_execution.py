"""One execution of a run by this process: its signals, its supervisor, its tracking, and its page at the end."""

import asyncio
import contextlib
import logging
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from allranks import engine_log, packages
from allranks.errors import raise_any
from allranks.history import secret_values
from allranks.history.page.live_page import LivePage
from allranks.history.records import RunRecord, Status
from allranks.history.store import Store
from allranks.local import gpus, requirements, stop_signals
from allranks.local.attempt.runner import CommandRunner
from allranks.local.attempt.running_steps import RunningSteps
from allranks.local.attempt.services import Services
from allranks.local.executor import Executor
from allranks.local.instances.supervisor import INSTANCE_KINDS, Supervisor, start_supervisor
from allranks.local.nodes import RUNNERS
from allranks.local.run_context import RunContext
from allranks.local.scope import Scope, text_of
from allranks.local.slots import SharedLocks, Slots
from allranks.local.tracking.client import Tracking
from allranks.local.tracking.tracked_runs import end_parent, parent_of
from allranks.plan import values
from allranks.plan.values import graph_output_paths
from allranks.plan.walk import left_out, steps
from allranks.secrets import redact

_log = logging.getLogger(__name__)
_WAITS = "waits for slots or GPUs that"


class RunExecution:
    """One execution of a run, new or resumed."""

    def __init__(self, context: RunContext, store: Store, notes: Sequence[str] = ()) -> None:
        """notes: added to the record when the run has started. Raise InputError if the plan needs other GPUs."""
        self._context, self._store, self._notes = context, store, notes
        self._record, self._options, self._recorder = context.run, context.options, context.recorder
        self._log_file = str(Path(context.run.folder) / engine_log.FILE)
        self._page = LivePage(context.run, context.workspace.database, context.recorder.known)
        self._executor: Executor | None = None
        self._running: RunningSteps | None = None
        self._starting: asyncio.Task[Any] | None = None
        self._tracking: Tracking | None = None
        self._stops = 0
        self._tasks: list[asyncio.Task[None]] = []
        raise_any(gpus.problems(context.plan, context.options.gpus, context.gpus))

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
        plan = self._context.plan
        parent = parent_of(plan, self._record)
        self._tracking = tracking = Tracking(
            self._context.workspace, enabled=self._options.track, parent=parent, log=Path(self._log_file)
        )
        if any(tracking.tracks(step) for _, step in steps(plan.graph)):
            tracking.start()
        try:
            supervisor, missing = await start_supervisor(
                self._options.instances, self._log_file, offline=self._options.offline
            )
            try:
                self._starting = None
                kind = INSTANCE_KINDS[supervisor.kind]
                raise_any(requirements.instance_problems(plan, self._options, kind))
                was_killed = self._record.status in (Status.RUNNING, Status.INTERRUPTED)
                self._record.instances, self._record.status = supervisor.kind, Status.RUNNING
                self._record.page = str(self._page.path)
                save()
                with contextlib.suppress(OSError):
                    engine_log.start(self._log_file, "engine", lambda line: redact(line, self._recorder.known))
                _log.info("run started", extra={"run": self._record.id, "instances": supervisor.kind})
                self._recorder.started()
                self._page.start(len(self._record.steps))
                if was_killed:
                    _log.warning("engine was killed", extra={"run": self._record.id})
                    self._recorder.note(None, "the engine that executed the run before was killed")
                keys = (f"{key} of {path}" for path, step in steps(plan.graph) for key in step.azure_only)
                only = ", ".join(keys)
                of_plan = [*left_out(plan), *([f"no effect on this machine: {only}"] if only else [])]
                of_plan += requirements.unprotected_inputs(plan, kind)
                for text in (*(text for text in of_plan if text not in self._record.notes), *self._notes):
                    self._recorder.note(None, text)
                if self._options.offline and not kind.isolated:
                    self._recorder.note(None, f"--offline has no effect on instances on {supervisor.kind}")
                if missing:
                    self._recorder.note(None, f"instances are on {supervisor.kind}; this machine has no {missing}")
                scope = await self._run_graph(supervisor, tracking, decisions)
                await end_parent(tracking, self._recorder, self._record)
                return scope
            finally:
                await supervisor.close()
                _log.info("run ended", extra={"run": self._record.id, "status": self._record.status.value})
                engine_log.stop()
        finally:
            await tracking.close()

    def _finish(self, scope: Scope) -> None:
        """Record how the run ended, and write its page. It contains no await, so no signal is handled in between."""
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
        context, options, injector = self._context, self._options, None
        if options.faults:
            injector = packages.faults(options.faults).injector(context.plan, self._record, self._recorder, supervisor)
        services = Services(context, supervisor, tracking, injector)
        self._note_wait(())  # the engine may have been killed during an earlier wait
        slots = Slots(
            options.slots or os.cpu_count() or 1,
            gpus.select(options.gpus, context.gpus),
            SharedLocks(owner=f"run {self._record.id} of {self._record.name}"),
            notice=self._note_wait,
        )
        executor = Executor(context, RUNNERS, CommandRunner(context, services), slots, decisions)
        self._executor, self._running = executor, services.running
        self._cancel()  # handle requests that arrived while the run started
        try:
            graph = context.plan.graph
            scope = Scope(graph, "", values.inputs_of(context.plan), graph_output_paths(graph, {}))
            self._record.status = await executor.run_graph(scope)
            return scope
        finally:
            self._executor = self._running = None
            services.close()
            with contextlib.suppress(
                sqlite3.Error
            ):  # of a full disk, for example, which ends the run with its own error
                self._recorder.flush()
            for task in self._tasks:
                task.cancel()

    def _note_wait(self, holders: Sequence[str]) -> None:
        """Note for which runs this one waits; without runs, remove the note."""
        self._recorder.remove_notes(_WAITS)
        if holders:
            self._recorder.note(None, f"{_WAITS} {' and '.join(holders)} {'uses' if len(holders) == 1 else 'use'}")

    def _stop(self, number: signal.Signals) -> None:
        """Stop the run: the first time with a grace period, then immediately."""
        if self._executor is None or self._running is None:
            if self._starting is not None:
                self._starting.cancel()
                self._starting = None
            elif self._tracking is not None:
                self._tracking.abandon()  # the graph has ended, and only MLflow may still be working
            return
        grace, again = self._options.grace, self._stops > 0
        self._stops += 1
        self._executor.stop()
        _log.info("signal received", extra={"signal": number.name})
        effect = "ranks are killed" if again else f"ranks have {grace:g} s to exit; another signal kills them"
        self._recorder.note(None, f"stopped by {number.name}: {effect}")
        self._create_task(self._running.kill() if again else self._running.stop(grace))

    def _cancel(self) -> None:
        """Cancel the nodes for which a user has requested it since the last call."""
        if self._executor is None:
            return  # the run is starting and calls this later, or it has ended
        for path in self._store.cancellations(self._record.id):
            _log.info("node canceled", extra={"node": path})
            self._recorder.note(None, f"{path} is canceled")
            self._create_task(self._executor.cancel(path))

    def _create_task(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))
