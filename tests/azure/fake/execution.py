"""Runs submitted jobs with the local engine, from their REST bodies alone, one after the other."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import bounded
from allranks.errors import InputError
from allranks.history.records import OutputRecord, RunRecord, StepRecord
from allranks.plan.codec import converter
from allranks.plan.graph import Plan
from fake import blobs
from fake.jobs import ENDED, Job
from fake.library import Library
from fake.run_history import ARTIFACTS, artifacts
from fake.workspaces import DATASTORES

if TYPE_CHECKING:
    from fake.service import FakeAzure

LOG = "logs/azureml/executionlogs.txt"
_STORE = "workspaceblobstore"
_PROXIES = ("HTTPS_PROXY", "https_proxy", "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "REQUESTS_CA_BUNDLE")
"""What the processes of steps are not to have: they are on no machine of Azure's."""

_STATES = {"NotStarted": "NotStarted", "Preparing": "Preparing", "Interrupted": "Failed"}


class Execution:
    """A thread that runs the jobs, each by an engine in a process of its own; it starts with the first job.

    Bodies are read while the client waits for the answer to its request: the SDK in one process is not for two threads.
    """

    def __init__(self, azure: FakeAzure) -> None:
        self._azure = azure
        self._waiting: queue.Queue[tuple[Job, Plan | str] | None] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[str] | None = None
        self._running: Job | None = None

    def start(self, job: Job) -> None:
        """Runs a job when those before it have ended."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        self._waiting.put((job, self._read(job)))

    def cancel(self, job: Job) -> None:
        """Ends a job: at once where it waits, in good order where it runs."""
        if job is self._running and self._process is not None:
            job.status = "CancelRequested"
            self._process.send_signal(signal.SIGINT)
        else:
            job.move("Canceled")

    def close(self) -> None:
        """Ends what still runs."""
        with self._azure.lock:
            while not self._waiting.empty():
                with contextlib.suppress(queue.Empty):
                    if waiting := self._waiting.get_nowait():
                        waiting[0].move("Canceled")
            if self._process is not None:
                self._process.send_signal(signal.SIGTERM)
        self._waiting.put(None)
        if self._thread is not None:
            bounded.join(self._thread)

    def _work(self) -> None:
        while (waiting := self._waiting.get()) is not None:
            job, plan = waiting
            if job.status in ENDED:
                continue
            try:
                self._fail(job, plan) if isinstance(plan, str) else self._run(job, plan)
            except Exception as error:
                traceback.print_exc()
                self._fail(job, f"the fake is broken: {type(error).__name__}: {error}")

    def _read(self, job: Job) -> Plan | str:
        """The plan of a job's body, or what is wrong with it."""
        from fake.rest import read_rest

        folder = self._azure.folder
        body = {"name": job.name, "properties": job.properties}
        try:
            return read_rest(body, Library(self._azure, folder / "files"), folder / "workspace" / "snapshots")
        except InputError as error:
            return str(error)

    def _run(self, job: Job, plan: Plan) -> None:
        azure = self._azure
        with azure.lock:
            job.move("Preparing")
        file = azure.folder / f"{job.name}.json"
        file.write_text(converter().dumps(plan), encoding="utf-8")
        with azure.lock:
            if job.status in ENDED:
                return
            self._running, self._process = job, self._started(file)
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.extend(self._process.stderr), daemon=True)  # type: ignore
        reader.start()
        run = None
        for line in self._process.stdout:  # type: ignore[union-attr]
            run = converter().loads(line, RunRecord)
            with azure.lock:
                _Mirror(azure, job, plan).take(run)
        code = self._process.wait()
        bounded.join(reader)
        with azure.lock:
            self._running = self._process = None
            if run is None or job.status not in ENDED:
                cancelled = job.status == "CancelRequested"
                self._fail(job, "".join(errors).strip() or f"the engine ended with code {code}", cancelled)

    def _started(self, plan: Path) -> subprocess.Popen[str]:
        variables = {name: value for name, value in os.environ.items() if name not in _PROXIES}
        variables["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        track = "track" if self._azure.tracks else "plain"
        return bounded.Popen(
            [sys.executable, "-m", "fake.engine_process", plan, self._azure.folder / "workspace", track],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _fail(self, job: Job, message: str, cancelled: bool = False) -> None:
        with self._azure.lock:
            if not cancelled:
                job.error = message
            job.status = "Running"
            job.move("Canceled" if cancelled else "Failed")


class _Mirror:
    """Makes jobs and files of the service out of the engine's record."""

    def __init__(self, azure: FakeAzure, job: Job, plan: Plan) -> None:
        self._azure, self._job, self._plan = azure, job, plan
        self._is_pipeline = job.kind == "Pipeline"

    def take(self, run: RunRecord) -> None:
        """Takes over all that is new."""
        before = {name: self._azure.jobs[name].status for name in self._job.children}
        for step in run.steps:
            job = self._step_job(step)
            self._take_files(job, step)
            if job is not self._job:
                self._take_state(job, str(step.status), step)
        if self._is_pipeline:
            self._take_log(run, before)
        if str(run.status) in ENDED:
            self._take_outputs(run)
            self._finish(run)
        elif self._job.status not in (*ENDED, "CancelRequested"):
            self._job.move("Running")

    def _step_job(self, step: StepRecord) -> Job:
        """The job of a step: of a trial a child of its sweep's, named by its number."""
        parent, name = self._job, self._name(step.name)
        if step.is_trial:
            sweep, _, number = step.name.rpartition(".trial[")
            parent = self._azure.jobs[self._name(sweep)]
            name = f"{parent.name}_{number.rstrip(']')}"
        if name not in self._azure.jobs:
            self._azure.jobs[name] = Job(name, None, "NotStarted", step.name, parent.name)
            self._azure.jobs[name].run_properties = {"azureml.moduleName": step.component, "stepName": step.name}
            parent.children.append(name)
        return self._azure.jobs[name]

    def _name(self, step: str) -> str:
        own = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._job.name}/{step}"))
        return own if self._is_pipeline else self._job.name

    def _take_state(self, job: Job, status: str, step: StepRecord) -> None:
        if step.verdict:
            job.error = step.verdict.reason
        if step.reused_from:
            job.run_properties |= {"azureml.isreused": "true", "azureml.reusedpipelinerunid": self._job.name}
        job.started, started = step.started or job.started, job.status
        if started != status:
            job.move(_STATES.get(status, status))

    def _take_files(self, job: Job, step: StepRecord) -> None:
        """Logs while they are written, everything else when the step has ended."""
        folder = Path(step.folder)
        for log in sorted((folder / "user_logs").rglob("*.txt")):
            self._show(job, log, log.relative_to(folder).as_posix())
        if str(step.status) in ENDED:
            for file in sorted(path for path in (folder / "outputs").rglob("*") if path.is_file()):
                self._show(job, file, file.relative_to(folder).as_posix())
            for output in step.outputs:
                job.outputs[output.name] = self._upload(job, output)

    def _show(self, job: Job, file: Path, name: str) -> None:
        container = self._azure.blobs.container(ARTIFACTS)
        container.setdefault(f"{artifacts(job.name)}/{name}", blobs.Blob(file))
        if name.endswith(".txt") and name not in job.logs and name.startswith("user_logs/"):
            job.logs.append(name)

    def _upload(self, job: Job, output: OutputRecord) -> tuple[str, str, str]:
        container = self._azure.blobs.container(DATASTORES[_STORE])
        source, prefix = Path(output.path), f"azureml/{job.name}/{output.name}"
        if source.is_file():
            container.setdefault(f"{prefix}/{source.name}", blobs.Blob(source))
            return output.type, _STORE, f"{prefix}/{source.name}"
        for file in sorted(path for path in source.rglob("*") if path.is_file()):
            container.setdefault(f"{prefix}/{file.relative_to(source).as_posix()}", blobs.Blob(file))
        return output.type, _STORE, f"{prefix}/"

    def _take_outputs(self, run: RunRecord) -> None:
        """The pipeline's outputs, which lie where the steps wrote them."""
        written = {step.name: step for step in run.steps}
        for output in self._plan.graph.outputs if self._is_pipeline else ():
            job = self._step_job(written[output.source.node])
            if output.source.name in job.outputs:
                self._job.outputs[output.name] = job.outputs[output.source.name]

    def _take_log(self, run: RunRecord, before: dict[str, str]) -> None:
        name = f"{artifacts(self._job.name)}/{LOG}"
        container = self._azure.blobs.container(ARTIFACTS)
        log = container.setdefault(name, blobs.Blob(b""))
        lines = []
        for child in self._job.children:
            job = self._azure.jobs[child]
            if job.status != before.get(child, "NotStarted"):
                stamp = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime())
                lines.append(f"[{stamp}] {job.display_name}: {job.status}, run id {child}\n")
        log.content = log.read() + "".join(lines).encode()
        if LOG not in self._job.logs:
            self._job.logs.append(LOG)

    def _finish(self, run: RunRecord) -> None:
        if run.verdict:
            self._job.error = f"step {run.verdict.step}: {run.verdict.reason}"
        self._job.move(str(run.status))


def wait(
    azure: FakeAzure, name: str, until: Callable[[Job], bool] = lambda job: job.status in ENDED, patience: float = 120.0
) -> Job:
    """Until a job is as it shall be, by default until it has ended. Raises AssertionError where that never comes."""
    deadline = time.monotonic() + patience
    while True:
        with azure.lock:
            job = azure.jobs[name]
            if until(job):
                return job
            assert job.status not in ENDED, f"job {name} is {job.status}: {job.error}"
        assert time.monotonic() < deadline, f"job {name} is still {job.status}"
        time.sleep(0.05)
