"""`check` checks every job of a file, as it was when the file made it, and reports everything that is wrong at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from allranks.api.jobs import check
from allranks.errors import InputError
from allranks.plan.reader import read_plan
from notebooks import write_notebook
from pipeline_files import write

HEAD = """\
import pathlib, shutil
from azure.ai.ml import MLClient, command, dsl, load_component
from azure.identity import DefaultAzureCredential
client = MLClient(DefaultAzureCredential(), "S", "G", "W")
submit = client.jobs.create_or_update
def echo(text, **settings):
    return command(command=f"echo {text}", environment="azureml:e:1", compute="c", **settings)
pathlib.Path("src").mkdir()
pathlib.Path("src/main.py").write_text("")
"""
WRONG = "${{inputs.missing}}"
FILES = {
    "submitted, in a variable that is assigned again": (
        f"job = echo('one'); submit(job)\njob = echo('{WRONG}')\n\nsubmit(job)\njob = echo(1); submit(job)",
        ["notebook.ipynb, cell 2, line 4"],
        3,
    ),
    "created, in a variable that is assigned again": (
        f"job = echo('{WRONG}')\njob = echo('two')",
        ["notebook.ipynb, cell 1, line 7"],
        2,
    ),
    "pipelines, of which one is in no variable": (
        f"say = echo('{WRONG}')\n@dsl.pipeline(default_compute='c')\ndef flow():\n    say()\nflow()\njob = flow()",
        ["notebook.ipynb, cell 2, line 4"] * 2,
        2,
    ),
    "one job that is submitted with two values": (
        "job = echo('a'); submit(job)\njob.resources = {'instance_count': 'many'}; submit(job)",
        ["notebook.ipynb, cell 2, line 2"],
        1,
    ),
    "a function with a base, which is no job": ("base = echo('a')\njob = base()", [], 1),
}


@pytest.mark.parametrize("name", FILES)
def test_every_job_of_a_notebook_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    cells, places, jobs = FILES[name]
    checked = check(write_notebook(tmp_path, HEAD, cells))
    assert [each.where.partition("(")[2].rstrip(")") for each in checked.problems] == list(dict.fromkeys(places))
    assert len(checked.plans) == jobs


def test_run_still_asks_which_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = write_notebook(tmp_path, HEAD, "job = echo('one'); submit(job)\njob = echo('two'); submit(job)")
    with pytest.raises(InputError, match="it has 2 jobs"):
        read_plan(str(file), {}, tmp_path / "snapshots")


@pytest.mark.parametrize("submit", ["submit(job)", ""])
def test_a_job_is_read_before_a_later_cell_removes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, submit: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = write_notebook(tmp_path, HEAD, f"job = echo('one', code='src'); {submit}", "shutil.rmtree('src')")
    checked = check(file)
    assert not checked.problems
    assert len(checked.plans) == 1
    assert checked.plan is not None
    (step,) = checked.plan.graph.nodes
    assert getattr(step, "code", None) is not None


JOB = "type: command\ncommand: echo ${{inputs.missing}}\nenvironment: azureml:e:1\ncompute: azureml:c\n"
STEP = JOB.replace("compute: azureml:c\n", "").replace("\n", "\n    ").rstrip()
PIPELINE = f"type: pipeline\nsettings: {{default_compute: azureml:c}}\njobs:\n  a:\n    {STEP}\n"
SWEEP = (
    "type: sweep\ncompute: azureml:c\ntrial:\n"
    "  command: echo ${{inputs.missing}} ${{search_space.lr}}\n  environment: azureml:e:1\n"
    "search_space: {lr: {type: choice, values: [1]}}\nobjective: {goal: minimize, primary_metric: loss}\n"
    "sampling_algorithm: random\nlimits: {max_total_trials: 1}\n"
)
UNDECLARED = "key command"
TEXTS = {
    "an unknown key of a job": (f"{JOB}enviroment_variables: {{A: b}}\n", ["key enviroment_variables"]),
    "an unknown key of a step": (f"{PIPELINE}    colour: red\n", ["key colour"]),
    "an unknown key of a trial": (SWEEP.replace("  command", "  colour: red\n  command"), ["key trial.colour"]),
    "a wrong number": (f"{PIPELINE}    resources: {{instance_count: many}}\n", ["key resources.instance_count"]),
    "code that does not exist": (f"{PIPELINE}    code: ./gone\n", ["key code"]),
    "a wrong size": (f"{PIPELINE}    resources: {{shm_size: much}}\n", ["key resources.shm_size"]),
    "a dangling binding": (f"{PIPELINE}    inputs: {{x: '${{{{parent.inputs.gone}}}}'}}\n", ["key inputs.x"]),
    "three stages": (
        f"{PIPELINE}    limits: {{timout: 1}}\n    resources: {{instance_count: many}}\n    shape: round\n",
        ["key limits.timout", "key resources.instance_count", "key shape"],
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_everything_that_is_wrong_is_reported_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    text, keys = TEXTS[name]
    checked = check(write(tmp_path, "job.yml", text))
    places = [each.where.partition(" (")[0].rpartition(", ")[2] for each in checked.problems]
    assert sorted(places) == sorted([*keys, UNDECLARED])
