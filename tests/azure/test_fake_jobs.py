"""The fake runs what is submitted, from the REST body, and shows it as Azure ML does; by the real client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.azurite

COMPONENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
name: say
version: "1"
type: command
code: ./src
environment: azureml:cpu:1
inputs:
  words: {type: string}
  before: {type: uri_folder, optional: true}
outputs:
  text: {type: uri_folder}
distribution: {type: pytorch, process_count_per_instance: 2}
command: sh say.sh ${{inputs.words}} ${{outputs.text}} $[[${{inputs.before}}]]
"""

SCRIPT = """\
echo rank $RANK says $1
[ $1 = nonsense ] && exit 3
[ $1 = forever ] && exec sleep 600
[ $RANK = 0 ] || exit 0
mkdir -p outputs && echo kept > outputs/note.txt
cat ${3:-/dev/null}/* 2>/dev/null > $2/said.txt
echo $1 >> $2/said.txt
"""

PIPELINE = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
display_name: Two steps
experiment_name: tests
compute: azureml:cpu-cluster
inputs: {first: hello}
outputs: {all: {type: uri_folder}}
jobs:
  one:
    type: command
    component: ./say.yml
    inputs: {words: "${{parent.inputs.first}}"}
  two:
    type: command
    component: ./say.yml
    inputs: {words: world, before: "${{parent.jobs.one.outputs.text}}"}
    outputs: {text: "${{parent.outputs.all}}"}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "say.yml").write_text(COMPONENT)
    (folder / "src" / "say.sh").write_text(SCRIPT)
    (folder / "pipeline.yml").write_text(PIPELINE)
    return folder


@pytest.fixture
def client(azure: Any) -> Any:
    """A client of a workspace that has the environment cpu:1."""
    from azure.ai.ml.entities import Environment

    client = azure.client(show_progress=False)
    client.environments.create_or_update(Environment(name="cpu", version="1", image="ubuntu:22.04"))
    return client


def submit(client: Any, file: Path, **values: Any) -> str:
    from azure.ai.ml import load_job

    job = load_job(file, params_override=[{f"inputs.{name}": value} for name, value in values.items()])
    return str(client.jobs.create_or_update(job).name)


def test_a_pipeline_is_run_streamed_and_downloaded(azure, client, project, tmp_path, capsys) -> None:
    name = submit(client, project / "pipeline.yml")
    client.jobs.stream(name)
    streamed = capsys.readouterr().out
    assert "one: Completed" in streamed
    assert "two: Running" in streamed
    assert f"https://ml.azure.com/runs/{name}" in streamed
    assert client.jobs.get(name).status == "Completed"

    client.jobs.download(name, download_path=tmp_path / "all", all=True)
    assert (tmp_path / "all/named-outputs/all/said.txt").read_text() == "hello\nworld\n"
    assert "two: Completed" in (tmp_path / "all/artifacts/logs/azureml/executionlogs.txt").read_text()

    children = {child.display_name: child for child in client.jobs.list(parent_job_name=name)}
    assert {key: child.status for key, child in children.items()} == {"one": "Completed", "two": "Completed"}
    client.jobs.download(children["one"].name, download_path=tmp_path / "one", all=True)
    logs = tmp_path / "one/artifacts/user_logs"
    assert (logs / "std_log_process_1.txt").read_text() == "rank 1 says hello\n"
    assert (tmp_path / "one/artifacts/outputs/note.txt").read_text() == "kept\n"
    assert (tmp_path / "one/named-outputs/text/said.txt").read_text() == "hello\n"


def test_a_failed_pipeline_says_which_step_and_why(azure, client, project, capsys) -> None:
    from azure.ai.ml.exceptions import JobException

    name = submit(client, project / "pipeline.yml", first="nonsense")
    with pytest.raises(JobException, match="step one: exit code 3"):
        client.jobs.stream(name)
    states = {child.display_name: child.status for child in client.jobs.list(parent_job_name=name)}
    assert states["one"] == "Failed"
    assert states["two"] != "Completed"


def test_a_running_pipeline_can_be_cancelled(azure, client, project) -> None:
    from fake.execution import wait

    name = submit(client, project / "pipeline.yml", first="forever")
    wait(azure, name, until=lambda job: any(azure.jobs[child].status == "Running" for child in job.children))
    client.jobs.begin_cancel(name).wait()
    assert wait(azure, name).status == "Canceled"


def test_a_command_job_is_run_with_its_inputs(azure, client, project, tmp_path, capsys) -> None:
    (project / "numbers.csv").write_text("1,2\n")
    (project / "job.yml").write_text(
        """\
type: command
code: ./src
command: cat ${{inputs.data}} && echo ${{inputs.count}} ${{inputs.rate}} > ${{outputs.out}}/text
environment: azureml:cpu:1
compute: azureml:cpu-cluster
inputs:
  data: {type: uri_file, path: ./numbers.csv}
  count: 3
  rate: 1.0e-5
outputs: {out: {type: uri_folder}}
"""
    )
    name = submit(client, project / "job.yml")
    client.jobs.stream(name)
    assert "1,2" in capsys.readouterr().out
    client.jobs.download(name, download_path=tmp_path / "got", all=True)
    assert (tmp_path / "got/named-outputs/out/text").read_text() == "3 1e-05\n"


def test_jobs_are_listed_archived_and_described(azure, client, project) -> None:
    azure.executes = False
    names = [submit(client, project / "pipeline.yml") for _ in range(3)]
    azure.page_size = 2
    assert [job.name for job in client.jobs.list()] == names[::-1]
    client.jobs.archive(names[0])
    assert names[0] not in [job.name for job in client.jobs.list()]
    client.jobs.restore(names[0])
    assert names[0] in [job.name for job in client.jobs.list()]
    assert client.jobs.update(names[1], tags={"kind": "trial"}).tags["kind"] == "trial"
