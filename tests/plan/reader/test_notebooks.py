"""Notebooks as pipelines' files."""

import json
import os
import sys
from pathlib import Path

import pytest

from allranks.checks.plan import findings
from allranks.errors import InputError, Level, Location
from allranks.plan.ports import Literal
from allranks.plan.ports import Path as DataPath
from notebooks import write_notebook
from pipeline_files import TRAIN, read, write

pytestmark = pytest.mark.usefixtures("no_network")

IMPORTS = """
    # Import required libraries
    from azure.identity import DefaultAzureCredential, InteractiveBrowserCredential

    from azure.ai.ml import Input, MLClient, load_component
    from azure.ai.ml.dsl import pipeline
    """

CLIENT = """
    try:
        credential = DefaultAzureCredential()
        credential.get_token("https://management.azure.com/.default")
    except Exception as ex:
        credential = InteractiveBrowserCredential()
    ml_client = MLClient.from_config(credential=credential)
    print(ml_client.compute.get("cpu-cluster"))
    """

LOAD = """
    parent_dir = "."
    train = load_component(source=parent_dir + "/train.yml")
    help(train._func)
    """

PIPELINE = """
    @pipeline()
    def digits(data, lr=0.1):
        fit = train(data=data, lr=lr)
        fit.outputs.model.mode = "upload"
        return {"model": fit.outputs.model}


    pipeline_job = digits(data=Input(type="uri_folder", path=parent_dir + "/data/"), lr=0.5)
    pipeline_job.settings.default_compute = "cpu-cluster"
    """

SUBMIT = """
    pipeline_job = ml_client.jobs.create_or_update(pipeline_job, experiment_name="samples")
    pipeline_job
    """

STREAM = "ml_client.jobs.stream(pipeline_job.name)"


def test_a_notebook_that_submits_a_pipeline(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = ("## Digits", "%pip install azure-ai-ml", IMPORTS, CLIENT, LOAD, PIPELINE, "pipeline_job", SUBMIT, STREAM)
    plan = read(write_notebook(here, *cells))
    assert (plan.name, plan.experiment) == ("digits", "samples")
    assert {port.name: port.value for port in plan.graph.inputs} == {
        "data": DataPath(str(here / "data")),
        "lr": Literal(0.5),
    }
    assert plan.graph.nodes[0].location == Location("notebook.ipynb", 3, 6)
    assert str(plan.graph.nodes[0].location) == "notebook.ipynb, cell 6, line 3"
    assert read("notebook.ipynb", {"lr": "0.75"}).graph.inputs[1].value == Literal(0.75)
    assert read("notebook.ipynb:digits", {"data": "src"}).graph.inputs[1].value == Literal(0.1)
    assert capsys.readouterr() == ("", "")


def test_a_notebook_is_read_in_its_own_folder(here: Path) -> None:
    write(here, "deep/train.yml", TRAIN)
    write(here, "deep/src/main.py", "print('hello')\n")
    write(here, "deep/helper.py", "RATE = 0.25\n")
    cells = (IMPORTS, "from helper import RATE\n" + "assert __name__ == '__main__'", LOAD, PIPELINE)
    main = sys.modules["__main__"]
    plan = read(write_notebook(here / "deep", *cells))
    assert plan.graph.inputs[0].value == DataPath(str(here / "deep/data"))
    assert plan.graph.nodes[0].code is not None
    assert (os.getcwd(), sys.modules["__main__"]) == (str(here), main)
    # A value that the user gives is relative to where the user is.
    assert read("deep/notebook.ipynb", {"data": "data"}).graph.inputs[0].value == DataPath(str(here / "data"))


def test_cells_that_write_files(here: Path) -> None:
    cells = (
        IMPORTS,
        "import os\nfolder = 'made'\nos.makedirs(folder, exist_ok=True)",
        "%%writefile {folder}/train.yml\n" + TRAIN.replace("./src", "."),
        "%%writefile $folder/main.py\nprint('made')",
        LOAD.replace('parent_dir = "."', "parent_dir = folder"),
        PIPELINE.replace("parent_dir", '"."'),
    )
    plan = read(write_notebook(here, *cells))
    assert plan.graph.nodes[0].code is not None
    assert (Path(plan.graph.nodes[0].code.folder) / "main.py").read_text() == "print('made')\n"
    before = (here / "made/train.yml").stat().st_mtime_ns
    read("notebook.ipynb")
    assert (here / "made/train.yml").stat().st_mtime_ns == before


MAGICS = r"""
    %load_ext autoreload
    %autoreload 2
    import math  # %not a magic
    text = '''
    %neither = this
    !nor this
    '''
    assert text.count("%neither") == 1 and text.count("!nor") == 1
    rest = (7
    %4)
    assert rest == 3
    !pip install \
        something
    files = !ls "unclosed
    assert files == []
    value = %env HOME
    if value is None:
        !echo {value}
        found = 1
    math?
    ?math
    %time lr = 0.125
    %matplotlib inline
    !echo '''
    from IPython.display import Image, display
    display(Image("x.png"))
    get_ipython().run_line_magic("matplotlib", "inline")
    assert found == 1
    """


def test_lines_that_only_ipython_reads(here: Path) -> None:
    cells = (IMPORTS, MAGICS, "%%bash\nexit 1", "\n%%time\nrate = 2 * lr", LOAD, PIPELINE.replace("lr=0.5", "lr=rate"))
    assert read(write_notebook(here, *cells)).graph.inputs[1].value == Literal(0.25)


def test_a_notebook_that_runs_another(here: Path) -> None:
    write_notebook(here, IMPORTS, LOAD, name="common/setup.ipynb")
    write(here, "common/rates.py", "RATE = 0.375\n")
    cells = ("%run common/setup.ipynb\n%run common/rates", PIPELINE.replace("0.5", "RATE"))
    assert read(write_notebook(here, *cells)).graph.inputs[1].value == Literal(0.375)
    with pytest.raises(InputError, match=r"^notebook.ipynb, cell 1, line 1: .*there is no file gone.ipynb"):
        read(write_notebook(here, "%run gone.ipynb"))


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (("## Text", "x = 1\ny = 1 / 0"), "notebook.ipynb, cell 2, line 2: ZeroDivisionError: division by zero"),
        (("def f():\n    raise ValueError('no')", "f()"), "notebook.ipynb, cell 1, line 2: ValueError: no"),
        (("x = 1", "y = 1\nz ="), "notebook.ipynb, cell 2, line 2: it is not Python: invalid syntax"),
        (
            (
                "from marshmallow import ValidationError",
                "raise ValidationError(\"'x' passed is not in set ['a', 'b']\")",
            ),
            "notebook.ipynb, cell 2, line 1: expected: one of a, b",
        ),
        (("import nothing_like_it",), "notebook.ipynb, cell 1, line 1: there is no module nothing_like_it"),
        (("x = 1",), "notebook.ipynb: it has no pipeline"),
    ],
)
def test_what_is_wrong_with_a_cell_is_told_with_its_place(here: Path, cells: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError) as refused:
        read(write_notebook(here, *cells))
    assert str(refused.value).startswith(said)


FETCH = """
    def fetch(name):
        raise ConnectionError("no route to " + name)

    rate = 0.5
    """
NO_FILE = "[Errno 2] No such file or directory"
USES = PIPELINE.replace("lr=0.5", "lr=rate")
SKIPPED = {
    "a package for plots": (
        ("import os, nothing_like_it as plt\nrate = 0.5",),
        [(Level.WARNING, "notebook.ipynb, cell 3, line 1", "there is no module nothing_like_it")],
    ),
    "a package that later cells use": (
        ("from nothing_like_it import load", FETCH, "data = load()\n@data\ndef show():\n    pass\nshow()"),
        [(Level.MACHINE, "notebook.ipynb, cell 3, line 1", "there is no module nothing_like_it")],
    ),
    "a download, and what reads it": (
        (FETCH, "\nfetch('data')\nrows = open('rows.csv')\nprint(rows)"),
        [
            (Level.MACHINE, "notebook.ipynb, cell 3, line 2", "ConnectionError: no route to data"),
            (Level.MACHINE, "notebook.ipynb, cell 4, line 2", f"FileNotFoundError: {NO_FILE}: 'rows.csv'"),
        ],
    ),
    "another version of a package": (
        ("from os import nothing_like_it\nrate = 0.5",),
        [
            (
                Level.WARNING,
                "notebook.ipynb, cell 3, line 1",
                "ImportError: cannot import name 'nothing_like_it' from 'os'",
            )
        ],
    ),
    "a command that fails": (
        ("import os\nrate = 0.5\ncode = os.system('exit 3')", "if code:\n    raise RuntimeError('no data')"),
        [(Level.MACHINE, "notebook.ipynb, cell 3, line 3", "the command exit 3 ended with exit code 3")],
    ),
    "a file of a shell line": (
        (FETCH, "!pip install x\n!wget rows.csv", "open('rows.csv')"),
        [(Level.MACHINE, "notebook.ipynb, cell 5, line 1", f"FileNotFoundError: {NO_FILE}: 'rows.csv'")],
    ),
}


@pytest.mark.parametrize(("cells", "found"), SKIPPED.values(), ids=SKIPPED)
def test_statements_that_this_machine_cannot_execute(
    here: Path, cells: tuple[str, ...], found: list[tuple[Level, str, str]]
) -> None:
    plan = read(write_notebook(here, IMPORTS, LOAD, *cells, CLIENT, USES, SUBMIT, "import nothing_after_the_job"))
    assert plan.graph.inputs[1].value == Literal(0.5)
    assert [(each.level, each.where, each.found.partition(" (/")[0]) for each in plan.findings] == found
    if "shell" in str(plan.findings):
        assert plan.findings[0].fix.endswith("notebook.ipynb, cell 4, line 2")


REQUIRED = {
    "a value of a skipped statement": ((FETCH, "rate = fetch('rates')"), "cell 3, line 2: ConnectionError"),
    "a file that nothing makes": ((FETCH, "open('rows.csv')"), f"cell 4, line 1: FileNotFoundError: {NO_FILE}"),
    "an error of its own": (("import nothing_like_it", "rate = 1 / 0"), "cell 4, line 1: ZeroDivisionError"),
    "a mistake in a name": ((FETCH, "fetch('x')", "rate = rats"), "cell 5, line 1: NameError"),
    "what azure-ai-ml refuses": ((FETCH, "fetch('x')", "train(rats=1)"), "cell 5, line 1: "),
}


@pytest.mark.parametrize(("cells", "said"), REQUIRED.values(), ids=REQUIRED)
def test_a_job_that_depends_on_them_is_not_read(here: Path, cells: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError) as refused:
        read(write_notebook(here, IMPORTS, LOAD, *cells, CLIENT, USES, SUBMIT))
    assert str(refused.value).startswith(f"notebook.ipynb, {said}")
    assert refused.value.problems[0].level is Level.ERROR


def test_data_that_a_skipped_statement_may_write(here: Path) -> None:
    cells = (FETCH, "fetch('data')", CLIENT, USES.replace("/data/", "/gone/"), SUBMIT)
    found = findings(read(write_notebook(here, IMPORTS, LOAD, *cells))).found
    assert {each.code: each.level for each in found if each.code} == {
        "file-fails": Level.MACHINE,
        "missing-data": Level.MACHINE,
    }
    cells = (FETCH, *cells[2:])
    found = findings(read(write_notebook(here, IMPORTS, LOAD, *cells))).found
    assert {each.code: each.level for each in found if each.code} == {"missing-data": Level.ERROR}


def test_a_job_that_a_notebook_loads(here: Path) -> None:
    job = "type: pipeline\njobs: {fit: {command: echo, environment: {image: ubuntu}, code: ../src}}\n"
    write(here, "jobs/digits.yml", job)
    cells = ("from azure.ai.ml import MLClient, load_job", "job = load_job('../jobs/digits.yml')")
    (here / "notebooks").mkdir()
    (step,) = read(write_notebook(here / "notebooks", *cells)).graph.nodes
    assert step.code is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "notebook.ipynb:1: it is not JSON"),
        ("[]", "notebook.ipynb: it has no cells"),
        (json.dumps({"worksheets": [], "nbformat": 3}), "notebook.ipynb: it has no cells"),
        (json.dumps({"cells": [], "metadata": {"kernelspec": {"language": "R"}}}), "its cells are in R"),
    ],
)
def test_files_that_are_no_notebooks(here: Path, text: str, said: str) -> None:
    write(here, "notebook.ipynb", text)
    with pytest.raises(InputError) as refused:
        read("notebook.ipynb")
    assert said in str(refused.value)
