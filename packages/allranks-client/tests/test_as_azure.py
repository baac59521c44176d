"""A script and a notebook that were written for Azure ML run as they stand, with `allranks run --as-azure`."""

import json
from pathlib import Path

import pytest

from allranks import LocalClient
from allranks.cli.main import main
from allranks_command import allranks as command_line
from allranks_command import write

SCRIPT = """\
import sys
from pathlib import Path

from azure.ai.ml import Input, MLClient, Output, command
from azure.ai.ml.entities import AmlCompute
from azure.core.exceptions import ResourceNotFoundError
from azure.identity import DefaultAzureCredential

words = sys.argv[1] if len(sys.argv) > 1 else "words"
credential = DefaultAzureCredential()
credential.get_token("https://management.azure.com/.default")
ml_client = MLClient(credential, "subscription", "group", "workspace")
registry = MLClient(credential, registry_name="azureml")
assert "registries/azureml" in registry.environments.get("curated", label="latest").id
try:
    cluster = ml_client.compute.get("cpu-cluster")
except ResourceNotFoundError:
    cluster = ml_client.compute.begin_create_or_update(AmlCompute(name="cpu-cluster")).result()
write = command(
    command=f"echo {words} > ${{outputs.data}}/words",
    outputs={"data": Output(type="uri_folder")},
    environment="azureml:small:1",
    compute=cluster.name,
)
first = ml_client.jobs.create_or_update(write)
ml_client.jobs.stream(first.name)
ml_client.jobs.download(first.name, output_name="data", download_path="downloaded")
read = command(
    command="echo read: $(cat ${{inputs.data}})",
    inputs={"data": Input(type="uri_file", path="downloaded/named-outputs/data/words")},
    environment="azureml:small:1",
    compute="cpu-cluster",
)
second = ml_client.create_or_update(read)
ml_client.jobs.stream(second.name)
print("both are", first.name != second.name and ml_client.jobs.get(second.name).status)
"""


@pytest.fixture
def allranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["allranks", "run", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return (int(ended.value.code or 0), *capfd.readouterr())

    return call


@pytest.mark.parametrize("name", ["submit.py", "submit.ipynb"])
def test_jobs_in_turn(name: str, allranks, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    script = SCRIPT.replace("${{outputs", "${{{{outputs", 1).replace("data}}/words", "data}}}}/words", 1)
    cells = [{"cell_type": "code", "source": f"%pip install azure-ai-ml\n{script}"}]
    write(tmp_path, name, script if name.endswith(".py") else json.dumps({"cells": cells, "nbformat": 4}))
    words = "--words" if name.endswith(".py") else ""
    code, out, err = allranks("--folder", "runs", "--as-azure", name, *filter(None, [words]))
    assert code == 0, err
    assert "Execution Summary" in out
    assert "in the background" not in err
    assert f"read: {words or 'words'}" in out
    assert "both are JobStatus.COMPLETED" in out or "both are Completed" in out
    assert len(list((tmp_path / "runs/runs").iterdir())) == 2


LEFT = """\
from azure.ai.ml import MLClient, command

job = command(command="while [ -e {gate} ]; do sleep 0.05; done", environment="azureml:small:1", compute="c")
MLClient.from_config().jobs.create_or_update(job)
"""


def test_a_job_continues_when_its_script_has_ended(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    write(tmp_path, "script.py", LEFT.format(gate=gate))
    ended = command_line("run", "--instances", "loopback", "--as-azure", "script.py", folder=tmp_path)
    client = LocalClient(folder=tmp_path / ".allranks")
    (job,) = client.jobs.list()
    assert f"{job.name} continues in the background" in ended.err
    gate.unlink()
    client.jobs.stream(job.name)
    assert client.jobs.get(job.name).status == "Completed"


CASES = {
    "a traceback": ("import azure.identity\n1 / 0\n", 1, "ZeroDivisionError: division by zero"),
    "an exit code": ("raise SystemExit(7)\n", 7, ""),
    "without a meaning": (
        "from azure.ai.ml import MLClient\nMLClient(None).online_endpoints.get('x')\n",
        2,
        "LocalClient, online_endpoints",
    ),
}


@pytest.mark.parametrize(("text", "code", "words"), CASES.values(), ids=CASES)
def test_how_a_script_ends(text: str, code: int, words: str, allranks, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write(tmp_path, "script.py", text)
    ended, _, err = allranks("--as-azure", "script.py", "--any")
    assert (ended, words in err) == (code, True), err
    assert "runpy" not in err
    for words in (["script.py", "extra"], ["--dry-run", "--as-azure", "script.py"]):
        ended, _, err = allranks(*words)
        assert (ended, "--as-azure" in err) == (2, True)


def test_options_after_a_notebook_are_not_lost(allranks, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write(tmp_path, "submit.ipynb", json.dumps({"cells": [], "nbformat": 4}))
    ended, _, err = allranks("--as-azure", "submit.ipynb", "--instances", "loopback")
    assert (ended, "--instances after a notebook" in err, "in front of" in err) == (2, True, True), err
