"""Run the steps of one run: reuse an earlier result, or make an attempt on emulated instances."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.history.recorder import RunRecorder
from allranks.history.records import Point, RunRecord, Status, StepRecord, Verdict
from allranks.local import gpus, interpreters, rank_environment
from allranks.local.attempt.attempt import Attempt, AttemptContext
from allranks.local.attempt.digests import Digests, FileDigests
from allranks.local.attempt.earlier_results import EarlierResult, EarlierResults, is_intact, restore
from allranks.local.attempt.environment import JobSettings
from allranks.local.attempt.running_steps import RunningSteps, StepStops, judged, run_io
from allranks.local.attempt.stage import InstancePaths
from allranks.local.forkserver.choice import ForkServers
from allranks.local.instances import temporary
from allranks.local.instances.instance import InstanceKind
from allranks.local.instances.supervisor import Supervisor
from allranks.local.options import Options
from allranks.local.scope import Scope
from allranks.local.selection import Mode
from allranks.local.slots import Machines, Share
from allranks.local.tracking.client import Tracking, TrackingError
from allranks.local.tracking.server import MlflowServer
from allranks.plan import values
from allranks.plan.graph import Plan, Step
from allranks.workspace import Workspace

_log = logging.getLogger(__name__)


class CommandRunner:
    """Run the commands of the steps of one run. Update and save each step's record, and notify the observer.

    gpus:    of this machine that the engine may use
    origin:  the run whose results the steps in mode REUSE take; None: any run with a result for the same inputs
    earlier: this run as it was before it continued with the latest code
    injector: the `Injector` of allranks-lab; None without faults
    """

    def __init__(
        self,
        plan: Plan,
        options: Options,
        run: RunRecord,
        workspace: Workspace,
        recorder: RunRecorder,
        supervisor: Supervisor,
        kind: InstanceKind,
        tracking: Tracking,
        gpus: Sequence[str],
        origin: RunRecord | None = None,
        earlier: RunRecord | None = None,
        injector: Any = None,
    ) -> None:
        self._options = options
        self._run = run
        self._recorder = recorder
        self._gpus = gpus
        self._earlier = earlier
        self._injector = injector
        self._machines = Machines()
        self._file_digests = FileDigests(workspace.file_digests)
        self._context = AttemptContext(
            plan,
            options,
            JobSettings(
                run.id,
                plan.experiment or plan.name,
                workspace.tracking_uri,
                shutil.which("bash") or "/bin/sh",
            ),
            recorder,
            supervisor,
            kind,
            tracking,
            MlflowServer(supervisor, workspace, Path(run.folder)),
            RunningSteps(supervisor, tracking),
            ForkServers(supervisor, kind, plan.source, tracking.tracks, self._is_cold),
            workspace.temporary,
            self._file_digests,
            InstancePaths(str(workspace.root)),
            injector,
        )
        asyncio.get_running_loop().run_in_executor(None, temporary.sweep, workspace.temporary)
        self._digests = Digests(self._file_digests)
        for record in (*run.steps, *(earlier.steps if earlier else ())):
            if record.status is Status.COMPLETED:
                self._digests.add(record.outputs)
        self._results = EarlierResults(
            recorder,
            self._digests,
            plan.source,
            force_rerun=options.force_rerun or plan.force_rerun,
            origin=origin,
            earlier=earlier,
        )

    @property
    def running(self) -> RunningSteps:
        return self._context.running

    def _is_cold(self, step: Step) -> bool:
        """Return whether the ranks of a step start as new processes. Old interpreters have no fork server."""
        interpreter = interpreters.of_environment(step.environment, self._context.plan.source)
        return self._options.cold or not interpreters.runs_fork_server(interpreter)

    async def reuse(self, scope: Scope, step: Step, record: StepRecord, mode: Mode) -> bool:
        """Reuse an earlier result if the mode allows it and there is one. Return whether the step has ended.

        Without a result, a step in mode REUSE fails. Needs no slots. Raise OSError if this machine's disk is full.
        """
        if self._options.debugs(record.name):
            mode = Mode.FRESH
        is_required = mode is Mode.REUSE
        status = record.status
        with self.running.stoppable(record.name) as stops, judged(record):
            earlier = await self._results.find(scope, step, record, mode, stops)
            if earlier is not None:
                await self._reuse_result(scope, step, record, stops, earlier)
            if is_required and record.status is status:
                record.status = Status.FAILED
                record.verdict = Verdict(record.name, self._results.why_none(step, earlier))
        if record.status is status:
            return False
        if record.ended is None:
            record.ended = time.time()
        self._recorder.changed(record)
        return True

    async def attempt(self, scope: Scope, step: Step, record: StepRecord, share: Share) -> None:
        """Run one attempt of the step with a share of the machine, and another one whenever an instance was evicted, as
        Azure ML does, on fewer instances if the step is elastic. Raise OSError if this machine's disk is full."""
        await self._attempt(scope, step, record, share)
        if self._injector is None:
            return
        is_ending = functools.partial(self.running.is_ending, record.name)
        count, minimum = step.instance_count, rank_environment.minimum_instances(step, scope)
        while remaining := await self._injector.next_instances(record, is_ending, count, minimum):
            record.attempt += 1
            await self._attempt(scope, replace(step, instance_count=remaining), record, share)

    async def _attempt(self, scope: Scope, step: Step, record: StepRecord, share: Share) -> None:
        record.status, record.started = Status.PREPARING, time.time()
        self._begin(scope, step, record)
        self._recorder.changed(record)
        gpus_of_instances = gpus.of_instances(step, self._options.gpus, self._gpus, share.gpus)
        indexes = self._machines.take(step.instance_count)
        data = {"node": record.name, "attempt": record.attempt}
        _log.info("attempt started", extra=data | {"instances": step.instance_count, "gpus": len(share.gpus)})
        seconds: dict[str, float] = {}
        try:
            with self.running.stoppable(record.name) as stops, judged(record):
                instances = self._context.kind.instances(indexes)
                attempt = Attempt(self._context, scope, step, record, stops, instances, gpus_of_instances)
                seconds = attempt.seconds
                await attempt.run()
        finally:
            self._machines.give(indexes)
        if record.ended is None:
            record.ended = time.time()
        _log.info("attempt ended", extra=data | {"status": record.status.value, "seconds": seconds})
        key = None
        if record.status is Status.COMPLETED:
            remove = functools.partial(shutil.rmtree, Path(record.folder) / "instances", ignore_errors=True)
            asyncio.get_running_loop().run_in_executor(None, remove)  # only the end of the event loop waits for it
            self._digests.add(record.outputs)
            keys = self._results.take_keys(record)
            # Whoever debugs a step may have changed what it computes, and so may a fault.
            injected = any((each.node, each.attempt) == (record.name, record.attempt) for each in self._run.faults)
            record.key, key = keys.own, None if injected or self._options.debugs(record.name) else keys.shared
        self._recorder.changed(record, key)

    async def curve(self, record: StepRecord, metric: str) -> Sequence[Point]:
        """Return what a running step has logged of a metric so far. What its runtime does not report is in MLflow; if
        that fails, return nothing."""
        reported = record.metrics.get(metric, ())
        if reported or record.mlflow_run_id is None:
            return tuple(reported)
        with contextlib.suppress(TrackingError):
            return await self._context.tracking.curve(record.mlflow_run_id, metric)
        return ()

    async def cancel(self, path: str) -> None:
        """Cancel the running steps at this path and below it. The second call kills their ranks immediately."""
        _log.info("cancellation requested", extra={"node": path})
        await self.running.cancel(path)

    def close(self) -> None:
        """Close the runner's files. No step may be running."""
        if self._injector is not None:
            self._injector.close()
        self._file_digests.close()

    def _begin(self, scope: Scope, step: Step, record: StepRecord) -> None:
        record.ended, record.verdict, record.progress, record.ranks = None, None, None, []
        record.outputs, record.artifacts, record.models, record.result = [], [], [], ""
        record.instance_count = step.instance_count  # an elastic step's is that of the attempt
        if record.key:  # of a result before the run continued with the latest code
            self._recorder.forget_result(record)
            record.key = ""
        resolved = values.resolved_inputs(step.inputs, scope.lookup)
        record.inputs = {port.name: port.value for port in resolved if port.value is not None}
        self._recorder.forget_points(record)
        if record.usage or record.attempt:
            self._recorder.forget_usage(record)

    async def _reuse_result(
        self, scope: Scope, step: Step, record: StepRecord, stops: StepStops, result: EarlierResult
    ) -> None:
        run, earlier = result.run, result.step
        intact = functools.partial(is_intact, earlier, stops.staging, self._file_digests)
        if not await run_io(intact, in_thread=bool(earlier.outputs)):
            self._recorder.note(record, f"its outputs in run {run} have changed or are gone, so they are not reused")
            return
        if self._earlier is not None and self._earlier.find(record.name) is earlier:
            restore(record, earlier)
            return
        self._begin(scope, step, record)
        record.key = self._results.take_keys(record).own or earlier.key
        record.reused_from, record.folder = run, earlier.folder
        record.outputs, record.artifacts = earlier.outputs, earlier.artifacts
        record.mlflow_run_id = earlier.mlflow_run_id
        record.models, record.result = earlier.models, earlier.result
        # Their logs are those of the earlier run, and their times are not of this run.
        record.ranks = [replace(rank, started=None, ended=None) for rank in earlier.ranks]
        record.status, record.started, record.ended = Status.COMPLETED, time.time(), time.time()
        self._digests.add(record.outputs)
        self._recorder.add_points(record, earlier.metrics)
        self._recorder.note(record, f"reused from run {run}")
        _log.info("node reused", extra={"node": record.name, "run": run})
