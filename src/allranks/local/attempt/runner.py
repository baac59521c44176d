"""Run the steps of one run: reuse an earlier result, or make an attempt on emulated instances."""

import asyncio
import contextlib
import functools
import logging
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from allranks.contract.templating import wire
from allranks.contract.variables import elastic_instances
from allranks.history.records import Point, Status, StepRecord, Verdict
from allranks.local import gpus, rank_environment
from allranks.local.attempt.attempt import Attempt
from allranks.local.attempt.digests import Digests
from allranks.local.attempt.earlier_results import EarlierResult, EarlierResults, is_intact
from allranks.local.attempt.running_steps import StepStops, fail_on_error, run_io
from allranks.local.attempt.services import Services
from allranks.local.instances import temporary
from allranks.local.run_context import RunContext
from allranks.local.scope import Scope
from allranks.local.selection import Mode
from allranks.local.slots import Machines, Share
from allranks.local.tracking.client import TrackingError
from allranks.plan import values
from allranks.plan.graph import Step

_log = logging.getLogger(__name__)


class CommandRunner:
    """Run the commands of the steps of one run. Update and save each step's record, and notify the observer."""

    def __init__(self, context: RunContext, services: Services) -> None:
        self._context = context
        self._services = services
        self._recorder = context.recorder
        self._machines = Machines()
        asyncio.get_running_loop().run_in_executor(None, temporary.sweep, context.workspace.temporary)
        self._digests = Digests(services.file_digests)
        for record in (*context.run.steps, *(context.earlier.steps if context.earlier else ())):
            if record.status is Status.COMPLETED:
                self._digests.add(record.outputs)
        self._results = EarlierResults(context, self._digests)

    async def reuse(self, scope: Scope, step: Step, record: StepRecord, mode: Mode) -> bool:
        """Reuse an earlier result if the mode allows it and there is one. Return whether the step has ended.

        Without a result, a step in mode REUSE fails. Needs no slots. Raise OSError if this machine's disk is full.
        """
        if self._context.options.debugs(record.name):
            mode = Mode.FRESH
        is_required = mode is Mode.REUSE
        status = record.status
        with self._services.running.stoppable(record.name) as stops, fail_on_error(record):
            earlier = await self._results.find(scope, step, record, mode, stops)
            if earlier is not None:
                await self._reuse_result(scope, step, record, stops, earlier)
            if is_required and record.status is status:
                record.status = Status.FAILED
                record.verdict = Verdict(record.name, self._results.reason_not_reused(step, earlier))
        if record.status is status:
            return False
        if record.ended is None:
            record.ended = time.time()
        self._recorder.changed(record)
        return True

    async def attempt(self, scope: Scope, step: Step, record: StepRecord, share: Share) -> None:
        """Run one attempt of the step with a share of the machine, and another one whenever an instance was evicted, as
        Azure ML does, on fewer instances if the step is elastic. Raise OSError if this machine's disk is full."""
        context, services, whole = self._context, self._services, step
        while True:
            record.status, record.started = Status.PREPARING, time.time()
            self._begin(scope, step, record)
            self._recorder.changed(record)
            gpus_of_instances = gpus.instance_variables(step, context.options.gpus, context.gpus, share.gpus)
            indexes = self._machines.acquire(step.instance_count)
            data = {"node": record.name, "attempt": record.attempt}
            _log.info("attempt started", extra=data | {"instances": step.instance_count, "gpus": len(share.gpus)})
            try:
                with services.running.stoppable(record.name) as stops, fail_on_error(record):
                    instances = services.kind.instances(indexes)
                    attempt = Attempt(context, services, scope, step, record, stops, instances, gpus_of_instances)
                    await attempt.run()
            finally:
                self._machines.release(indexes)
            _log.info("attempt ended", extra=data | {"status": record.status.value})
            self._save(record)
            remaining = await self._instances_after_eviction(scope, whole, record)
            if not remaining:
                return
            step = replace(whole, instance_count=remaining)
            record.attempt += 1

    def _save(self, record: StepRecord) -> None:
        """Save the record of an attempt that has ended, and the key under which its result can be found."""
        if record.ended is None:
            record.ended = time.time()
        key = None
        if record.status is Status.COMPLETED:
            remove = functools.partial(shutil.rmtree, Path(record.folder) / "instances", ignore_errors=True)
            asyncio.get_running_loop().run_in_executor(None, remove)  # only the end of the event loop waits for it
            self._digests.add(record.outputs)
            in_run, shared = self._results.pop_keys(record)
            # A debugging user or a fault may have changed the result.
            faults = self._context.run.faults
            is_changed = self._context.options.debugs(record.name) or any(
                (each.node, each.attempt) == (record.name, record.attempt) for each in faults
            )
            record.key, key = in_run, None if is_changed else shared
        self._recorder.changed(record, key)

    async def _instances_after_eviction(self, scope: Scope, step: Step, record: StepRecord) -> int | None:
        """Return the number of instances on which an evicted step restarts; None if it does not restart.

        An elastic step restarts on those that remain. Raise InputError for an invalid range of instances.
        """
        injector = self._services.injector
        if injector is None:
            return None
        is_ending = functools.partial(self._services.running.is_ending, record.name)
        limits = elastic_instances(rank_environment.variables_of(step, scope))
        minimum = step.instance_count if limits is None else min(limits[0], step.instance_count)
        remaining: int | None = await injector.next_instances(record, is_ending, step.instance_count, minimum)
        return remaining

    async def curve(self, record: StepRecord, metric: str) -> Sequence[Point]:
        """Return the values of a metric that a running step has logged so far. Ask MLflow for those that the step does
        not report; return none if that fails."""
        reported = record.metrics.get(metric, ())
        if reported or record.mlflow_run_id is None:
            return tuple(reported)
        with contextlib.suppress(TrackingError):
            return await self._services.tracking.curve(record.mlflow_run_id, metric)
        return ()

    async def cancel(self, path: str) -> None:
        """Cancel the running steps at this path and below it. The second call kills their ranks immediately."""
        _log.info("cancellation requested", extra={"node": path})
        await self._services.running.cancel(path)

    async def stop(self) -> None:
        """Cancel all running steps, with the run's grace period."""
        await self._services.running.stop(self._context.options.grace)

    def _begin(self, scope: Scope, step: Step, record: StepRecord) -> None:
        record.ended, record.verdict, record.progress, record.ranks = None, None, None, []
        record.outputs, record.artifacts, record.models, record.result = [], [], [], ""
        record.instance_count = step.instance_count  # the attempt's, if the step is elastic
        if record.key:  # of a result before the run continued with the latest code
            self._recorder.forget_result(record)
            record.key = ""
        resolved = values.resolved_inputs(step.inputs, scope.lookup)
        record.inputs = {port.name: port.value for port in resolved if port.value is not None}
        known = {port.name: wire(port.default) for port in step.inputs if port.default is not None}
        record.defaults = tuple(name for name, value in known.items() if record.inputs.get(name) == value)
        self._recorder.forget_points(record)
        if record.usage or record.attempt:
            self._recorder.forget_usage(record)

    async def _reuse_result(
        self, scope: Scope, step: Step, record: StepRecord, stops: StepStops, result: EarlierResult
    ) -> None:
        run, earlier = result.run, result.step
        intact = functools.partial(is_intact, earlier, stops.staging, self._services.file_digests)
        if not await run_io(intact, in_thread=bool(earlier.outputs)):
            self._recorder.note(record, f"its outputs in run {run} have changed or are gone, so they are not reused")
            return
        before = self._context.earlier
        if before is not None and before.find(record.name) is earlier:
            # Restore the result that the step had before its run continued.
            vars(record).update(vars(replace(earlier, needs=record.needs)))
            return
        self._begin(scope, step, record)
        record.key = self._results.pop_keys(record)[0] or earlier.key
        record.reused_from, record.folder = run, earlier.folder
        record.outputs, record.artifacts = earlier.outputs, earlier.artifacts
        record.mlflow_run_id = earlier.mlflow_run_id
        record.models, record.result = earlier.models, earlier.result
        # Their logs are those of the earlier run. Their times are omitted, because they do not belong to this run.
        record.ranks = [replace(rank, started=None, ended=None) for rank in earlier.ranks]
        record.status, record.started, record.ended = Status.COMPLETED, time.time(), time.time()
        self._digests.add(record.outputs)
        self._recorder.add_points(record, earlier.metrics)
        self._recorder.note(record, f"reused from run {run}")
        _log.info("node reused", extra={"node": record.name, "run": run})
