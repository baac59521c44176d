"""A run as an object: start it, from a job or a script, wait for it, read its results."""

from __future__ import annotations

import atexit
import io
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from allranks.api import jobs, notebook_view
from allranks.api.engine_process import EngineProcess, start
from allranks.api.notebook_view import html
from allranks.errors import Problem
from allranks.history import locks, stored
from allranks.history.formatting import cause, reason
from allranks.history.log_reader import print_logs
from allranks.history.nested import node_at
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.local.cancellation import cancel_nodes, cancel_run
from allranks.local.options import Options
from allranks.project.script_job import script_job
from allranks.workspace import Workspace

_FRAME = 0.5
"""Seconds between two frames of the view in a notebook."""

_started: dict[str, EngineProcess] = {}
"""The engines that this process has started, by the ids of their runs. An engine stops when nothing refers to it."""


class RunFailedError(RuntimeError):
    """An awaited run has failed or was canceled. The message names the failed rank and the reason."""


class Run:
    """A run of a workspace. Every property is read when it is used, so that it is current."""

    def __init__(self, id: str, workspace: Workspace) -> None:
        self.id = id
        self._workspace = workspace

    def __repr__(self) -> str:
        record = self.record
        return f"<Run {self.id} {record.display_name or record.name}: {record.status}>"

    def _repr_html_(self) -> str:
        return html(self.record)

    @property
    def record(self) -> RunRecord:
        """The run with its steps, as stored."""
        return stored.run(self._workspace, self.id)

    @property
    def status(self) -> Status:
        """NotStarted, Preparing, Running, Completed, Failed, Canceled or Interrupted."""
        return self.record.status

    @property
    def steps(self) -> dict[str, StepRecord]:
        """The steps and the nodes that contain them, by path: ``run.steps["train"].metrics["loss"]`` is a curve, and
        ``run.steps["train"].usage[0]`` are the samples of CPU, memory and GPU of instance 0."""
        record = self.record
        stored.load_usage(self._workspace, record)
        return {step.name: step for step in record.steps}

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """The last value of each metric, by step and name: ``run.metrics["train"]["loss"]``."""
        return {
            step.name: {name: points[-1].value for name, points in step.metrics.items() if points}
            for step in self.record.steps
            if step.metrics
        }

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs of the pipeline, by name: absolute paths, and values of primitives as text. The outputs of a step
        are in ``run.steps[...].outputs``."""
        return dict(self.record.outputs)

    @property
    def page(self) -> Path | None:
        """The HTML page of the run; None before it has been written."""
        page = self.record.page
        return Path(page) if page else None

    def logs(self, step: str | None = None, rank: int | None = None) -> str:
        """Return the logs of the ranks as text. Each line begins with its step and rank if there are several logs.

        step: the path of a step, or of a group of steps; None: all
        rank: the number of a rank; None: all

        Raise InputError if there is no such step or rank.
        """
        text = io.BytesIO()
        print_logs(self.record, step, rank, text)
        return text.getvalue().decode(errors="replace")

    def wait(self, timeout: float | None = None, *, check: bool = True) -> Run:
        """Wait until the run has ended, and return it. In a notebook, show its progress meanwhile.

        An interrupt (Ctrl-C, or the kernel's stop button) stops this run, and no other.

        timeout: in seconds; None: no limit
        check:   whether to raise RunFailedError unless the run is Completed

        Raise TimeoutError if it has not ended in time; the run continues.
        """
        try:
            if not self._wait(timeout):
                raise TimeoutError(f"run {self.id} has not ended after {timeout:g} s")
        except KeyboardInterrupt:
            self._stop()
            raise
        record = self.record
        if check and record.status is not Status.COMPLETED:
            raise RunFailedError(_failure(record))
        return self

    def cancel(self, *steps: str, now: bool = False) -> None:
        """End the run, or only some of its steps and everything inside them, and wait until that has happened.

        steps: paths of steps; none: the whole run
        now:   whether to kill the ranks without a grace period

        Raise InputError if nothing executes the run or there is no such step.
        """
        if steps:
            record = self.record
            cancel_nodes(self._workspace, record, [node_at(record, step).path for step in steps], at_once=now)
            return
        cancel_run(self._workspace, self.id, at_once=now)
        if engine := _started.get(self.id):
            engine.wait()

    def _wait(self, timeout: float | None) -> bool:
        engine = _started.get(self.id)
        folder = self._workspace.run_folder(self.id)

        def is_over(seconds: float | None) -> bool:
            return locks.wait(folder, seconds) if engine is None else engine.wait(seconds)

        with notebook_view.shown(lambda: self.record) as update:
            ended = is_over(timeout) if update is None else update.until(is_over, timeout, _FRAME)
        if ended and engine is not None:
            _started.pop(self.id, None)
            if not self.status.ended:
                raise engine.error()
        return ended

    def _stop(self) -> None:
        engine = _started.get(self.id)
        if engine is None:
            return
        engine.stop()
        try:
            engine.wait()
        except KeyboardInterrupt:
            engine.stop()
            engine.wait()
            raise


# Over 60 lines: most of it describes the options.
def run(
    job: Any,
    inputs: Mapping[str, Any] | None = None,
    *,
    instances: Literal["auto", "rack", "loopback"] = "auto",
    force_rerun: bool = False,
    retries: int = 0,
    slots: int | None = None,
    gpus: Literal["auto", "share"] | int = "auto",
    track: bool = True,
    cold: bool = False,
    start_timeout: float = 20.0,
    stall: float = 300.0,
    offline: bool = False,
    sample: str = "",
    faults: Sequence[str] = (),
    environment: Literal["auto", "host", "venv", "conda"] = "host",
    stand_ins: Mapping[str, str | os.PathLike[str]] | None = None,
    folder: Path | str | None = None,
) -> Run:
    """Start a job on this machine, and return its run without waiting for it.

    The run has its own process, so it works inside a running event loop and next to other runs. It ends with this
    process: a script waits for its runs before it exits; a notebook's kernel that is shut down stops them.

    job:         the path of a file (``FILE[:NAME]``), the name of a component of the project or the library, a job of
                 azure-ai-ml, or a function with ``@dsl.pipeline``
    inputs:      values of the job's inputs, by name; of a component also instance_count and process_count_per_instance
    instances:   rack (Linux namespaces), loopback (addresses on 127.0.0.0/8), or auto: rack if this machine supports it
    force_rerun: whether to run every step, even if an earlier result could be reused
    retries:     how many times a failed step is retried
    slots:       how many ranks may run at once; None: the number of cores
    gpus:        auto (one per rank), share, or the number of GPUs to use
    track:       whether each step that runs Python gets an MLflow run
    cold:        whether every rank is started as a new process, instead of being forked from one that has imported the
                 packages of its script
    start_timeout: seconds that an emulated instance may take to start its processes
    stall:       seconds for which the ranks of a step may make no progress while some wait in a collective; 0: without
                 a limit
    offline:     whether nothing uses the network: data comes from the cache, and instances reach only each other
    sample:      how much of each folder and table of the inputs the run gets, evenly spaced: ``1%``, or ``1000`` files
                 or rows; default: all
    faults:      injected once each, such as ``kill:rank=3,step=20`` or ``evict:instance=1,after=10s``, as
                 ``allranks run --fault`` takes them; needs the package allranks-lab
    environment: how environments are made here, unless ``allranks.yaml`` says so: host (this Python), venv (the
                 pip packages of the definition), conda, container, or auto: the first that is true to it
    stand_ins:   by step, the folder with its outputs, so that it need not run: an entry for each, or its only output
    folder:      the workspace; default: the `.allranks` folder of the current folder or a parent

    Issue a UserWarning for each warning of `allranks.check`. Raise InputError, with every problem, if the job cannot
    run here; nothing is started then.
    """
    workspace = Workspace.at(folder)
    texts = jobs.texts_of(inputs, stand_ins)
    job = jobs.resolved(job)
    options = Options(
        *(instances, force_rerun, retries, slots, str(gpus), track),
        target=os.path.abspath(job) if jobs.is_path(job) else "",
        settings=texts,
        cold=cold,
        start_timeout=start_timeout,
        stall=stall,
        offline=offline,
        sample=sample,
        faults=faults,
        environment=environment,
    )
    identity, engine = start(jobs.read(job, texts, workspace, options, warn=_warn), workspace, options)
    _started[identity] = engine
    return Run(identity, workspace)


def launch(
    script: str | os.PathLike[str],
    arguments: Sequence[object] = (),
    *,
    layout: str = "",
    distribution: str = "",
    inputs: Mapping[str, str | os.PathLike[str]] | None = None,
    outputs: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    code: str | os.PathLike[str] | None = None,
    size: str = "",
    environment: str = "",
    **options: Any,
) -> Run:
    """Start a script on this machine as Azure ML would, and return its run without waiting for it.

    script:       a Python file, a shell script, or an executable file
    arguments:    of the script. ``{NAME}`` stands for the path of an input or output. An input or output that no
                  argument names is added as ``--NAME PATH``, unless the script reads AZURE_ML_INPUT_NAME or
                  AZURE_ML_OUTPUT_NAME
    layout:       INSTANCESxPROCESSES, such as ``2x4``; default: 1 instance, with a process for each GPU of `size`
    distribution: pytorch (the default), mpi, torchrun, accelerate, deepspeed, tensorflow or ray
    inputs:       folders and files of data, by name
    outputs:      names of folders that the script writes; their paths are in ``Run.outputs``
    env:          environment variables
    code:         the folder that is copied for the ranks, in which the script is; default: the script's folder
    size:         the Azure size, such as ``ND96asr_v4``
    environment:  ``azureml:NAME:VERSION``, an environment's YAML file, or the name of one that comes with allranks;
                  default: the one that fits the distribution
    options:      of `run`, such as ``retries`` and ``folder``

    Raise InputError, with every problem, if the script cannot run here; nothing is started then.
    """
    job = script_job(
        [os.fspath(script), *map(str, arguments)],
        layout=layout,
        distribution=distribution,
        inputs={name: os.fspath(path) for name, path in (inputs or {}).items()},
        outputs=outputs,
        variables=env,
        code=None if code is None else Path(code),
        size=size,
        environment=environment,
    )
    return run(job, **options)


def runs(limit: int | None = 20, *, folder: Path | str | None = None) -> list[Run]:
    """Return the runs of a workspace, the newest first.

    limit:  how many at most; None: all
    folder: the workspace; default: the `.allranks` folder of the current folder or a parent
    """
    workspace = Workspace.at(folder)
    return [Run(record.id, workspace) for record in stored.runs(workspace, limit, steps=False)]


def _warn(found: Sequence[Problem]) -> None:
    for problem in found:
        warnings.warn(str(problem), stacklevel=4)


def _failure(record: RunRecord) -> str:
    verdict = record.verdict
    heading = f"run {record.id} ({record.display_name or record.name}) is {record.status}"
    if verdict is None:
        return heading
    lines = [f"{heading}: {verdict.step}: {cause(verdict) or 'failed'}", reason(verdict) or "", *verdict.tail[-20:]]
    return "\n".join(filter(None, lines))


@atexit.register
def _wait_for_all() -> None:
    """Wait for the runs that a script has started, as for threads. An interrupt stops them, even one that has ended the
    script."""
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        for engine in _started.values():
            engine.stop()
    for identity, engine in list(_started.items()):
        try:
            engine.wait()
        except KeyboardInterrupt:
            for other in _started.values():
                other.stop()
            engine.wait()
        _started.pop(identity, None)
