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
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias, TypeVar

from allranks.contract import job as jobs
from allranks.contract import logs, report
from allranks.contract.launch import Launch, processes
from allranks.contract.templating import output_path, render
from allranks.local import installed, interpreters, reuse
from allranks.local.boot import SOURCE
from allranks.local.instances import temporary
from allranks.local.instances.kinds import Instance, InstanceKind
from allranks.local.instances.supervisor import Event, Machine, Program, Supervisor
from allranks.local.launchers import LAUNCHERS, Assignment
from allranks.local.launchers import events as launcher_events
from allranks.local.slots import Machines
from allranks.local.step import rank_environment, verdict
from allranks.local.step.launch import launch_of
from allranks.local.step.monitor import Watch, Watched
from allranks.local.step.staging import Ports, stage, upload, working_copy
from allranks.local.tracking.client import Tracking, TrackingError
from allranks.plan import digest, values
from allranks.plan.file_tree import StoppedError
from allranks.plan.graph import FILE_TYPES, PRIMITIVES, Output, Plan, Step
from allranks.plan.values import Given
from allranks.runs.recorder import Notebook
from allranks.runs.records import OutputRecord, RankRecord, RunRecord, Status, StepRecord, Verdict
from allranks.runs.workspace import Workspace

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


GpuShare: TypeAlias = Callable[[Step], list[dict[str, str]]]
"""For each instance of a step the variables that name its GPUs."""


class Attempts:
    """Tries steps of one run. Each step's record is brought up to date, kept, and told to whoever watches."""

    def __init__(
        self,
        plan: Plan,
        run: RunRecord,
        workspace: Workspace,
        notebook: Notebook,
        supervisor: Supervisor,
        kind: InstanceKind,
        tracking: Tracking,
        gpu_share: GpuShare,
        *,
        force_rerun: bool,
    ) -> None:
        self._plan = plan
        self._run = run
        self._workspace = workspace
        self._notebook = notebook
        self._supervisor = supervisor
        self._kind = kind
        self._tracking = tracking
        self._gpu_share = gpu_share
        self._force_rerun = force_rerun
        self._machines = Machines()
        self._installed = functools.cache(installed.of)  # once a run: it lists some folders
        asyncio.get_running_loop().run_in_executor(None, temporary.sweep, workspace.temporary)
        self._keepers: set[str] = set()
        self._idle = asyncio.Event()
        self._stopping = False
        # Threads look at these: inputs are not read on once the run is stopped, outputs are saved within the grace.
        self._stop_staging = threading.Event()
        self._stop_saving = threading.Event()

    async def __call__(self, step: Step, record: StepRecord) -> None:
        """Tries the step once. Raises OSError where this machine's disk is full."""
        with _judged(record):
            await self._attempt(step, record)
        if record.ended is None:
            record.ended = time.time()
            self._notebook.changed(record)

    async def _attempt(self, step: Step, record: StepRecord) -> None:
        record.status = Status.PREPARING
        record.started, record.ended, record.verdict, record.progress = time.time(), None, None, None
        record.ranks = []
        self._notebook.forget_points(record)
        self._notebook.changed(record)
        given = values.given(self._plan, step, values.outputs_of(self._run))
        record.inputs = {port.name: port.value for port in given if port.value is not None}
        has_data = any(port.value is not None and port.type not in PRIMITIVES for port in given)
        key = await _do(functools.partial(self._key, step, given), aside=has_data) if step.deterministic else None
        if key is not None and not self._force_rerun and await self._reuse(key, record):
            return
        indexes = self._machines.take(step.instance_count)
        try:
            await self._run_ranks(step, record, given, self._kind.instances(indexes))
        finally:
            self._machines.give(indexes)
        if key is not None and record.status is Status.COMPLETED:
            self._notebook.remember(key, record)
        self._notebook.changed(record)

    async def stop(self, grace: float) -> None:
        """Ends every rank that runs, and their steps as Canceled: SIGTERM, then after `grace` seconds SIGKILL."""
        self._stopping = True
        self._stop_staging.set()
        loop = asyncio.get_running_loop()
        loop.call_later(grace, self._stop_saving.set)
        loop.call_later(grace + TRACKING_GRACE, self._tracking.abandon)
        await self._signal(signal.SIGTERM)
        if self._keepers:
            self._idle.clear()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._idle.wait(), grace)
        await self._signal(signal.SIGKILL)

    async def kill(self) -> None:
        """Ends every rank that runs, at once."""
        self._stopping = True
        self._stop_staging.set()
        self._stop_saving.set()
        asyncio.get_running_loop().call_later(TRACKING_GRACE, self._tracking.abandon)
        await self._signal(signal.SIGKILL)

    async def _signal(self, number: int) -> None:
        for keeper in list(self._keepers):
            await self._supervisor.signal(keeper, number)

    def _key(self, step: Step, given: list[Given]) -> str:
        inputs = values.digests(given, self._run, lambda path: digest.of_path(Path(path), self._stop_staging))
        return reuse.key(step, inputs, self._installed(interpreters.of_step(self._plan, step)))

    async def _reuse(self, key: str, record: StepRecord) -> bool:
        found = self._notebook.recall(key)
        if found is None:
            return False
        run, earlier = found
        if not await asyncio.to_thread(reuse.is_intact, earlier, self._stop_staging):
            self._notebook.note(record, f"what it wrote in run {run} is no longer as it was, so it runs again")
            return False
        record.reused_from, record.folder = run, earlier.folder
        record.outputs, record.artifacts = earlier.outputs, earlier.artifacts
        record.mlflow_run_id = earlier.mlflow_run_id
        record.status, record.ended = Status.COMPLETED, time.time()
        self._notebook.add_points(record, earlier.metrics)
        self._notebook.note(record, f"reused from run {run}")
        self._notebook.changed(record)
        return True

    async def _run_ranks(
        self, step: Step, record: StepRecord, given: list[Given], instances: tuple[Instance, ...]
    ) -> None:
        folder = Path(record.folder)
        places = [(output, self._place(step, output, folder)) for output in step.outputs]
        prepare = functools.partial(self._prepare, step, folder, given, places, len(instances))
        prepared = await _do(prepare, aside=bool(step.code or given))
        self._note_left_out(record, [ports for _, ports in prepared])
        record.mlflow_run_id = await self._mlflow_run(step, record)
        launch = launch_of(step, instances, self._kind)
        if self._stopping:
            record.status, record.ended = Status.CANCELED, time.time()
            return
        keepers = [f"{step.name}/{record.attempt}/{rank}" for rank in range(len(instances))]
        events: asyncio.Queue[Event] = asyncio.Queue()
        with self._temporary_folders(len(instances)) as folders:
            interpreter = interpreters.of_step(self._plan, step)
            machine = rank_environment.machine(os.environ, interpreter, len(processes(launch)))
            shares = self._gpu_share(step)
            named = [{} if self._kind.isolated else {"TMPDIR": folder} for folder in folders]
            variables = [machine | own | share for own, share in zip(named, shares, strict=True)]
            ranks, reports = self._ranks(step, record, launch, given, prepared, variables)
            own = folder / "launcher"
            assignment = Assignment(launch, ranks, self._kind, variables, own, folder / logs.mpi_log(record.attempt))
            launching = LAUNCHERS[step.distribution.type].launch(assignment)
            record.status = Status.RUNNING
            self._notebook.changed(record)
            self._keepers.update(keepers)
            try:
                launched = []
                for rank, keeper in enumerate(keepers):
                    if self._stop_staging.is_set():
                        break  # a signal reaches those alone that are launched
                    launched.append(keeper)
                    ports = prepared[rank][1]
                    onto = self._machine(step, interpreter, instances[rank], instances, given, ports, folders[rank])
                    await self._supervisor.launch(keeper, onto, launching.programs[rank], events)
                watched = Watched(record, frozenset(launched), events, launching, assignment.log, reports, step.timeout)
                await Watch(watched, self._notebook, self._supervisor, lambda: self._stopping).until_gone()
            finally:
                self._keepers.difference_update(keepers)
                if not self._keepers:
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
            self._notebook.note(record, hint)
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

    def _place(self, step: Step, output: Output, folder: Path) -> Path:
        """Where an output ends up: where the user wants it, if that is on this machine, else in the run's folder."""
        if output.path is not None and "://" not in output.path and not output.path.startswith("azureml:"):
            return Path(output_path(output.path, name=self._name(step), output_name=output.name)).absolute()
        return folder / "named-outputs" / output.name

    def _name(self, step: Step) -> str:
        """The step's own run id, as AZUREML_RUN_ID has it."""
        return f"{self._run.id}_{step.name}"

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
                self._notebook.note(record, text)

    async def _mlflow_run(self, step: Step, record: StepRecord) -> str | None:
        if not self._tracking.tracks(step):
            return None
        tags = {"allranks.run": self._run.id, "allranks.step": step.name, "allranks.attempt": str(record.attempt)}
        try:
            return await self._tracking.create(self._experiment(), record.display_name, tags)
        except TrackingError as error:
            self._notebook.note(record, f"MLflow gets no metrics of this step: {error}")
            return None

    async def _end_mlflow_run(self, record: StepRecord) -> None:
        if record.mlflow_run_id is None:
            return
        status = {Status.COMPLETED: "FINISHED", Status.FAILED: "FAILED"}.get(record.status, "KILLED")
        try:
            curves = await self._tracking.end(record.mlflow_run_id, status)
        except TrackingError as error:
            self._notebook.note(record, f"MLflow gave no metrics of this step: {error}")
            return
        if curves:
            # MLflow has everything that was logged, also by a script that reports nothing to the engine.
            reported = {name: points for name, points in record.metrics.items() if name not in curves}
            self._notebook.forget_points(record)
            self._notebook.add_points(record, {**reported, **curves})

    def _experiment(self) -> str:
        return self._plan.experiment or self._plan.name

    def _ranks(
        self,
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
        ranks = []
        reports: dict[int, Path] = {}
        record.ranks = []
        for process in processes(launch):
            copy, ports = prepared[process.instance_rank]
            job = jobs.Job(
                run_id=self._name(step),
                root_run_id=self._run.id,
                experiment=self._experiment(),
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
                **rank_environment.given(step, job, launch, process, self._kind),
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
    ) -> Machine:
        data = [port.value for port in given if port.value is not None and port.type not in PRIMITIVES]
        outputs = [os.path.dirname(path) for path in ports.outputs.values()]
        keep = [str(self._workspace.root), *interpreters.prefixes(interpreter), str(SOURCE), *data, *outputs]
        return Machine(
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
                record.verdict = Verdict(record.name, reason, log=log, tail=verdict.tail(log))
                return
            value = place.read_text(encoding="utf-8", errors="replace") if output.type in PRIMITIVES else None
            found = digest.of_path(place, self._stop_saving)
            record.outputs.append(OutputRecord(output.name, output.type, str(place), value, found))
        folder = Path(record.folder)
        files = sorted(str(path.relative_to(folder)) for path in (folder / "outputs").rglob("*") if path.is_file())
        record.artifacts = files[:ARTIFACTS]
