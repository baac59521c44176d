"""One attempt of a step, in stages: stage, track, folders, environment, start, monitor, collect, judge."""

import asyncio
import contextlib
import functools
import logging
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from allranks.contract.commands import starts
from allranks.contract.mpi import Mpi
from allranks.contract.produce import processes
from allranks.contract.templating import output_path
from allranks.history.node_records import job_name
from allranks.history.records import Status, StepRecord
from allranks.images import rootfs
from allranks.local import rank_environment
from allranks.local.attempt import collect, stage
from allranks.local.attempt.environment import RankProgram, rank_programs
from allranks.local.attempt.monitor import AttemptMonitor
from allranks.local.attempt.running_steps import StepStops, fail_on_error, run_io
from allranks.local.attempt.services import Services
from allranks.local.attempt.stage import TMP, StagedInstance, temporary_folders
from allranks.local.attempt.start import Start, instance_specs, plan_start
from allranks.local.instances.instance import Instance
from allranks.local.instances.supervisor import Event, ForkServerSpec
from allranks.local.run_context import RunContext
from allranks.local.scope import Scope
from allranks.local.tracking import server, tracked_runs
from allranks.plan import values
from allranks.plan.graph import Step
from allranks.plan.ports import PRIMITIVES
from allranks.sdk.paths import is_downloadable
from allranks.verdict import judge, signatures

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class Attempt:
    """One attempt of a step.

    instances: the emulated instances that it runs on
    gpus:      for each instance, the variables that select its GPUs
    """

    context: RunContext
    services: Services
    scope: Scope
    step: Step
    record: StepRecord
    stops: StepStops
    instances: Sequence[Instance]
    gpus: Sequence[dict[str, str]]

    def __post_init__(self) -> None:
        self._folder = Path(self.record.folder)
        self._launch = rank_environment.launch_of(self.step, self.instances, self.services.kind)
        self._interpreter = self.context.interpreter_of(self.step)
        self._root = rootfs.of(self._interpreter)
        self._debug = self.context.options.debug if self.context.options.debugs(self.record.name) else None
        self._resolved = values.resolved_inputs(self.step.inputs, self.scope.lookup)
        name = job_name(self.context.run.id, self.record.name)
        self._final_paths = [
            (output, collect.save_path(output, self.scope.output_path_of(self.step, output), self._folder, name))
            for output in self.step.outputs
        ]
        self._fork_server: ForkServerSpec | None = None
        self._server: server.ServerAddress | None = None

    async def run(self) -> None:
        """Run all stages, and set the status, the verdict, the ranks and the outputs of the record."""
        with self._timed("prepare"):
            if self._debug is None:
                prepared = self.services.fork_servers.prepare(self.step, self.scope, self.gpus[0])
                self._fork_server = await prepared
            staged = await self._stage()
            await self._track()
        if self.services.running.is_ending(self.record.name):
            self.record.status = Status.CANCELED
            return
        with self._make_tmp(staged):
            ranks, start = self._environment(staged)
            async with self._follow_debuggers():
                with self._timed("ranks"):
                    await self._start_and_monitor(ranks, start)
        with self._timed("collect"):
            await self._collect(staged)
            if self.record.verdict:
                isolated = self.services.kind.isolated
                self.record.verdict = judge.with_advice(self.record.verdict, self._advice, isolated=isolated)
            await tracked_runs.end(self.services.tracking, self.context.recorder, self.record)

    async def _stage(self) -> list[StagedInstance]:
        """Make the folders of the step on each instance, with its code and inputs."""
        prepare = functools.partial(
            stage.prepare,
            self.step,
            self._folder,
            self._resolved,
            self._final_paths,
            len(self.instances),
            mounts=self.services.kind.isolated,
            stop=self.stops.staging,
        )
        staged = await run_io(prepare, in_thread=bool(self.step.code or self._resolved))
        self._note_skipped(staged)
        return staged

    async def _track(self) -> None:
        """Create the attempt's MLflow run if the step is tracked. Start a server if the step's mlflow needs one."""
        services, recorder, record = self.services, self.context.recorder, self.record
        record.mlflow_run_id = None
        if services.tracking.tracks(self.step):
            record.mlflow_run_id = await tracked_runs.create(
                services.tracking, recorder, services.job.experiment, services.job.root_run_id, record
            )
        if record.mlflow_run_id and server.is_needed(self.step, self._interpreter):
            try:
                self._server = await services.mlflow_server.address()
            except OSError as error:
                recorder.note(record, f"MLflow gets no metrics of this step: its server did not start: {error}")
            else:
                recorder.known |= {self._server.token}

    @contextlib.contextmanager
    def _make_tmp(self, staged: Sequence[StagedInstance]) -> Iterator[None]:
        """Give each instance a temporary folder for the duration of the block.

        Ports whose paths a shell would not read as one word get links in that folder.
        """
        root = str(self.context.workspace.root)
        for instance in staged:
            instance.keep = stage.required_paths(root, self._interpreter, self._resolved, instance.outputs)
        data = {port.name for port in self._resolved if port.type not in PRIMITIVES}
        own_tmp = self.services.kind.isolated and not any(TMP in instance.keep for instance in staged)
        with temporary_folders(self.context.workspace.temporary, staged, own_tmp=own_tmp):
            for instance in staged:
                stage.link(instance, data)
            yield

    def _environment(self, staged: Sequence[StagedInstance]) -> tuple[list[RankProgram], Start]:
        """Return the program of each rank with its environment, and the plan of the start."""
        services, step, record = self.services, self.step, self.record
        machine = rank_environment.machine_variables(
            os.environ, self._interpreter, len(processes(self._launch)), mpirun=isinstance(step.distribution, Mpi)
        )
        job = services.job
        if self._server is not None:
            job = replace(job, tracking_uri=self._server.uri, tracking_token=self._server.token)
            excepted = machine.get("no_proxy", machine.get("NO_PROXY", ""))
            machine["no_proxy"] = ",".join(filter(None, (excepted, self._server.host)))
        variables = [
            machine | ({} if services.kind.isolated else {"TMPDIR": instance.inner_tmp}) | gpu
            for instance, gpu in zip(staged, self.gpus, strict=True)
        ]
        if services.injector is not None:
            variables = [each | services.injector.variables(record, number) for number, each in enumerate(variables)]
            if any("LD_PRELOAD" in each for each in variables):
                self._fork_server = None
        step_variables = {**services.kind.environment(), **rank_environment.variables_of(step, self.scope)}
        if self._debug is not None:  # its interpreters open the debugger before they run the script
            step_variables |= self._debug.variables(record.name, self._folder, step_variables)
        shell = rootfs.shell(self._root) if self._root else shutil.which("bash") or "/bin/sh"
        ranks = list(rank_programs(job, shell, step, record, self._launch, staged, step_variables, variables))
        start = plan_start(
            step,
            record,
            self._launch,
            services.kind,
            ranks,
            variables,
            instance_specs(step, self.instances, staged, self._root),
            self._fork_server,
        )
        return ranks, start

    async def _start_and_monitor(self, ranks: Sequence[RankProgram], start: Start) -> None:
        """Start the ranks, and wait until all processes of the attempt have ended."""
        services, recorder, record = self.services, self.context.recorder, self.record
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        record.status = Status.RUNNING
        recorder.changed(record)
        async with contextlib.AsyncExitStack() as stack:
            # The launcher's files may contain the ranks' variables, with secrets.
            stack.callback(shutil.rmtree, start.folder, ignore_errors=True)
            stack.enter_context(services.running.launching(record.name, start.agents))
            reports = {rank.process.rank: rank.report for rank in ranks}
            evicting: Callable[[], bool] = bool
            if services.injector is not None:
                start = replace(start, specs=services.injector.delayed(record, start.specs))
                agents = {agent: spec.index for agent, spec in zip(start.agents, start.specs, strict=True)}
                evicting = await stack.enter_async_context(services.injector.during(record, agents, reports))
            launched: dict[str, str] = {}
            for rank, agent in enumerate(start.agents):
                if self.stops.staging.is_set() or services.running.is_ending(record.name):
                    break  # a signal only reaches launched agents
                launched[agent] = f"instance {rank} ({self.instances[rank].hostname})"
                programs = start.launching.programs[rank]
                await services.supervisor.launch(agent, start.specs[rank], programs, events, self._fork_server)
            await services.fork_servers.prepare_followers(self.step, self.scope)
            # While the ranks start, do the work that need not precede them.
            recorder.flush()
            monitor = AttemptMonitor(
                self.step,
                record,
                launched,
                events,
                start,
                reports,
                self.context.options,
                recorder,
                services.supervisor,
                debugged=self._debug is not None,
                evicting=evicting,
                stopping=functools.partial(services.running.is_ending, record.name),
            )
            await monitor.until_gone()
            # The reports have been read. A failure in them contains the text of its exception.
            files = {*(rank.log for rank in record.ranks), str(start.log)}
            await collect.mask_logs(recorder, record, [*files, *map(str, reports.values())])

    @contextlib.asynccontextmanager
    async def _follow_debuggers(self) -> AsyncIterator[None]:
        """Follow the debuggers of the ranks for the duration of the block."""
        if self._debug is None:
            yield
            return
        note = functools.partial(self.context.recorder.note, self.record)
        task = asyncio.create_task(self._debug.follow(self._folder, note, self.services.running.kill))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _collect(self, staged: list[StagedInstance]) -> None:
        """Save the outputs of a completed attempt. Record the partial outputs of one that did not complete."""
        record, paths = self.record, self._final_paths
        if record.status is not Status.COMPLETED:
            with contextlib.suppress(OSError):
                await run_io(functools.partial(collect.record_partial_outputs, record, paths), in_thread=bool(paths))
            return
        save = functools.partial(collect.save, record, paths, staged, self.stops.saving, self.services.file_digests)
        with fail_on_error(record):
            await run_io(save, in_thread=bool(paths))
            await self._upload()
        self._note_skipped(staged)

    async def _upload(self) -> None:
        """Upload the outputs whose paths are URIs of a storage service."""
        context, record = self.context, self.record
        for output, path in self._final_paths:
            uri = self.scope.output_path_of(self.step, output)
            if uri is None or not is_downloadable(uri) or record.status is not Status.COMPLETED:
                continue
            uri = output_path(uri, name=job_name(context.run.id, record.name), output_name=output.name)
            if context.options.offline:
                context.recorder.note(record, f"output {output.name} is not uploaded to {uri}, because of --offline")
                continue
            from allranks.local.data import storage  # most runs upload nothing

            await asyncio.to_thread(storage.upload, path, uri, self.stops.saving)
            context.recorder.note(record, f"output {output.name} is uploaded to {uri}")

    def _advice(self, failure: signatures.Known) -> tuple[str, str] | None:
        """Return the code and advice for a failure whose advice depends on the step; None for any other."""
        code, message = failure.signature.code, failure.match.string
        if code == signatures.READ_ONLY:
            names = " or ".join(stage.read_only_inputs(self._resolved, message))
            text = f"input {names} is read-only, as on Azure ML; declare an output, and write there instead"
            return (code, text) if names else None
        if code != signatures.MISSING_PACKAGE:
            return None
        from allranks.local import missing_modules  # only failures need it

        start = next(iter(starts(self.step.command)), None)
        return missing_modules.explain(failure.match["module"], message, self.step.code, start, self._interpreter)

    def _note_skipped(self, staged: Sequence[StagedInstance]) -> None:
        for text in dict.fromkeys(text for instance in staged for text in instance.skipped):
            if text not in self.record.notes:
                self.context.recorder.note(self.record, text)

    @contextlib.contextmanager
    def _timed(self, stage_name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            data = {"node": self.record.name, "stage": stage_name, "seconds": round(time.monotonic() - started, 6)}
            _log.info("stage ended", extra=data)
