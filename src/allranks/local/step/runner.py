"""One try of one step: reuse an earlier result, or make instances ready, start the ranks, watch them, and keep what
they wrote."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import os
import shutil
import signal
import threading
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
from allranks.contract.templating import output_path, render
from allranks.local import installed, interpreters, reuse
from allranks.local.boot import SOURCE
from allranks.local.instances import temporary
from allranks.local.instances.kinds import Instance, InstanceKind
from allranks.local.instances.supervisor import Event, InstanceSpec, Program, Supervisor
from allranks.local.launchers import LAUNCHERS, Assignment
from allranks.local.launchers import events as launcher_events
from allranks.local.scope import Scope
from allranks.local.slots import Machines, Share
from allranks.local.step import rank_environment, verdict
from allranks.local.step.digests import Digests
from allranks.local.step.launch import launch_of
from allranks.local.step.monitor import GRACE, Watch, Watched
from allranks.local.step.staging import Ports, stage, upload, working_copy
from allranks.local.tracking.client import Tracking, TrackingError
from allranks.plan import digest, values
from allranks.plan.file_tree import StoppedError
from allranks.plan.graph import Step
from allranks.plan.node_records import job_name
from allranks.plan.ports import FILE_TYPES, PRIMITIVES, Output
from allranks.plan.values import Given
from allranks.runs.log_tail import tail
from allranks.runs.recorder import RunRecorder
from allranks.runs.records import OutputRecord, RankRecord, RunRecord, Status, StepRecord, Verdict
from allranks.runs.workspace import Workspace
from allranks.sdk.paths import is_remote

ARTIFACTS = 1000
"""How many files below ./outputs a record lists."""

TRACKING_GRACE = 5.0
"""Seconds that MLflow has, once every rank of a run that is stopped has been killed, to learn how its runs ended."""

Result = TypeVar("Result")


async def _do(work: Callable[[], Result], *, aside: bool) -> Result:
    """Works with files: aside, in a thread, where it may copy or digest many. A thread's wake-up costs a small step
    more than its files do."""
    return await asyncio.to_thread(work) if aside else work()


@contextlib.contextmanager
def _judged(record: StepRecord) -> Iterator[None]:
    """Make an error with the step's files, such as an input that cannot be read, the step's failure and not the run's.

    Raises OSError where this machine's disk is full.
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
        self._machines = Machines()
        self._keys: dict[str, str] = {}
        self._agents: dict[str, str] = {}
        self._installed = functools.cache(installed.of)  # once a run: it lists some folders
        asyncio.get_running_loop().run_in_executor(None, temporary.sweep, workspace.temporary)
        self._idle = asyncio.Event()
        self._stopping = False
        self._canceled: set[str] = set()
        # Threads look at these: inputs are not read on once the run is stopped, outputs are saved within the grace.
        self._stop_staging = threading.Event()
        self._stop_saving = threading.Event()
        self._digests = Digests(self._stop_staging)
        for record in run.steps:
            if record.status is Status.COMPLETED:
                self._digests.add(record.outputs)

    async def reuse(self, scope: Scope, step: Step, record: StepRecord) -> bool:
        """Take over an earlier result of the same inputs, if there is one. Return whether the step has ended.

        Needs no slots. Raises OSError where this machine's disk is full.
        """
        if not step.deterministic:
            return False
        status = record.status
        with _judged(record):
            self._keys[record.name] = key = await self._key(scope, step)
            earlier = None if self._settings.force_rerun else self._recorder.recall(key)
            if earlier is not None:
                await self._take_over(scope, step, record, *earlier)
        if record.status is status:
            return False
        if record.ended is None:
            record.ended = time.time()
        self._recorder.changed(record)
        return True

    async def attempt(self, scope: Scope, step: Step, record: StepRecord, share: Share) -> None:
        """Try the step once with a share of the machine. Raises OSError where this machine's disk is full."""
        record.status, record.started = Status.PREPARING, time.time()
        self._begin(scope, step, record)
        self._recorder.changed(record)
        indexes = self._machines.take(step.instance_count)
        try:
            with _judged(record):
                await self._run_ranks(scope, step, record, self._kind.instances(indexes), share)
        finally:
            self._machines.give(indexes)
        if record.ended is None:
            record.ended = time.time()
        if record.status is Status.COMPLETED:
            self._digests.add(record.outputs)
            if (key := self._keys.get(record.name)) is not None:
                self._recorder.remember(key, record)
        self._recorder.changed(record)

    def _begin(self, scope: Scope, step: Step, record: StepRecord) -> None:
        record.ended, record.verdict, record.progress, record.ranks = None, None, None, []
        given = values.given(step.inputs, scope.lookup)
        record.inputs = {port.name: port.value for port in given if port.value is not None}
        self._recorder.forget_points(record)

    async def stop(self, grace: float) -> None:
        """End every rank that runs, and their steps as Canceled: SIGTERM, then after `grace` seconds SIGKILL."""
        self._stopping = True
        self._stop_staging.set()
        loop = asyncio.get_running_loop()
        loop.call_later(grace, self._stop_saving.set)
        loop.call_later(grace + TRACKING_GRACE, self._tracking.abandon)
        await self._end_agents(list(self._agents), grace)

    async def cancel(self, path: str) -> None:
        """End the steps that run at that path or below it, as Canceled."""
        self._canceled.add(path)
        await self._end_agents([agent for agent, step in self._agents.items() if is_within(step, path)], GRACE)

    async def kill(self) -> None:
        """End every rank that runs, at once."""
        self._stopping = True
        self._stop_staging.set()
        self._stop_saving.set()
        asyncio.get_running_loop().call_later(TRACKING_GRACE, self._tracking.abandon)
        await self._signal(list(self._agents), signal.SIGKILL)

    async def _end_agents(self, agents: list[str], grace: float) -> None:
        await self._signal(agents, signal.SIGTERM)
        end = asyncio.get_running_loop().time() + grace
        while any(agent in self._agents for agent in agents):
            self._idle.clear()
            try:
                await asyncio.wait_for(self._idle.wait(), end - asyncio.get_running_loop().time())
            except asyncio.TimeoutError:
                break
        await self._signal([agent for agent in agents if agent in self._agents], signal.SIGKILL)

    async def _signal(self, agents: list[str], number: int) -> None:
        for agent in agents:
            await self._supervisor.signal(agent, number)

    def _is_ending(self, record: StepRecord) -> bool:
        return self._stopping or any(is_within(record.name, path) for path in self._canceled)

    async def _key(self, scope: Scope, step: Step) -> str:
        inputs = await self._digests.of_inputs(values.given(step.inputs, scope.lookup))
        interpreter = interpreters.of_environment(step.environment, self._settings.source)
        return reuse.key(step, inputs, variables_of(step, scope), self._installed(interpreter))

    async def _take_over(self, scope: Scope, step: Step, record: StepRecord, run: str, earlier: StepRecord) -> None:
        if not await asyncio.to_thread(reuse.is_intact, earlier, self._stop_staging):
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
        self, scope: Scope, step: Step, record: StepRecord, instances: tuple[Instance, ...], share: Share
    ) -> None:
        folder = Path(record.folder)
        given = values.given(step.inputs, scope.lookup)
        name = job_name(self._run.id, record.name)
        places = [(output, place_of(output, scope.wanted_path(step, output), folder, name)) for output in step.outputs]
        prepare = functools.partial(self._prepare, step, folder, given, places, len(instances))
        prepared = await _do(prepare, aside=bool(step.code or given))
        self._note_left_out(record, [ports for _, ports in prepared])
        record.mlflow_run_id = await self._mlflow_run(step, record)
        launch = launch_of(step, instances, self._kind)
        if self._is_ending(record):
            record.status = Status.CANCELED
            return
        agents = [f"{record.name}/{record.attempt}/{rank}" for rank in range(len(instances))]
        events: asyncio.Queue[Event] = asyncio.Queue()
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
            self._agents.update(dict.fromkeys(agents, record.name))
            try:
                launched = []
                for rank, agent in enumerate(agents):
                    if self._stop_staging.is_set() or self._is_ending(record):
                        break  # a signal reaches those alone that are launched
                    launched.append(agent)
                    ports = prepared[rank][1]
                    onto = self._machine(step, interpreter, instances[rank], instances, given, ports, folders[rank])
                    await self._supervisor.launch(agent, onto, launching.programs[rank], events)
                watched = Watched(record, frozenset(launched), events, launching, assignment.log, reports, step.timeout)
                await Watch(watched, self._recorder, self._supervisor, lambda: self._is_ending(record)).until_gone()
            finally:
                for agent in agents:
                    self._agents.pop(agent, None)
                self._idle.set()
                if own.exists():
                    # It may hold the ranks' variables, and among them secrets.
                    shutil.rmtree(own, ignore_errors=True)
        if record.status is Status.COMPLETED:
            collect = functools.partial(self._collect, record, places, [ports for _, ports in prepared])
            with _judged(record):
                await _do(collect, aside=bool(places))
            self._note_left_out(record, [ports for _, ports in prepared])
        if record.verdict and (hint := verdict.hint(record.verdict, isolated=self._kind.isolated)):
            self._recorder.note(record, hint)
        await self._end_mlflow_run(record)
        record.ended = time.time()
        if record.status is Status.COMPLETED:
            # Nobody waits for it but the loop's end.
            remove = functools.partial(shutil.rmtree, folder / "instances", ignore_errors=True)
            asyncio.get_running_loop().run_in_executor(None, remove)

    @contextlib.contextmanager
    def _temporary_folders(self, count: int) -> Iterator[list[str]]:
        """For each instance its temporary folder.

        Without a /tmp of its own an instance is given the path, which is short: what Unix sockets lie in may have 108
        characters.
        """
        if self._kind.isolated:
            made = temporary.make(self._workspace.temporary, count)
            try:
                yield [str(folder) for folder in made.instances]
            finally:
                # Nobody waits for it but the loop's end.
                asyncio.get_running_loop().run_in_executor(None, made.remove)
            return
        with contextlib.ExitStack() as folders:
            yield [
                folders.enter_context(TemporaryDirectory(prefix="allranks-", ignore_cleanup_errors=True))
                for _ in range(count)
            ]

    def _prepare(
        self, step: Step, folder: Path, given: list[Given], places: list[tuple[Output, Path]], instances: int
    ) -> list[tuple[Path, Ports]]:
        """The working copy of the code and the ports, on each instance."""
        for name in ("outputs", "reports", logs.FOLDER):
            (folder / name).mkdir(parents=True, exist_ok=True)
        code = Path(step.code.folder) if step.code else None
        prepared = []
        for rank in range(instances):
            own = folder / "instances" / str(rank)
            own.mkdir(parents=True, exist_ok=True)
            copy = working_copy(code, own, folder / "outputs", self._stop_staging)
            ports = stage(given, places, own, mounts=self._kind.isolated, stop=self._stop_staging)
            prepared.append((copy, ports))
        return prepared

    def _note_left_out(self, record: StepRecord, ports: list[Ports]) -> None:
        for text in dict.fromkeys(text for instance in ports for text in instance.left_out):
            if text not in record.notes:
                self._recorder.note(record, text)

    async def _mlflow_run(self, step: Step, record: StepRecord) -> str | None:
        if not self._tracking.tracks(step):
            return None
        tags = {"allranks.run": self._run.id, "allranks.step": record.name, "allranks.attempt": str(record.attempt)}
        try:
            return await self._tracking.create(self._settings.experiment, record.display_name, tags)
        except TrackingError as error:
            self._recorder.note(record, f"MLflow gets no metrics of this step: {error}")
            return None

    async def _end_mlflow_run(self, record: StepRecord) -> None:
        if record.mlflow_run_id is None:
            return
        status = {Status.COMPLETED: "FINISHED", Status.FAILED: "FAILED"}.get(record.status, "KILLED")
        try:
            curves = await self._tracking.end(record.mlflow_run_id, status)
        except TrackingError as error:
            self._recorder.note(record, f"MLflow gave no metrics of this step: {error}")
            return
        if curves:
            # MLflow has everything that was logged, also by a script that reports nothing to the engine.
            reported = {name: points for name, points in record.metrics.items() if name not in curves}
            self._recorder.forget_points(record)
            self._recorder.add_points(record, {**reported, **curves})

    def _ranks(
        self,
        scope: Scope,
        step: Step,
        record: StepRecord,
        launch: Launch,
        given: list[Given],
        prepared: list[tuple[Path, Ports]],
        variables: list[dict[str, str]],
    ) -> tuple[tuple[Program, ...], dict[int, Path]]:
        """What each rank runs, and where it reports; the record gets its ranks."""
        folder = Path(record.folder)
        shell = shutil.which("bash") or "/bin/sh"
        commands = [render(step.command, ports.inputs, ports.outputs) for _, ports in prepared]
        parameters = {port.name: port.value for port in given if port.type in PRIMITIVES and port.value is not None}
        own = variables_of(step, scope)
        ranks = []
        reports: dict[int, Path] = {}
        record.ranks = []
        for process in processes(launch):
            copy, ports = prepared[process.instance_rank]
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
            log.parent.mkdir(parents=True, exist_ok=True)
            log.touch()
            hostname = launch.hostnames[process.instance_rank]
            record.ranks.append(
                RankRecord(process.rank, process.instance_rank, process.local_rank, hostname, log=str(log))
            )
            arguments = (shell, "-c", commands[process.instance_rank])
            ranks.append(Program(launcher_events.rank_name(process.rank), arguments, environment, str(copy), str(log)))
        return tuple(ranks), reports

    def _machine(
        self,
        step: Step,
        interpreter: Path,
        instance: Instance,
        instances: tuple[Instance, ...],
        given: list[Given],
        ports: Ports,
        temporary_folder: str,
    ) -> InstanceSpec:
        data = [port.value for port in given if port.value is not None and port.type not in PRIMITIVES]
        outputs = [os.path.dirname(path) for path in ports.outputs.values()]
        keep = [str(self._workspace.root), *interpreters.prefixes(interpreter), str(SOURCE), *data, *outputs]
        return InstanceSpec(
            instance.index,
            instance.address,
            instance.hostname,
            tuple((other.address, other.hostname) for other in instances),
            step.shm_size,
            temporary_folder,
            tuple(path for path in keep if os.path.exists(path)),
            tuple(ports.read_only),
        )

    def _collect(self, record: StepRecord, places: list[tuple[Output, Path]], ports: list[Ports]) -> None:
        """Keeps what the step wrote; a file that it should have written and has not is a failure."""
        for instance in ports:
            upload(instance, self._stop_saving)
        record.outputs = []
        for output, place in places:
            if output.type in FILE_TYPES and not place.is_file():
                log = record.ranks[0].log
                reason = f"output {output.name} was not written: there is no file {place}"
                record.status = Status.FAILED
                record.verdict = Verdict(record.name, reason, log=log, tail=tail(log))
                return
            value = place.read_text(encoding="utf-8", errors="replace") if output.type in PRIMITIVES else None
            found = digest.of_path(place, self._stop_saving)
            record.outputs.append(OutputRecord(output.name, output.type, str(place), value, found))
        folder = Path(record.folder)
        files = sorted(str(path.relative_to(folder)) for path in (folder / "outputs").rglob("*") if path.is_file())
        record.artifacts = files[:ARTIFACTS]


def variables_of(step: Step, scope: Scope) -> dict[str, str]:
    """Return the step's environment variables with their bindings resolved."""
    return {name: values.resolve(value, scope.lookup) or "" for name, value in step.environment_variables.items()}


def place_of(output: Output, wanted: str | None, folder: Path, name: str) -> Path:
    """Return where an output ends up: where the user wants it, if that is on this machine, else in the run's folder.

    wanted: the path that the user gave, which may be a template or a URI
    folder: of the step
    name:   of the step's job
    """
    if wanted is not None and not is_remote(wanted):
        return Path(output_path(wanted, name=name, output_name=output.name)).absolute()
    return folder / "named-outputs" / output.name


def is_within(path: str, around: str) -> bool:
    """Return whether a node is the one at the path `around`, or is held by it."""
    return path == around or path.startswith((f"{around}.", f"{around}["))
