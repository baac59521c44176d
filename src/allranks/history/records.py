"""The state of a run, its steps, ranks, curves and outputs. The executor updates it, the store saves it.

A resumed run has several executions. Its duration is the sum of theirs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from allranks.history.usage import Sample


class Status(StrEnum):
    """The states of a run, a node or a rank, named as on Azure ML.

    Interrupted: the engine of the run died. Skipped: a condition excluded the node, or it needs a skipped node's
                 output.
    """

    NOT_STARTED = "NotStarted"
    PREPARING = "Preparing"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"
    INTERRUPTED = "Interrupted"
    SKIPPED = "Skipped"

    @property
    def label(self) -> str:
        """The state as people read it."""
        return "Not started" if self is Status.NOT_STARTED else self.value

    @property
    def ended(self) -> bool:
        return self in (Status.COMPLETED, Status.FAILED, Status.CANCELED, Status.INTERRUPTED, Status.SKIPPED)


@dataclass(frozen=True)
class Point:
    """A metric's value at a training step. time: seconds since the epoch"""

    step: int
    value: float
    time: float


@dataclass(frozen=True)
class Verdict:
    """The rank of a step that failed first, and the reason.

    rank:      None if no rank caused the failure, as with a time-out
    exit_code: None if a signal ended the rank
    signal:    its name, such as SIGKILL
    reason:    one line: the exception, or what ended the rank
    log:       path of the rank's log
    tail:      the last lines of that log
    worker:    the rank as counted by a launcher that the rank started, such as torchrun; None without a launcher
    where:     the line of user code that raised the exception, such as train.py:10; "" if there is none
    consequences: messages of other ranks after that, one text for equal messages
    code:      of the explanation of this kind of failure; "" if the kind is unknown
    advice:    what to do about it
    """

    step: str
    reason: str
    rank: int | None = None
    instance_rank: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    log: str = ""
    tail: tuple[str, ...] = ()
    traceback: str = ""
    worker: int | None = None
    where: str = ""
    consequences: tuple[str, ...] = ()
    code: str = ""
    advice: str = ""


@dataclass
class RankRecord:
    """One process of a step. Times are seconds since the epoch; log is an absolute path.

    cpu_seconds:     CPU time, including its child processes; None until it is known
    peak_memory:     the largest memory of a sample, in bytes; without samples, the peak of resident memory of its
                     largest process
    peak_gpu_memory: the largest memory on its GPUs, in bytes; None without GPUs
    """

    rank: int
    instance_rank: int
    local_rank: int
    hostname: str
    status: Status = Status.NOT_STARTED
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    signal: str | None = None
    log: str = ""
    cpu_seconds: float | None = None
    peak_memory: int | None = None
    peak_gpu_memory: int | None = None


@dataclass
class OutputRecord:
    """An output of a step: its folder or file, and the value of a primitive as text. digest: of the content"""

    name: str
    type: str
    path: str
    value: str | None = None
    digest: str = ""


@dataclass(frozen=True)
class ModelRecord:
    """A version of a model in MLflow's registry."""

    name: str
    version: str


@dataclass(frozen=True)
class AttemptRecord:
    """An earlier attempt of a step. number: 0 for the first"""

    number: int
    status: Status
    started: float
    ended: float


@dataclass(frozen=True)
class Execution:
    """A period in which an engine executed a run. ended: None while it lasts, or if the engine was killed"""

    started: float
    ended: float | None = None


@dataclass(frozen=True)
class FaultRecord:
    """A fault that was injected into a step. fault: in the form of `--fault`; attempt: of the step, from 0"""

    fault: str
    node: str
    attempt: int
    time: float


@dataclass
class Progress:
    """The progress of a step, as its runtime reports it: done of total training steps."""

    done: int = 0
    total: int | None = None
    epoch: int | None = None


@dataclass
class StepRecord:
    """One node of a run: a step, or a node that contains others.

    name:        its path, such as ``train``, ``tune.train`` or ``loop[2].train``
    kind:        command, pipeline, condition, do_while, parallel_for, sweep, or iteration
    needs:       paths of the nodes that must end before it starts
    attempt:     0 for the first attempt, then 1, 2, ...
    attempts:    those that did not complete, and those before the run continued with the latest code
    reused_from: the run whose result of the same step was reused
    folder:      absolute path of the step's files: user_logs/, outputs/, named-outputs/
    metrics:     curves by name, each in the order of its points
    usage:       samples of resource usage by instance, each in the order of time; empty until they are loaded
    artifacts:   files below the step's ./outputs, relative to `folder`
    models:      the versions of models that it registered in MLflow
    result:      the line in which the step reports its result, such as why a model was not registered
    key:         digest of what the result of the last completed attempt depends on
    data:        digests of the data of its inputs, without those that were not read
    interpreter: of its processes, with its version; "" on Azure ML, or before it is known
    defaults:    names of the inputs with the component's default; empty on Azure ML, or before it starts
    straggler:   what is known about a rank that is steadily slower than the others; "" if none is
    """

    name: str
    display_name: str
    component: str
    distribution: str
    instance_count: int
    process_count_per_instance: int
    needs: tuple[str, ...] = ()
    status: Status = Status.NOT_STARTED
    attempt: int = 0
    started: float | None = None
    ended: float | None = None
    reused_from: str | None = None
    folder: str = ""
    mlflow_run_id: str | None = None
    ranks: list[RankRecord] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: list[OutputRecord] = field(default_factory=list)
    metrics: dict[str, list[Point]] = field(default_factory=dict)
    progress: Progress | None = None
    artifacts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    kind: str = "command"
    models: list[ModelRecord] = field(default_factory=list)
    result: str = ""
    key: str = ""
    data: dict[str, str] = field(default_factory=dict)
    interpreter: str = ""
    straggler: str = ""
    attempts: list[AttemptRecord] = field(default_factory=list)
    usage: dict[int, list[Sample]] = field(default_factory=dict)
    defaults: tuple[str, ...] = ()

    @property
    def is_trial(self) -> bool:
        """Whether it is a trial of a sweep, with a path such as ``tune.trial[7]``."""
        return self.kind == "command" and self.name.endswith("]") and ".trial[" in self.name


@dataclass(frozen=True)
class Submission:
    """The Azure ML side of a submitted run: its workspace and its page in the studio.

    pipeline: whether its steps are jobs of their own; else the run is its only step
    settled:  the steps whose state and logs have been downloaded completely
    complete: whether the whole run has been downloaded
    """

    subscription_id: str
    resource_group: str
    workspace_name: str
    studio: str = ""
    pipeline: bool = True
    settled: tuple[str, ...] = ()
    complete: bool = False


@dataclass
class RunRecord:
    """One execution of a plan.

    instances:    where it ran: rack or loopback; for a submitted run, the Azure ML workspace
    submitted:    None for a run on this machine
    job_name:     the value of ``${{name}}``; default: its id
    trigger_time: when its schedule fired, in seconds since the epoch; None if no schedule started it
    outputs:      the pipeline's outputs: name -> path
    page:         absolute path of the HTML page, from the start of the run
    results:      the last values of its most relevant metrics, after it has ended
    mlflow_run_id: of the MLflow run whose children are the runs of its steps; None if there is none
    target:       the file that it was read from, ``FILE[:NAME]``; "" if the job was given as an object
    executions:   the periods in which engines executed it: one, and another one each time it is resumed
    faults:       those that were injected, in the order of time
    settings:     the inputs that were set when the file was read, as text; secrets are masked
    """

    id: str
    name: str
    display_name: str
    source: str
    instances: str
    status: Status = Status.NOT_STARTED
    created: float = 0.0
    ended: float | None = None
    folder: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    steps: list[StepRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    page: str = ""
    submitted: Submission | None = None
    job_name: str = ""
    trigger_time: float | None = None
    results: dict[str, float] = field(default_factory=dict)
    target: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    mlflow_run_id: str | None = None
    executions: list[Execution] = field(default_factory=list)
    faults: list[FaultRecord] = field(default_factory=list)

    def find(self, name: str) -> StepRecord | None:
        """Return the node at that path, or None."""
        try:
            return self.step(name)
        except KeyError:
            return None

    def step(self, name: str) -> StepRecord:
        """Return the node at that path. Raise KeyError if there is none."""
        known: dict[str, StepRecord] = self.__dict__.setdefault("_by_name", {})
        if len(known) != len(self.steps) or name not in known:
            known.clear()
            known.update((step.name, step) for step in self.steps)
        return known[name]

    def add(self, step: StepRecord) -> None:
        self.steps.append(step)
        self.__dict__.setdefault("_by_name", {})[step.name] = step

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the first failed step; None if no step failed."""
        return next((step.verdict for step in self.steps if step.verdict), None)


def begin_execution(run: RunRecord, now: float) -> list[StepRecord]:
    """Record that an engine begins to execute the run. Return the steps whose attempts have changed.

    If the previous engine was killed, its execution and its running attempts have no recorded end: they end at the last
    moment in the run's record.
    """
    last = last_moment(run)
    if run.executions and run.executions[-1].ended is None:
        run.executions[-1] = Execution(run.executions[-1].started, max(last, run.executions[-1].started))
    run.executions.append(Execution(now if run.executions else run.created or now))
    return [step for step in run.steps if _add_killed(step, last)]


def end_execution(run: RunRecord) -> None:
    """Record the end of the run as the end of its current execution."""
    if run.executions and run.executions[-1].ended is None:
        run.executions[-1] = Execution(run.executions[-1].started, run.ended)


def periods(run: RunRecord, now: float) -> list[tuple[float, float]]:
    """Return the start and the end of each execution. One that has not ended lasts until `now`, or until the last
    recorded moment if the engine was killed."""
    if not run.executions:
        return [(run.created, _end(run, now))] if run.created else []
    return [
        (each.started, max(each.ended if each.ended is not None else _end(run, now), each.started))
        for each in run.executions
    ]


def pauses(run: RunRecord, now: float) -> list[tuple[float, float]]:
    """Return the start and the end of each time between two executions."""
    executed = periods(run, now)
    return [(before[1], after[0]) for before, after in pairwise(executed) if after[0] > before[1]]


def last_moment(run: RunRecord) -> float:
    """Return the latest time in the run's record; at least its creation."""
    moments = [run.created, *(point.time for step in run.steps for curve in step.metrics.values() for point in curve)]
    for step in run.steps:
        records: list[StepRecord | RankRecord] = [step, *step.ranks]
        for record in records:
            moments += [moment for moment in (record.started, record.ended) if moment is not None]
        moments += [moment for attempt in step.attempts for moment in (attempt.started, attempt.ended)]
    return max(moments)


def attempts_of(step: StepRecord) -> list[AttemptRecord]:
    """Return the attempts of a step whose last attempt has ended, including that one."""
    if step.kind != "command" or not step.started or step.reused_from or _is_known(step, step.attempt):
        return step.attempts
    ended = step.ended if step.ended is not None else step.started
    return [*step.attempts, AttemptRecord(step.attempt, step.status, step.started, ended)]


def earlier_attempts(step: StepRecord) -> Sequence[AttemptRecord]:
    """Return the attempts before the one that the step's own fields describe."""
    has_started = step.status is not Status.NOT_STARTED
    return [attempt for attempt in step.attempts if not (has_started and attempt.started == step.started)]


def _add_killed(step: StepRecord, last: float) -> bool:
    """Add the attempt that was running when the engine was killed. The step's own number is already that of the next
    attempt."""
    number = step.attempt - 1
    if step.status is not Status.NOT_STARTED or number < 0 or not step.started or _is_known(step, number):
        return False
    moments = [rank.ended for rank in step.ranks if rank.ended is not None]
    ended = max(moments) if len(moments) == len(step.ranks) and moments else last
    step.attempts = [*step.attempts, AttemptRecord(number, Status.INTERRUPTED, step.started, ended)]
    return True


def _is_known(step: StepRecord, number: int) -> bool:
    return any(attempt.number == number for attempt in step.attempts)


def _end(run: RunRecord, now: float) -> float:
    if run.ended is not None:
        return run.ended
    return last_moment(run) if run.status.ended else now
