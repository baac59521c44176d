"""`check` checks every job of a file, as it was when the file made it."""

from pathlib import Path

import pytest

from allranks.api.jobs import check
from allranks.errors import InputError
from allranks.plan.reader import read_plan
from notebooks import write_notebook

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
