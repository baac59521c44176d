"""Notebooks that were written for Azure ML run as they stand: in a kernel, and with the command."""

import os
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from allranks.history import stored
from allranks.workspace import Workspace
from allranks_command import PATIENCE, allranks

CELLS = (
    """\
from azure.ai.ml import Input, MLClient, Output, command, dsl
from azure.identity import DefaultAzureCredential, InteractiveBrowserCredential

try:
    credential = DefaultAzureCredential()
    credential.get_token("https://management.azure.com/.default")
except Exception as ex:
    credential = InteractiveBrowserCredential()
ml_client = MLClient.from_config(credential=credential)
""",
    """\
%%writefile words.txt
hello
""",
    """\
copy = command(
    name="copy",
    command="cp ${{inputs.source}} ${{outputs.copied}}/words.txt",
    environment="azureml:small:1",
    inputs={"source": Input(type="uri_file")},
    outputs={"copied": Output(type="uri_folder")},
)
count = command(
    name="count",
    command="wc -l < ${{inputs.words}}/words.txt > ${{outputs.counted}}/lines",
    environment="azureml:small:1",
    inputs={"words": Input(type="uri_folder")},
    outputs={"counted": Output(type="uri_folder")},
)

@dsl.pipeline(default_compute="cpu-cluster")
def counting(source):
    copied = copy(source=source)
    counted = count(words=copied.outputs.copied)
    return {"counted": counted.outputs.counted}

pipeline_job = ml_client.jobs.create_or_update(
    counting(source=Input(type="uri_file", path="words.txt")), experiment_name="samples"
)
pipeline_job
""",
    "ml_client.jobs.stream(pipeline_job.name)",
    """\
ml_client.jobs.download(pipeline_job.name, output_name="counted", download_path="downloaded")
with open("downloaded/named-outputs/counted/lines") as file:
    print("lines:", file.read())
""",
)
SHOWN, STREAMED = 2, 3


def execute(notebook: NotebookNode, folder: Path, *arguments: str, errors: bool = False) -> list[str]:
    """Execute a notebook in a kernel. Return the text and the HTML of each code cell's outputs."""
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook,
        timeout=PATIENCE,
        kernel_name="python3",
        resources=resources,
        extra_arguments=list(arguments),
        allow_errors=errors,
    )
    client.execute()
    return ["".join(map(_text, cell.outputs)) for cell in notebook.cells if cell.cell_type == "code"]


def _text(output: NotebookNode) -> str:
    data = output.get("data", {})
    return f"{output.get('text', '')}{data.get('text/html', '')}{output.get('evalue', '')}"


def statuses(folder: Path) -> list[str]:
    return [str(record.status) for record in stored.runs(Workspace(folder / ".allranks"))]


@pytest.mark.recipe
def test_a_notebook_with_the_extension(tmp_path: Path) -> None:
    notebook = new_notebook(cells=[new_code_cell(source) for source in ("%load_ext allranks", *CELLS)])
    _, *texts = execute(notebook, tmp_path)
    for cell in (SHOWN, STREAMED):  # the display of the job is updated while it is streamed
        assert (texts[cell].count("<table>"), texts[cell].count("✓ Completed")) == (1, 2)
    assert "Execution Summary" in texts[STREAMED]
    assert "lines: 1" in texts[-1]
    assert statuses(tmp_path) == ["Completed"]


EXAMPLES = os.environ.get("ALLRANKS_EXAMPLES", "")
PIPELINES, DEPLOYED = "sdk/python/jobs/pipelines", "sdk/python/endpoints/batch/deploy-pipelines"
TRAIN_EVAL = "pipeline_with_train_eval_pipeline_component"
UNCHANGED = (
    f"{PIPELINES}/1a_pipeline_with_components_from_yaml/pipeline_with_components_from_yaml.ipynb",
    f"{PIPELINES}/1e_pipeline_with_registered_components/pipeline_with_registered_components.ipynb",
    f"{PIPELINES}/1j_pipeline_with_pipeline_component/{TRAIN_EVAL}/{TRAIN_EVAL}.ipynb",
    f"{PIPELINES}/stepsequence/pipeline_with_step_sequence_dummy_dependencies.ipynb",
)
WITHOUT_JOBS = (
    "sdk/python/assets/component/component.ipynb",
    "sdk/python/assets/data/versioning.ipynb",
    "sdk/python/assets/environment/environment.ipynb",
    "sdk/python/assets/model/model.ipynb",
    "sdk/python/resources/compute/compute.ipynb",
    "sdk/python/schedules/job-schedule.ipynb",
)
SHARING = "sdk/python/assets/assets-in-registry/share-models-components-environments.ipynb"
SHARED = "cli/jobs/pipelines-with-components/nyc_taxi_data_regression"
no_examples = pytest.mark.skipif(not EXAMPLES, reason="ALLRANKS_EXAMPLES: no checkout of Azure/azureml-examples")


def example(name: str, tmp_path: Path, *more: str) -> tuple[NotebookNode, Path]:
    """Return a notebook of the repository, and a copy of its folder. more: other folders that it reads"""
    for folder in (str(Path(name).parent), *more):
        shutil.copytree(Path(EXAMPLES, folder), tmp_path / folder)
    folder = (tmp_path / name).parent
    (folder / ".allranks").mkdir()
    return nbformat.read(tmp_path / name, as_version=4), folder


@no_examples
@pytest.mark.recipe
@pytest.mark.parametrize("name", UNCHANGED, ids=lambda name: Path(name).stem)
def test_an_unchanged_notebook(name: str, tmp_path: Path) -> None:
    notebook, folder = example(name, tmp_path)
    texts = execute(notebook, folder, "--ext", "allranks")
    assert "Execution Summary" in texts[-1]
    read = allranks("run", Path(name).name, folder=folder)
    assert read.code == 0, read.err
    executed = allranks("run", "--as-azure", Path(name).name, folder=folder)
    assert executed.code == 0, executed.err
    assert "Execution Summary" in executed.out
    assert statuses(folder) == ["Completed"] * 3


@no_examples
@pytest.mark.recipe
@pytest.mark.parametrize("name", WITHOUT_JOBS, ids=lambda name: Path(name).stem)
def test_an_unchanged_notebook_that_creates_assets(name: str, tmp_path: Path) -> None:
    """It creates, lists, archives, changes and deletes, and ends without an error."""
    notebook, folder = example(name, tmp_path, str(Path(UNCHANGED[0]).parent))
    execute(notebook, folder, "--ext", "allranks")


@no_examples
@pytest.mark.recipe
@pytest.mark.parametrize(
    ("name", "needed", "jobs", "downloaded"),
    [
        ("hello-batch", "mlflow", 1, []),
        ("training-with-components", "xgboost", 3, ["evaluation_results", "model", "transformations_output"]),
    ],
)
def test_an_unchanged_notebook_that_invokes_an_endpoint(
    name: str, needed: str, jobs: int, downloaded: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It deploys pipelines, invokes and streams them, and the second one downloads their outputs."""
    pytest.importorskip(needed, reason=f"the notebook's jobs import {needed}")
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # a cell would install another version of azure-ai-ml
    notebook, folder = example(f"{DEPLOYED}/{name}/sdk-deploy-and-test.ipynb", tmp_path)
    texts = "".join(execute(notebook, folder, "--ext", "allranks"))
    assert texts.count("Execution Summary") == max(1, jobs - 1)  # the first of the three is not streamed
    assert statuses(folder) == ["Completed"] * jobs
    assert sorted(path.name for path in folder.glob("named-outputs/*") if any(path.iterdir())) == downloaded


@no_examples
@pytest.mark.recipe
def test_an_unchanged_notebook_that_uses_a_registry_and_downloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It creates assets in a registry, submits, streams, shares and downloads the model that MLflow has logged. Only
    its online endpoint fails."""
    notebook, folder = example(SHARING, tmp_path, SHARED)
    monkeypatch.setenv("PYTHONPATH", str(folder))  # the notebook finds its files by it, as on a compute instance
    texts = execute(notebook, folder, "--ext", "allranks", errors=True)
    failed = [
        "".join(cell.source)
        for cell in notebook.cells
        if any(output.output_type == "error" for output in cell.get("outputs", ()))
    ]
    assert [cell for cell in failed if "online_endpoint" not in cell] == [], texts
    assert any("LocalClient, online_endpoints" in text for text in texts)
    assert "Execution Summary" in "".join(texts)
    assert (folder / "artifacts/user_logs/std_log.txt").exists()
    assert (folder / "artifacts/model/MLmodel").exists()
    assert statuses(folder) == ["Completed"]
