"""Whatever goes wrong at whatever request: a right message and exit code, no secret, and a second call mends it.

``make faults FAULTS=5000`` is the long form: trials until so many faults have happened.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.pipeline.policies import RetryPolicy
from commands import add_step, only_run, pollers, write_log
from fake.fixtures import fresh
from fake.server import Server
from fake.service import FakeAzure
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_faults import KINDS, OF_THE_SERVICE, OF_THE_USER, SAID, SLOW, Planned, RandomFaults

from allranks.azure import watch
from allranks.cli.main import main
from allranks_command import Ended, write

GOAL = int(os.environ.get("ALLRANKS_FAULTS", "0"))
"""How many faults have to happen; 0: as many as 2 trials of each command have."""

ENVIRONMENT = {"name": "small", "version": "1", "image": "ubuntu:24.04"}
COMPONENT = {
    "type": "command",
    "name": "say",
    "version": "1",
    "display_name": "Say",
    "description": "Says a word.",
    "is_deterministic": True,
    "outputs": {"said": {"type": "uri_folder", "description": "What was said."}},
    "code": ".",
    "environment": "file:../../environments/small/environment.yaml",
    "command": "python say.py ${{outputs.said}}",
}
STEP = {"type": "command", "command": "python say.py", "code": "./code", "environment": {"image": "ubuntu:24.04"}}
PIPELINE = {"type": "pipeline", "settings": {"default_compute": "azureml:cpu-cluster"}, "jobs": {"say": STEP}}
SCHEDULE = {
    "name": "nightly",
    "trigger": {"type": "cron", "expression": "0 3 * * *", "time_zone": "UTC"},
    "create_job": "./pipeline.yml",
}
LOG = b"".join(b"line %d\n" % number for number in range(200))

numbers = itertools.count()


def write_project(folder: Path) -> None:
    write(folder, "environments/small/environment.yaml", json.dumps(ENVIRONMENT))
    write(folder, "components/say/component.yaml", json.dumps(COMPONENT))
    write(folder, "components/say/say.py", "print('said')\n")
    write(folder, "pipelines/pipeline.yml", json.dumps(PIPELINE))
    write(folder, "pipelines/code/say.py", f"print({next(numbers)})\n")
    write(folder, "pipelines/nightly.yml", json.dumps(SCHEDULE))
    write(folder, "pyproject.toml", "")


class _Output(io.StringIO):
    """A standard stream, to which logs are written as bytes."""

    @property
    def buffer(self) -> Any:
        return SimpleNamespace(write=lambda content: self.write(bytes(content).decode()), flush=self.flush)


class Trial:
    """One command against one service, first with faults and then without."""

    def __init__(self, azure: FakeAzure, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.azure, self.folder, self.patch = azure, folder, patch

    def run(self, *arguments: str) -> Ended:
        """Whatever it prints has no secret in it and no traceback, and nothing of it goes on."""
        out, err = _Output(), _Output()
        code = 0
        self.patch.setattr(sys, "argv", ["allranks", *arguments])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        done = Ended(code, out.getvalue(), err.getvalue())
        printed = done.out + done.err
        assert not [secret for secret in self.azure.secrets if secret in printed], "a secret is printed"
        assert "Traceback" not in printed, printed
        assert pollers() == []
        return done

    def submitted(self) -> str:
        """A run of one step with a log, submitted without faults."""
        done = self.run("submit", "pipelines/pipeline.yml", "--no-stream")
        assert done.code == 0, done.err
        run = only_run(self.azure)
        run.move("Running")
        step = add_step(self.azure, run.name, "say", "Running")
        write_log(self.azure, step, "std_log", LOG)
        return run.name

    def end(self) -> None:
        for job in self.azure.jobs.values():
            job.move("Completed")


def register(trial: Trial) -> Iterator[Any]:
    yield lambda: trial.run("register")
    names = {name for name, _ in (*trial.azure.environments, *trial.azure.components)}
    assert names == {"small", "say"}
    (body,) = trial.azure.components.values()
    code = body["properties"]["componentSpec"]["code"]
    assert [name for name, _ in trial.azure.codes if f"/codes/{name}/" in code], "a component without its code"


def submit(trial: Trial) -> Iterator[Any]:
    yield lambda: trial.run("submit", "pipelines/pipeline.yml", "--no-stream", "--json")
    for job in trial.azure.jobs.values():
        assert job.properties is not None
        assert job.properties["jobs"]["say"]["componentId"], "a job without its component"
    assert {run["id"] for run in trial.run("runs", "--json").json} <= set(trial.azure.jobs)


def stream(trial: Trial) -> Iterator[Any]:
    def call() -> Ended:
        looks = itertools.count()

        def sleep(seconds: float) -> None:
            if next(looks) == 2:
                trial.end()

        trial.patch.setattr(watch, "time", SimpleNamespace(sleep=sleep))
        return trial.run("submit", "pipelines/pipeline.yml")

    yield call
    assert [job.status for job in trial.azure.jobs.values()] != []


def download(trial: Trial) -> Iterator[Any]:
    name = trial.submitted()
    trial.end()
    yield lambda: trial.run("logs", name, "say")
    assert trial.run("logs", name, "say").code == 0
    (log,) = (trial.folder / ".allranks").rglob("std_log.txt")
    assert log.read_bytes() == LOG


def cancel(trial: Trial) -> Iterator[Any]:
    name = trial.submitted()

    def call() -> Ended:
        done = trial.run("cancel", name)
        over = trial.azure.jobs[name].status == "Canceled" and done.code == 2 and "it is Canceled" in done.err
        return Ended(0, done.out, done.err) if over else done

    yield call
    assert trial.azure.jobs[name].status == "Canceled"


def schedule(trial: Trial) -> Iterator[Any]:
    yield lambda: trial.run("schedules", "apply", "pipelines/nightly.yml")
    (body,) = trial.azure.schedules.values()
    assert body["properties"]["isEnabled"] is True
    again = trial.run("schedules", "apply", "pipelines/nightly.yml")
    assert (again.code, again.out) == (0, "nightly: unchanged\n")


COMMANDS: dict[str, Callable[[Trial], Iterator[Any]]] = {
    each.__name__: each for each in (register, submit, stream, download, cancel, schedule)
}


def plans(requests: int) -> st.SearchStrategy[list[Planned]]:
    """What goes wrong in a call that makes so many requests, and some more where it repeats them."""
    at, times = st.integers(0, requests + 2), st.sampled_from((1, 1, 2, 5, 12))
    return st.lists(st.builds(Planned, at, st.sampled_from(KINDS), times), min_size=1, max_size=3)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.timeout(300 + 2 * GOAL)
def test_faults_end_well(name: str, azure_server: Server, tmp_path_factory: pytest.TempPathFactory) -> None:
    def attempt(planned: list[Planned]) -> RandomFaults:
        folder = tmp_path_factory.mktemp(name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RetryPolicy, "BACKOFF_MAX", 0)
            patch.setattr(watch, "POLL", 0.0)
            patch.setenv("COLUMNS", "200")
            patch.chdir(folder)
            patch.setattr(watch, "time", SimpleNamespace(sleep=lambda _: None))
            write_project(folder)
            with fresh(azure_server, folder / "azure") as azure:
                azure.executes = False
                return tried(Trial(azure, folder, patch), COMMANDS[name], planned)

    undisturbed = attempt([])
    assert not undisturbed.happened
    faults: list[str] = []
    trials = itertools.count(1)
    count = 0

    @settings(
        max_examples=50 if GOAL else 2,
        database=None,
        deadline=None,
        derandomize=not GOAL,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(plans(undisturbed.requests))
    def batch(planned: list[Planned]) -> None:
        nonlocal count
        count = next(trials)
        faults.extend(attempt(planned).happened)

    while True:
        batch()
        if len(faults) >= GOAL / len(COMMANDS):
            break
    assert faults
    kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(Counter(faults).items()))
    print(f"{name}: {len(faults)} faults in {count} trials: {kinds}")


def tried(trial: Trial, command: Callable[[Trial], Iterator[Any]], planned: list[Planned]) -> RandomFaults:
    """The faults that happened. Raises AssertionError where one did not end well."""
    steps = command(trial)
    call = next(steps)
    faults = RandomFaults(trial.azure, planned)
    faults.install()
    done = call()
    faults.remove()
    if done.code:
        check_message(done, faults.happened)
        mended = call()
        assert mended.code == 0, f"after {faults.happened}, which said:\n{done.err}\nthe second call:\n{mended.err}"
    assert next(steps, None) is None
    return faults


def check_message(done: Ended, happened: list[str]) -> None:
    """It names what happened, and its exit code is that of a failure (1) or of something that the user can mend (2)."""
    assert done.code in (1, 2), done
    assert done.err.strip(), f"no message after {happened}: {done}"
    kinds = {kind for kind in happened if kind != SLOW}
    assert kinds, f"nothing but slow answers, and: {done.err}"
    assert [kind for kind in kinds if re.search(SAID[kind], done.err, re.IGNORECASE)], f"{kinds}: {done.err}"
    if kinds <= OF_THE_SERVICE:
        assert done.code == 1, f"{kinds}: {done.err}"
    if kinds <= OF_THE_USER:
        assert done.code == 2, f"{kinds}: {done.err}"
