"""The Python API: start runs of files, jobs and pipeline functions, and read their results."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import allranks
import bounded
from allranks.api.run import Run

JOB = {
    "command": "echo hello from $AZUREML_CR_NODE_RANK; echo ${{inputs.text}} > ${{outputs.out}}/text; ${{inputs.then}}",
    "environment": "azureml:any@latest",
    "inputs": {"text": "a", "then": "true"},
    "outputs": {"out": {"type": "uri_folder"}},
    "experiment_name": "greetings",
}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "job.yml"
    file.write_text(yaml.safe_dump(JOB))
    return file


@pytest.fixture(autouse=True)
def all_ended() -> Iterator[None]:
    """No engine is left after a test."""
    yield
    from allranks.api import run

    for engine in run._started.values():
        engine.stop()
        engine.wait()
    run._started.clear()


def start(job: Any, **inputs: Any) -> Run:
    return allranks.run(job, inputs=inputs, instances="loopback", track=False)


def test_a_run_of_a_file_has_its_results(job: Path) -> None:
    run = start(job, text="b").wait()
    assert run.status == "Completed"
    (step,) = run.steps.values()
    assert Path(step.outputs[0].path, "text").read_text() == "b\n"
    assert run.logs() == "hello from 0\n"
    assert run.logs(step.name, 0) == "hello from 0\n"
    assert run.page is not None
    assert run.page.is_file()
    assert [other.id for other in allranks.runs()] == [run.id]
    assert run.id in repr(run)
    assert "Completed" in run._repr_html_()


def test_a_job_and_a_pipeline_function_run_without_being_changed(job: Path) -> None:
    from azure.ai.ml import Input, command, dsl
    from azure.ai.ml.entities import CommandComponent

    write = CommandComponent(
        name="write",
        command="echo ${{inputs.text}} > ${{outputs.out}}/text",
        environment="any@latest",
        inputs={"text": Input(type="string")},
        outputs={"out": {"type": "uri_folder"}},
    )

    @dsl.pipeline
    def pair(text="default"):
        return {"result": write(text=text).outputs.out}

    run = start(pair, text="given").wait()
    assert Path(run.outputs["result"], "text").read_text() == "given\n"

    made = pair(text="made")
    run = start(made, text="set").wait()
    assert Path(run.outputs["result"], "text").read_text() == "set\n"

    alone = command(command="echo ${{inputs.n}}", environment="any@latest", inputs={"n": 1})
    assert start(alone, n=2).wait().logs() == "2\n"


@pytest.mark.parametrize(
    ("target", "inputs", "message"),
    [
        ("missing.yml", {}, "there is no such file"),
        ("job.yml", {"nope": 1}, "the pipeline has no input nope"),
        ("job.yml", {"text": [1]}, "a value of type list"),
        (print, {}, "an object of type builtin_function_or_method"),
        (None, {}, "an object of type NoneType"),
    ],
)
def test_wrong_input_raises_before_anything_is_started(
    job: Path, target: Any, inputs: dict[str, Any], message: str
) -> None:
    with pytest.raises(allranks.InputError, match=message):
        start(target, **inputs)
    assert not (job.parent / ".allranks").exists()


def test_a_failed_run_raises_with_the_rank_and_its_last_lines(job: Path) -> None:
    run = start(job, then="{ echo broken; exit 3; }")
    with pytest.raises(allranks.RunFailedError, match=r"(?s)rank 0.*exit code 3.*broken"):
        run.wait()
    assert run.wait(check=False).status == "Failed"


def test_wait_has_a_limit_and_cancel_ends_the_run(job: Path) -> None:
    run = start(job, then="exec sleep 1000")
    with pytest.raises(TimeoutError):
        run.wait(timeout=0.01)
    run.cancel(now=True)
    assert run.status == "Canceled"


def test_it_works_inside_a_running_event_loop(job: Path) -> None:
    async def main() -> str:
        run = start(job)
        await asyncio.to_thread(run.wait)
        return run.status

    assert asyncio.run(main()) == "Completed"


def test_check_returns_problems_instead_of_raising_them(job: Path) -> None:
    assert allranks.check(job)
    checked = allranks.check(job, {"nope": 1})
    assert not checked
    assert "no input nope" in str(checked)
    job.write_text(yaml.safe_dump(JOB | {"command": "echo ${{inputs.missing}}"}))
    assert "missing" in str(allranks.check("job.yml"))


SCRIPT = """
import sys
import allranks
run = allranks.run("job.yml", inputs={"then": sys.argv[1]}, instances="loopback", track=False)
print(run.id, flush=True)
if sys.argv[2:] == ["wait"]:
    run.wait()
"""


@contextlib.contextmanager
def script(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A script that starts a run. It does not outlive the block."""
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py", *arguments]
    with bounded.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_script_waits_for_its_runs_before_it_exits(job: Path) -> None:
    with script(job.parent, "true") as process:
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert [run.status for run in allranks.runs()] == ["Completed"]


def test_a_run_ends_with_the_process_that_started_it(job: Path) -> None:
    with script(job.parent, "exec sleep 1000", "wait") as process:
        assert process.stdout is not None
        identity = process.stdout.readline().strip()
        process.kill()
        process.wait(60)
    run = Run(identity, allranks.runs()[0]._workspace)
    run.wait(60, check=False)
    assert run.status == "Canceled"


def test_an_engine_that_is_killed_leaves_an_interrupted_run(job: Path) -> None:
    from allranks.history import locks

    run = start(job, then="exec sleep 1000")
    holder = locks.holder(Path(run.record.folder))
    assert holder is not None
    os.kill(holder.pid, signal.SIGKILL)
    with pytest.raises(allranks.RunFailedError, match="Interrupted"):
        run.wait()


def test_properties_can_be_read_while_it_runs(job: Path) -> None:
    run = start(job, then="exec sleep 1000")
    end = time.monotonic() + 60
    while "hello" not in run.logs() and time.monotonic() < end:
        time.sleep(0.02)
    while not any(step.usage for step in run.steps.values()) and time.monotonic() < end:
        time.sleep(0.1)
    assert run.status == "Running"
    (step,) = run.steps.values()
    assert list(step.usage) == [0]
    run.cancel(now=True)
