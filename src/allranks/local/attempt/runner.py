"""Run a step's command: reuse an earlier result, or stage its inputs, start its ranks, monitor them, and save its
outputs."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from allranks.contract import logs
from allranks.contract.mpi import Mpi
from allranks.contract.produce import processes
from allranks.local import interpreters, machine_variables, reuse
from allranks.local.attempt import instance_folders, outputs, plain_paths, rank_environment, tracked_run, verdict
from allranks.local.attempt.digests import Digests
from allranks.local.attempt.earlier_results import EarlierResult, EarlierResults
from allranks.local.attempt.file_digests import FileDigests
from allranks.local.attempt.file_work import judged, run_io
from allranks.local.attempt.instance_folders import InstancePaths
from allranks.local.attempt.monitor import START_TIMEOUT, AttemptHandles, AttemptMonitor
from allranks.local.attempt.next_folders import NextFolders
from allranks.local.attempt.outputs import mask_logs
from allranks.local.attempt.rank_environment import launch_of
from allranks.local.attempt.rank_programs import JobSettings, rank_programs
from allranks.local.attempt.running_steps import RunningSteps
from allranks.local.attempt.staging import Ports
from allranks.local.attempt.stop import StepStops
from allranks.local.attempt.temporary_folders import TMP, TemporaryFolders
from allranks.local.continuation import restore
from allranks.local.forkserver.choice import ForkServers
from allranks.local.instances import temporary
from allranks.local.instances.kinds import Instance, InstanceKind
from allranks.local.instances.programs import ForkServerSpec
from allranks.local.instances.supervisor import Event, InstanceSpec, Supervisor
from allranks.local.launchers.by_distribution import launcher
from allranks.local.launchers.launching import LAUNCHER_FOLDER, Assignment
from allranks.local.scope import Scope
from allranks.local.selection import Mode
from allranks.local.slots import Machines, Share
from allranks.local.tracking.client import Tracking
from allranks.plan import values
from allranks.plan.graph import Step
from allranks.plan.node_records import job_name
from allranks.plan.ports import PRIMITIVES
from allranks.runs.recorder import RunRecorder
from allranks.runs.records import RunRecord, Status, StepRecord, Verdict
from allranks.runs.workspace import Workspace

GpusOf: TypeAlias = Callable[[Step, Sequence[str]], list[dict[str, str]]]
"""Returns for each instance of a step the variables that select its GPUs, among those that the step uses
exclusively."""


@dataclass(frozen=True)
class Settings:
    """Settings that are the same for every step of a run.

    experiment:  the MLflow experiment
    source:      the pipeline's file
    force_rerun: whether to ignore earlier results
    origin:      the run whose results the steps in mode REUSE take; None: any run with a result for the same inputs
    earlier:     this run as it was before it continued with the latest code
    cold:        whether every rank is started as a new process, without a fork server
    mpi:         how mpirun reaches the instances, a key of the launchers of mpi
    start_timeout: seconds that an instance may take to start its processes
    """

    experiment: str
    source: str
    force_rerun: bool = False
    origin: RunRecord | None = None
    earlier: RunRecord | None = None
    cold: bool = False
    mpi: str = "rsh"
    start_timeout: float = START_TIMEOUT


class CommandRunner:
    """Run the commands of the steps of one run. Update and save each step's record, and notify the observer."""

    def __init__(
        self,
        run: RunRecord,
        settings: Settings,
        workspace: Workspace,
        recorder: RunRecorder,
        supervisor: Supervisor,
        kind: InstanceKind,
        tracking: Tracking,
        gpus_of: GpusOf,
    ) -> None:
        self._run = run
        self._settings = settings
        self._workspace = workspace
        self._recorder = recorder
        self._supervisor = supervisor
        self._kind = kind
        self._tracking = tracking
        self._gpus_of = gpus_of
        self.running = RunningSteps(supervisor, tracking)
        self._machines = Machines()
        self._instance_paths = InstancePaths(str(workspace.root))
        shell = shutil.which("bash") or "/bin/sh"
        self._job = JobSettings(run.id, settings.experiment, workspace.tracking_uri, shell, settings.cold)
        self._fork_servers = ForkServers(supervisor, kind, settings.source, shell, tracking.tracks, self._is_cold)
        asyncio.get_running_loop().run_in_executor(None, temporary.sweep, workspace.temporary)
        self._temporary_folders = TemporaryFolders(workspace.temporary)
        self._next_folders = NextFolders(lambda: self._temporary_folders.folder)
        self._file_digests = FileDigests(workspace.file_digests)
        self._digests = Digests(self._file_digests)
        for record in run.steps:
            if record.status is Status.COMPLETED:
                self._digests.add(record.outputs)
        for record in settings.earlier.steps if settings.earlier else ():
            if record.status is Status.COMPLETED:
                self._digests.add(record.outputs)
        self._results = EarlierResults(
            recorder,
            self._digests,
            settings.source,
            force_rerun=settings.force_rerun,
            origin=settings.origin,
            earlier=settings.earlier,
        )

    def _is_cold(self, step: Step) -> bool:
        """Return whether the ranks of a step start as new processes. A daemon of mpirun in a session by ssh starts
        them itself."""
        return self._settings.cold or (self._settings.mpi == "ssh" and step.distribution.type == Mpi.type)

    async def reuse(self, scope: Scope, step: Step, record: StepRecord, mode: Mode) -> bool:
        """Reuse an earlier result if the mode allows it and there is one. Return whether the step has ended.

        Without a result, a step in mode REUSE fails. Needs no slots. Raise OSError if this machine's disk is full.
        """
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
        """Run one attempt of the step with a share of the machine. Raise OSError if this machine's disk is full."""
        record.status, record.started = Status.PREPARING, time.time()
        self._begin(scope, step, record)
        self._recorder.changed(record)
        indexes = self._machines.take(step.instance_count)
        try:
            with self.running.stoppable(record.name) as stops, judged(record):
                await self._run_ranks(scope, step, record, stops, self._kind.instances(indexes), share)
        finally:
            self._machines.give(indexes)
        if record.ended is None:
            record.ended = time.time()
        key = None
        if record.status is Status.COMPLETED:
            self._digests.add(record.outputs)
            keys = self._results.take_keys(record)
            record.key, key = keys.own, keys.shared
        self._recorder.changed(record, key)

    async def cancel(self, path: str) -> None:
        """Cancel the running steps at this path and below it. The second call kills their ranks immediately."""
        await self.running.cancel(path)

    @property
    def fork_servers(self) -> Sequence[ForkServerSpec]:
        """The fork servers that steps have used, the first one first."""
        return self._fork_servers.used

    def close(self) -> None:
        """Close the runner's files, and remove its folders. Call it when no step runs any more."""
        self._file_digests.close()
        for folder in self._next_folders.returned():
            self._remove_later(folder)
        self._temporary_folders.close()

    def _begin(self, scope: Scope, step: Step, record: StepRecord) -> None:
        record.ended, record.verdict, record.progress, record.ranks = None, None, None, []
        record.outputs, record.artifacts, record.models, record.result = [], [], [], ""
        if record.key:  # of a result before the run continued with the latest code
            self._recorder.forget_result(record)
            record.key = ""
        resolved = values.given(step.inputs, scope.lookup)
        record.inputs = {port.name: port.value for port in resolved if port.value is not None}
        self._recorder.forget_points(record)
        if record.usage or record.attempt:
            self._recorder.forget_usage(record)

    async def _reuse_result(
        self, scope: Scope, step: Step, record: StepRecord, stops: StepStops, result: EarlierResult
    ) -> None:
        run, earlier = result.run, result.step
        is_intact = functools.partial(reuse.is_intact, earlier, stops.staging, self._file_digests)
        if not await run_io(is_intact, in_thread=bool(earlier.outputs)):
            self._recorder.note(record, f"its outputs in run {run} have changed or are gone, so they are not reused")
            return
        if self._settings.earlier is not None and self._settings.earlier.find(record.name) is earlier:
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

    async def _run_ranks(
        self,
        scope: Scope,
        step: Step,
        record: StepRecord,
        stops: StepStops,
        instances: tuple[Instance, ...],
        share: Share,
    ) -> None:
        gpus = self._gpus_of(step, share.gpus)
        await self._fork_servers.prepare(step, scope, gpus)
        folder = Path(record.folder)
        resolved = values.given(step.inputs, scope.lookup)
        name = job_name(self._run.id, record.name)
        places = [
            (output, outputs.place_of(output, scope.wanted_path(step, output), folder, name)) for output in step.outputs
        ]
        prepare = functools.partial(
            instance_folders.prepare,
            step,
            folder,
            resolved,
            places,
            len(instances),
            mounts=self._kind.isolated,
            stop=stops.staging,
            next_folders=self._next_folders,
        )
        prepared = await run_io(prepare, in_thread=bool(step.code or resolved))
        ports = [instance.ports for instance in prepared]
        self._note_left_out(record, ports)
        record.mlflow_run_id = None
        if self._tracking.tracks(step):
            experiment = self._settings.experiment
            record.mlflow_run_id = await tracked_run.create(
                self._tracking, self._recorder, experiment, self._run.id, record
            )
        launch = launch_of(step, instances, self._kind)
        if self.running.is_ending(record.name):
            record.status = Status.CANCELED
            return
        agents = [f"{record.name}/{record.attempt}/{rank}" for rank in range(len(instances))]
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        interpreter = interpreters.of_environment(step.environment, self._settings.source)
        keep = [self._instance_paths.of(interpreter, resolved, instance_ports) for instance_ports in ports]
        data = {port.name for port in resolved if port.type not in PRIMITIVES}
        own_tmp = self._kind.isolated and not any(TMP in paths for paths in keep)
        with self._temporary_folders.take(keep, own_tmp=own_tmp) as folders:
            for instance_ports, temporary_folder in zip(ports, folders, strict=True):
                plain_paths.link(instance_ports, data, Path(temporary_folder.path), temporary_folder.seen)
            machine = machine_variables.of(os.environ, interpreter, len(processes(launch)))
            temporary_variables = [
                {} if self._kind.isolated else {"TMPDIR": temporary_folder.seen} for temporary_folder in folders
            ]
            variables = [
                machine | folder_variables | gpu
                for folder_variables, gpu in zip(temporary_variables, gpus, strict=True)
            ]
            own_variables = rank_environment.variables_of(step, scope)
            ranks = list(
                rank_programs(
                    self._job,
                    step,
                    record,
                    launch,
                    self._kind,
                    interpreter,
                    resolved,
                    prepared,
                    own_variables,
                    variables,
                    self._next_folders.make_file,
                )
            )
            fork_server = self._fork_servers.choose(step, [rank.program for rank in ranks], interpreter)
            launcher_folder = folder / LAUNCHER_FOLDER
            assignment = Assignment(
                launch,
                tuple(rank.program for rank in ranks),
                self._kind,
                variables,
                launcher_folder,
                folder / logs.mpi_log(record.attempt),
                forked=fork_server is not None,
                own_variables=frozenset(own_variables),
            )
            launching = launcher(step.distribution.type, self._settings.mpi).launch(assignment)
            record.status = Status.RUNNING
            self._recorder.changed(record)
            with self.running.launching(record.name, agents), _removed_at_end(launcher_folder):
                launched: dict[str, str] = {}
                for rank, agent in enumerate(agents):
                    if stops.staging.is_set() or self.running.is_ending(record.name):
                        break  # a signal only reaches launched agents
                    launched[agent] = f"instance {rank} ({instances[rank].hostname})"
                    instance_spec = _instance_spec(step, instances, rank, folders[rank].path, keep[rank], ports[rank])
                    await self._supervisor.launch(agent, instance_spec, launching.programs[rank], events, fork_server)
                await self._fork_servers.prepare_followers(step, scope)
                # The ranks are starting, so there is time for what need not precede them.
                self._recorder.flush()
                self._next_folders.make_next()
                handles = AttemptHandles(
                    record,
                    launched,
                    events,
                    launching,
                    assignment.log,
                    {rank.process.rank: rank.report for rank in ranks},
                    step.timeout,
                    step.instance_type,
                    self._settings.start_timeout,
                )
                await AttemptMonitor(
                    handles, self._recorder, self._supervisor, lambda: self.running.is_ending(record.name)
                ).until_gone()
                logs_of_attempt = {*(rank.log for rank in record.ranks), str(assignment.log)}
                # The reports have been read, and a failure in them has the text of its exception.
                await mask_logs(self._recorder, record, [*logs_of_attempt, *map(str, handles.reports.values())])
        is_complete = record.status is Status.COMPLETED
        collect = functools.partial(outputs.save, record, places, ports, stops.saving, self._file_digests)
        with judged(record) if is_complete else contextlib.suppress(OSError):
            await run_io(
                collect if is_complete else functools.partial(outputs.list_left, record, places), in_thread=bool(places)
            )
        if is_complete:
            self._note_left_out(record, ports)
        if record.verdict and (hint := verdict.hint(record.verdict, isolated=self._kind.isolated)):
            self._recorder.note(record, hint)
        await tracked_run.end(self._tracking, self._recorder, record)
        record.ended = time.time()
        if record.status is Status.COMPLETED and not self._next_folders.take_back(folder):
            self._remove_later(folder / "instances")

    def _remove_later(self, folder: str | Path) -> None:
        """Remove a folder in a thread. Only the end of the event loop waits for it."""
        remove = functools.partial(shutil.rmtree, folder, ignore_errors=True)
        asyncio.get_running_loop().run_in_executor(None, remove)

    def _note_left_out(self, record: StepRecord, ports: list[Ports]) -> None:
        for text in dict.fromkeys(text for instance in ports for text in instance.left_out):
            if text not in record.notes:
                self._recorder.note(record, text)


def _instance_spec(
    step: Step, instances: Sequence[Instance], rank: int, temporary_folder: str, keep: tuple[str, ...], ports: Ports
) -> InstanceSpec:
    instance = instances[rank]
    return InstanceSpec(
        instance.index,
        instance.address,
        instance.hostname,
        tuple((other.address, other.hostname) for other in instances),
        step.shm_size,
        temporary_folder,
        keep,
        tuple(ports.read_only),
    )


@contextlib.contextmanager
def _removed_at_end(folder: Path) -> Iterator[None]:
    """Remove a launcher's folder at the end of the block, because it may contain the ranks' variables with secrets."""
    try:
        yield
    finally:
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
