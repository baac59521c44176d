"""Runs a step's command: reuse an earlier result, or stage its inputs, start its ranks, monitor them, and save its
outputs."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias, TypeVar

from allranks.contract import job as jobs
from allranks.contract import logs, report
from allranks.contract.launch import Launch
from allranks.contract.produce import processes
from allranks.contract.templating import render
from allranks.local import installed, interpreters, reuse
from allranks.local.boot import SOURCE
from allranks.local.instances import temporary
from allranks.local.instances.kinds import Instance, InstanceKind
from allranks.local.instances.supervisor import Event, InstanceSpec, Program, Supervisor
from allranks.local.launchers import LAUNCHERS, Assignment
from allranks.local.launchers import events as launcher_events
from allranks.local.scope import Scope
from allranks.local.slots import Machines, Share
from allranks.local.step import instance_folders, outputs, rank_environment, tracked_run, verdict
from allranks.local.step.digests import Digests
from allranks.local.step.instance_folders import InstanceFolders
from allranks.local.step.launch import launch_of
from allranks.local.step.monitor import AttemptHandles, AttemptMonitor
from allranks.local.step.running_steps import RunningSteps
from allranks.local.step.staging import Ports
from allranks.local.step.stop import StepStops
from allranks.local.tracking.client import Tracking
from allranks.plan import values
from allranks.plan.file_tree import StoppedError
from allranks.plan.graph import Step
from allranks.plan.node_records import job_name
from allranks.plan.ports import PRIMITIVES
from allranks.plan.values import Given
from allranks.runs.recorder import RunRecorder
from allranks.runs.records import RankRecord, RunRecord, Status, StepRecord, Verdict
from allranks.runs.workspace import Workspace

Result = TypeVar("Result")


async def _do(work: Callable[[], Result], *, aside: bool) -> Result:
    """Works with files: aside, in a thread, where it may copy or digest many. A thread's wake-up costs a small step
    more than its files do."""
    return await asyncio.to_thread(work) if aside else work()


@contextlib.contextmanager
def _judged(record: StepRecord) -> Iterator[None]:
    """Make an error with the step's files, such as an input that cannot be read, the step's failure and not the run's.

    Raise OSError where this machine's disk is full.
    """
    try:
        yield
    except StoppedError:
        record.status = Status.CANCELED
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        found = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        record.status = Status.FAILED
        record.verdict = Verdict(record.name, f"its files cannot be read or written: {found}")


GpusOf: TypeAlias = Callable[[Step, Sequence[str]], list[dict[str, str]]]
"""For each instance of a step the variables that name its GPUs, of those that the step has for itself."""


@dataclass(frozen=True)
class Settings:
    """What is the same for every step of a run.

    experiment:  the MLflow experiment
    source:      the pipeline's file
    force_rerun: whether earlier results are left aside
    """

    experiment: str
    source: str
    force_rerun: bool = False


class CommandRunner:
    """Runs the commands of the steps of one run. Each step's record is brought up to date, saved, and observed."""

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
        self._keys: dict[str, str] = {}
        # Each is looked up once a run, since it looks at some folders.
        self._installed = functools.cache(installed.of)
        self._kept = functools.cache(self._kept_for)
        self._shell = shutil.which("bash") or "/bin/sh"
        asyncio.get_running_loop().run_in_executor(None, temporary.sweep, workspace.temporary)
        self._digests = Digests()
        for record in run.steps:
            if record.status is Status.COMPLETED:
                self._digests.add(record.outputs)

    async def reuse(self, scope: Scope, step: Step, record: StepRecord) -> bool:
        """Take over an earlier result of the same inputs, if there is one. Return whether the step has ended.

        Needs no slots. Raise OSError where this machine's disk is full.
        """
        if not step.deterministic:
            return False
        status = record.status
        with self.running.stoppable(record.name) as stops, _judged(record):
            self._keys[record.name] = key = await self._key(scope, step, stops)
            earlier = None if self._settings.force_rerun else self._recorder.recall(key)
            if earlier is not None:
                await self._take_over(scope, step, record, stops, *earlier)
        if record.status is status:
            return False
        if record.ended is None:
            record.ended = time.time()
        self._recorder.changed(record)
        return True

    async def attempt(self, scope: Scope, step: Step, record: StepRecord, share: Share) -> None:
        """Try the step once with a share of the machine. Raise OSError where this machine's disk is full."""
        record.status, record.started = Status.PREPARING, time.time()
        self._begin(scope, step, record)
        self._recorder.changed(record)
        indexes = self._machines.take(step.instance_count)
        try:
            with self.running.stoppable(record.name) as stops, _judged(record):
                await self._run_ranks(scope, step, record, stops, self._kind.instances(indexes), share)
        finally:
            self._machines.give(indexes)
        if record.ended is None:
            record.ended = time.time()
        key = None
        if record.status is Status.COMPLETED:
            self._digests.add(record.outputs)
            key = self._keys.pop(record.name, None)
        self._recorder.changed(record, key)

    async def cancel(self, path: str) -> None:
        """End the steps that run at that path or below it, as Canceled. A second time, their ranks end at once."""
        await self.running.cancel(path)

    def _begin(self, scope: Scope, step: Step, record: StepRecord) -> None:
        record.ended, record.verdict, record.progress, record.ranks = None, None, None, []
        record.outputs, record.artifacts = [], []
        given = values.given(step.inputs, scope.lookup)
        record.inputs = {port.name: port.value for port in given if port.value is not None}
        self._recorder.forget_points(record)

    async def _key(self, scope: Scope, step: Step, stops: StepStops) -> str:
        inputs = await self._digests.of_inputs(values.given(step.inputs, scope.lookup), stops.staging)
        interpreter = interpreters.of_environment(step.environment, self._settings.source)
        return reuse.key(step, inputs, variables_of(step, scope), self._installed(interpreter))

    async def _take_over(
        self, scope: Scope, step: Step, record: StepRecord, stops: StepStops, run: str, earlier: StepRecord
    ) -> None:
        is_intact = functools.partial(reuse.is_intact, earlier, stops.staging)
        if not await _do(is_intact, aside=bool(earlier.outputs)):
            self._recorder.note(record, f"what it wrote in run {run} is no longer as it was, so it runs again")
            return
        self._begin(scope, step, record)
        record.reused_from, record.folder = run, earlier.folder
        record.outputs, record.artifacts = earlier.outputs, earlier.artifacts
        record.mlflow_run_id = earlier.mlflow_run_id
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
        folder = Path(record.folder)
        given = values.given(step.inputs, scope.lookup)
        name = job_name(self._run.id, record.name)
        places = [
            (output, outputs.place_of(output, scope.wanted_path(step, output), folder, name)) for output in step.outputs
        ]
        prepare = functools.partial(
            instance_folders.prepare,
            step,
            folder,
            given,
            places,
            len(instances),
            mounts=self._kind.isolated,
            stop=stops.staging,
        )
        prepared = await _do(prepare, aside=bool(step.code or given))
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
        with self._temporary_folders(len(instances)) as folders:
            interpreter = interpreters.of_environment(step.environment, self._settings.source)
            machine = rank_environment.machine(os.environ, interpreter, len(processes(launch)))
            named = [{} if self._kind.isolated else {"TMPDIR": one} for one in folders]
            gpus = self._gpus_of(step, share.gpus)
            variables = [machine | own | gpu for own, gpu in zip(named, gpus, strict=True)]
            ranks, reports = self._ranks(scope, step, record, launch, given, prepared, variables)
            own = folder / "launcher"
            assignment = Assignment(launch, ranks, self._kind, variables, own, folder / logs.mpi_log(record.attempt))
            launching = LAUNCHERS[step.distribution.type].launch(assignment)
            record.status = Status.RUNNING
            self._recorder.changed(record)
            with self.running.launching(record.name, agents), _removed(own):
                launched = []
                for rank, agent in enumerate(agents):
                    if stops.staging.is_set() or self.running.is_ending(record.name):
                        break  # a signal reaches those alone that are launched
                    launched.append(agent)
                    kept = self._kept_on(interpreter, given, ports[rank])
                    onto = _machine(step, instances, rank, folders[rank], kept, ports[rank])
                    await self._supervisor.launch(agent, onto, launching.programs[rank], events)
                handles = AttemptHandles(
                    record, frozenset(launched), events, launching, assignment.log, reports, step.timeout
                )
                await AttemptMonitor(
                    handles, self._recorder, self._supervisor, lambda: self.running.is_ending(record.name)
                ).until_gone()
        is_complete = record.status is Status.COMPLETED
        collect = functools.partial(outputs.save, record, places, ports, stops.saving)
        with _judged(record) if is_complete else contextlib.suppress(OSError):
            await _do(
                collect if is_complete else functools.partial(outputs.list_left, record, places), aside=bool(places)
            )
        if is_complete:
            self._note_left_out(record, ports)
        if record.verdict and (hint := verdict.hint(record.verdict, isolated=self._kind.isolated)):
            self._recorder.note(record, hint)
        await tracked_run.end(self._tracking, self._recorder, record)
        record.ended = time.time()
        if record.status is Status.COMPLETED:
            # Nobody waits for it but the loop's end.
            remove = functools.partial(shutil.rmtree, folder / "instances", ignore_errors=True)
            asyncio.get_running_loop().run_in_executor(None, remove)

    @contextlib.contextmanager
    def _temporary_folders(self, count: int) -> Iterator[list[str]]:
        """For each instance its temporary folder. Nobody waits for its removal but the loop's end.

        Without a /tmp of its own an instance is given the path, which is short: what Unix sockets lie in may have 108
        characters.
        """
        if self._kind.isolated:
            made = temporary.make(self._workspace.temporary, count)
            try:
                yield [str(folder) for folder in made.instances]
            finally:
                asyncio.get_running_loop().run_in_executor(None, made.remove)
            return
        folders = [TemporaryDirectory(prefix="allranks-", ignore_cleanup_errors=True) for _ in range(count)]
        try:
            yield [folder.name for folder in folders]
        finally:
            for folder in folders:
                asyncio.get_running_loop().run_in_executor(None, folder.cleanup)

    def _note_left_out(self, record: StepRecord, ports: list[Ports]) -> None:
        for text in dict.fromkeys(text for instance in ports for text in instance.left_out):
            if text not in record.notes:
                self._recorder.note(record, text)

    def _ranks(
        self,
        scope: Scope,
        step: Step,
        record: StepRecord,
        launch: Launch,
        given: list[Given],
        prepared: Sequence[InstanceFolders],
        variables: list[dict[str, str]],
    ) -> tuple[tuple[Program, ...], dict[int, Path]]:
        """Return what each rank runs, and where it reports; the record gets its ranks."""
        folder = Path(record.folder)
        commands = [render(step.command, own.ports.inputs, own.ports.outputs) for own in prepared]
        parameters = {port.name: port.value for port in given if port.type in PRIMITIVES and port.value is not None}
        own = variables_of(step, scope)
        ranks = []
        reports: dict[int, Path] = {}
        record.ranks = []
        for process in processes(launch):
            copy, ports = prepared[process.instance_rank].code, prepared[process.instance_rank].ports
            job = jobs.Job(
                run_id=job_name(self._run.id, record.name),
                root_run_id=self._run.id,
                experiment=self._settings.experiment,
                tracking_uri=self._workspace.tracking_uri if record.mlflow_run_id else None,
                mlflow_run_id=record.mlflow_run_id,
                inputs={name: value for name, value in ports.inputs.items() if value is not None},
                outputs=ports.outputs,
                parameters=parameters,
            )
            # A retry reports to a file of its own: what failed before must not be taken for a failure of now.
            reports[process.rank] = folder / "reports" / f"{record.attempt}_rank_{process.rank}.jsonl"
            environment = {
                **variables[process.instance_rank],
                report.VARIABLE: str(reports[process.rank]),
                **rank_environment.given(own, job, launch, process, self._kind),
            }
            log = folder / logs.log_of(launch, process, record.attempt)
            if record.attempt:  # which has a folder of its own
                log.parent.mkdir(parents=True, exist_ok=True)
            log.touch()
            hostname = launch.hostnames[process.instance_rank]
            record.ranks.append(
                RankRecord(process.rank, process.instance_rank, process.local_rank, hostname, log=str(log))
            )
            arguments = (self._shell, "-c", commands[process.instance_rank])
            ranks.append(Program(launcher_events.rank_name(process.rank), arguments, environment, str(copy), str(log)))
        return tuple(ranks), reports

    def _kept_on(self, interpreter: Path, given: list[Given], ports: Ports) -> tuple[str, ...]:
        """Return the paths of this machine that an instance needs."""
        data = [port.value for port in given if port.value is not None and port.type not in PRIMITIVES]
        parents = [os.path.dirname(path) for path in ports.outputs.values()]
        return (*self._kept(interpreter), *(path for path in (*data, *parents) if os.path.exists(path)))

    def _kept_for(self, interpreter: Path) -> tuple[str, ...]:
        """Return the folders that every step of an interpreter needs."""
        paths = (str(self._workspace.root), *interpreters.prefixes(interpreter), str(SOURCE))
        return tuple(path for path in paths if os.path.exists(path))


def _machine(
    step: Step, instances: Sequence[Instance], rank: int, temporary_folder: str, kept: tuple[str, ...], ports: Ports
) -> InstanceSpec:
    instance = instances[rank]
    return InstanceSpec(
        instance.index,
        instance.address,
        instance.hostname,
        tuple((other.address, other.hostname) for other in instances),
        step.shm_size,
        temporary_folder,
        kept,
        tuple(ports.read_only),
    )


@contextlib.contextmanager
def _removed(folder: Path) -> Iterator[None]:
    """Remove a launcher's folder at the end: it may hold the ranks' variables, and among them secrets."""
    try:
        yield
    finally:
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)


def variables_of(step: Step, scope: Scope) -> dict[str, str]:
    """Return the step's environment variables with their bindings resolved."""
    return {name: values.resolve(value, scope.lookup) or "" for name, value in step.environment_variables.items()}
