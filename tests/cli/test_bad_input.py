"""Whatever is wrong with what a user gives: exit code 2, one message that leads to the fix, and nothing is touched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from allranks.cli.main import main
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Output
from allranks.runs.workspace import Workspace
from allranks_command import Ended, allranks, content, write

JOB = "environment: azureml:cpu:1\n"
CYCLE = """\
type: pipeline
jobs:
  a:
    type: command
    command: cat ${{inputs.x}} > ${{outputs.y}}
    environment: azureml:cpu:1
    inputs: {x: "${{parent.jobs.b.outputs.y}}"}
    outputs: {y: {type: uri_file}}
  b:
    type: command
    command: cat ${{inputs.x}} > ${{outputs.y}}
    environment: azureml:cpu:1
    inputs: {x: "${{parent.jobs.a.outputs.y}}"}
    outputs: {y: {type: uri_file}}
"""
DSL = """\
from azure.ai.ml import Input, command, dsl

train = command(
    name="train",
    command="echo ${{inputs.data}} ${{inputs.lr}} ${{inputs.size}}",
    environment="azureml:cpu:1",
    code="./code",
    inputs={
        "data": Input(type="uri_file"),
        "lr": Input(type="number", min=0, max=1),
        "size": Input(type="string", enum=["small", "large"]),
    },
)

"""
PIPELINE = """\
@dsl.pipeline()
def one(data: Input(type="uri_file"), lr: float = 0.1, size: str = "small"):
    step = train(data=data, lr=lr, size=size)
"""

FILES = {
    "right.py": DSL + PIPELINE,
    "syntax.py": "x = (\n",
    "import.py": "import numpie\n",
    "raises.py": DSL + "@dsl.pipeline()\ndef one():\n    raise ValueError('no learning rate')\n",
    "ends.py": "raise SystemExit(0)\n",
    "none.py": "x = 1\n",
    "two.py": DSL + PIPELINE + PIPELINE.replace("one", "two"),
    "syntax.yml": "command: [echo\n" + JOB,
    "component.yml": "type: pipeline\njobs:\n  a: {type: command, component: ./gone.yml}\n",
    "data.yml": "command: cat ${{inputs.d}}\n" + JOB + "inputs:\n  d: {type: uri_file, path: ./gone.csv}\n",
    "layout.yml": "command: echo\n" + JOB + "distribution: {type: pytorch, process_count_per_instance: 0}\n",
    "cycle.yml": CYCLE,
    "job.yml": "command: echo ${{inputs.n}}\n" + JOB + "inputs: {n: 3}\n",
    "notes.txt": "hello\n",
    "code/main.py": "print('hello')\n",
    "data.csv": "1,2\n",
}

RIGHT = ("right.py", "--set", "data=data.csv")

WRONG = {
    "a file that is not there": (["rihgt.py"], ["rihgt.py", "there is no such file", "did you mean right.py?"]),
    "a folder": (["code"], ["code", "it is a folder", "name one of its files: main.py"]),
    "another kind of file": (["notes.txt"], ["notes.txt", "'.txt' is not known", ".py", ".yml"]),
    "no Python": (["syntax.py"], ["syntax.py:1", "it is not Python: '(' was never closed"]),
    "a module that is not there": (["import.py"], ["import.py:1", "no module numpie", "put numpie.py beside the file"]),
    "an exception": (["raises.py"], ["raises.py:17", "ValueError: no learning rate"]),
    "an exit": (["ends.py"], ["ends.py:1", "it ends Python", "a file that only defines pipelines"]),
    "no pipeline": (["none.py"], ["none.py", "it has no pipeline", "@dsl.pipeline"]),
    "two pipelines": (["two.py"], ["it has 2 pipelines: one, two", "say which: two.py:one or two.py:two"]),
    "another function": (["two.py:tow"], ["there is no tow", "did you mean two.py:two?"]),
    "a function of no Python file": (["job.yml:f"], ["job.yml:f", "job.yml is not a Python file", "the file alone"]),
    "no function": (["right.py:"], ["right.py:", "there is no name after the colon", "FILE:NAME"]),
    "no YAML": (["syntax.yml"], ["syntax.yml:2", "it is not YAML"]),
    "a component that is not there": (["component.yml"], ["step a, key component", "./gone.yml does not exist"]),
    "data that is not there": (["data.yml"], ["key inputs.d", "gone.csv does not exist", "--set d=PATH"]),
    "steps in a circle": (["cycle.yml"], ["cycle.yml:3", "a -> b -> a", "an order"]),
    "no processes": (["layout.yml"], ["step layout, key distribution.process_count_per_instance", "at least 1"]),
    "an input without a value": (["right.py"], ["data", "no value", "--set data="]),
    "a type": ([*RIGHT, "--set", "lr=fast"], ["--set lr", "'fast'", "a number"]),
    "a range": ([*RIGHT, "--set", "lr=2"], ["step step, key inputs.lr", "is 2", "at most 1", "--set lr=VALUE"]),
    "a choice": ([*RIGHT, "--set", "size=tiny"], ["key inputs.size", "tiny", "small", "large"]),
    "a path": (["right.py", "--set", "data=date.csv"], ["date.csv does not exist"]),
    "an unknown input": ([*RIGHT, "--set", "lrr=1"], ["--set lrr", "no input lrr", "did you mean --set lr=...?"]),
    "no value": ([*RIGHT, "--set", "lr"], ["--set lr", "NAME=VALUE", "for example: --set epochs=5"]),
    "no name": ([*RIGHT, "--set", "=1"], ["--set =1", "NAME=VALUE"]),
    "one name twice": ([*RIGHT, "--set", "lr=1", "--set", "lr=0"], ["--set lr=0", "set twice", "remove one of them"]),
    "several at once": (
        [*RIGHT, "--set", "lr=2", "--set", "size=tiny"],
        ["key inputs.lr", "key inputs.size", "2 problems; nothing was started."],
    ),
    "an unknown option": (["right.py", "--quick"], ["No such option", "--quick", "allranks run --help"]),
    "slots": (["right.py", "--slots", "0"], ["--slots", "1"]),
    "retries": (["right.py", "--retries", "many"], ["--retries", "integer"]),
    "instances": (["right.py", "--instances", "cloud"], ["--instances", "cloud", "rack", "loopback"]),
    "no file": ([], ["Missing argument", "FILE"]),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file for each mistake, and in its workspace a run that went well."""
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        write(folder, name, text)
    said = Step("say", "echo said > ${{outputs.said}}", outputs=(Output("said", "uri_file", "rw_mount"),))
    run(Plan("earlier", Graph((said,))), Workspace(folder / ".allranks"), Options(instances="loopback"))
    return folder


@pytest.fixture
def command(project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs the command in this process, where azure-ai-ml has to be imported but once."""

    def call(*arguments: str) -> Ended:
        monkeypatch.chdir(project)
        monkeypatch.setattr(sys, "argv", ["allranks", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(int(ended.value.code or 0), *capfd.readouterr())

    return call


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_and_nothing_happens(
    arguments: list[str], said: list[str], command: Callable[..., Ended], project: Path
) -> None:
    before = content(project)
    done = command("run", *arguments)
    assert (done.code, done.out) == (2, "")
    # A usage error stands in a box: where its lines break says nothing.
    message = " ".join(done.err.replace("│", " ").split())
    assert not [text for text in said if text not in message], done.err
    assert "Traceback" not in done.err
    assert content(project) == before


@pytest.mark.parametrize("arguments", [["cycle.yml"], [*RIGHT, "--set", "lr=2"], ["gone.py"]], ids=" ".join)
def test_no_workspace_is_made_for_it(arguments: list[str], command: Callable[..., Ended], project: Path) -> None:
    assert command("run", *arguments, "--folder", "new").code == 2
    assert not (project / "new").exists()


@pytest.mark.parametrize("arguments", [["gone.py"], ["syntax.yml"], [*RIGHT, "--set", "lr=2"]], ids=" ".join)
@pytest.mark.parametrize("json", [[], ["--json"]], ids=["text", "json"])
def test_a_dry_run_is_as_strict(
    arguments: list[str], json: list[str], command: Callable[..., Ended], project: Path
) -> None:
    before = content(project)
    done = command("run", *arguments, "--dry-run", *json)
    assert (done.code, done.out) == (2, "")
    assert done.err
    assert content(project) == before


def test_a_process_of_its_own_says_the_same(project: Path) -> None:
    done = allranks("run", *RIGHT, "--set", "lr=2", folder=project)
    assert (done.code, done.out) == (2, "")
    assert [line.strip() for line in done.err.splitlines()] == [
        "✗ step step, key inputs.lr (right.py:17)",
        "found     input lr of the pipeline is 2.0",
        "expected  at most 1",
        "fix       --set lr=VALUE",
    ]


@pytest.mark.parametrize("place", ["data.csv", "data.csv/below"])
def test_a_workspace_that_is_no_folder(place: str, command: Callable[..., Ended], project: Path) -> None:
    before = content(project)
    done = command("run", "job.yml", "--folder", place)
    assert (done.code, done.out) == (2, "")
    for said in (str(project / place), "cannot be made a workspace: Not a directory", "--folder DIR"):
        assert said in done.err
    assert content(project) == before


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A run in the workspace of tmp_path that another process executes, and the id of that process."""
    record = run(Plan("p", Graph((Step("a", "false"),))), Workspace(tmp_path / ".allranks"), Options("loopback"))
    hold = (
        "import sys; from pathlib import Path; from allranks.runs import locks\n"
        "with locks.hold(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    folder = Workspace(tmp_path / ".allranks").run_folder(record.id)
    with subprocess.Popen(
        [sys.executable, "-c", hold, folder], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield record.id, process.pid
        process.kill()


def test_a_run_that_another_engine_executes(tmp_path: Path, holder: tuple[str, int]) -> None:
    identity, pid = holder
    before = content(tmp_path)
    done = allranks("resume", identity, folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    for said in (f"run {identity}", f"process {pid} has been executing it since", f"allranks cancel {identity}"):
        assert said in done.err
    assert content(tmp_path) == before
