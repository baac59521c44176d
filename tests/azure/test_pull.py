"""`allranks pull` writes files whose request is that of the job, and which run here."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Command, command, only_run, project, quick
from fake.jobs import Job
from fake.names import WORKSPACE_PATH
from fake.references import parse
from fake.service import FakeAzure

from allranks_client.run_history import with_defaults
from allranks_command import allranks, content, write

__all__ = ["command", "project", "quick"]

SERVICE = ("_source", "additional_includes")
"""Keys that say in which language something was written, or of which files its code was put together."""
GIT = re.compile(r"(mlflow\.source\.git|azureml\.git)\.")
"""Properties of the job in which the SDK says where the submitting folder's git repository is."""


def request(azure: FakeAzure, job: Job) -> dict[str, Any]:
    """What was sent, as the service returns it, with each id that the service makes up replaced by what it names: of
    an anonymous component its spec, of an anonymous environment its definition, of code the digest of its files.

    Left out are `SERVICE`, `GIT`, and the name and the version in the spec of an anonymous component: the SDK sends
    them from Python, not from YAML.
    """
    return dict(_named(azure, with_defaults(dict(job.properties or {}))))


def _named(azure: FakeAzure, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _named(azure, each) for key, each in value.items() if key not in SERVICE and not GIT.match(key)}
    if isinstance(value, list):
        return [_named(azure, each) for each in value]
    found = parse(value) if isinstance(value, str) else None
    if found is None or found.registry:
        return value
    body = azure.assets.of(found.kind).get((found.name, found.version)) if found.kind in ("codes", *ANONYMOUS) else None
    if body is not None and found.kind == "codes":
        return body["properties"]["properties"]["hash_sha256"]
    if body is None or found.name != ANONYMOUS[found.kind]:
        return value
    shown = azure.assets.show(found.kind, body)["properties"]
    spec = shown.get("componentSpec", shown)
    return _named(azure, {key: each for key, each in spec.items() if key not in ("name", "version")})


ANONYMOUS = {"components": "azureml_anonymous", "environments": "CliV2AnonymousEnvironment"}


def in_yaml(sent: dict[str, Any]) -> dict[str, Any]:
    """A request without what no YAML file can say: the descriptions of a pipeline's outputs, and that a step's input is
    bound to an optional input of the pipeline that has no value."""
    sent = json.loads(json.dumps(sent))
    for output in sent["outputs"].values():
        output["description"] = None
    for node in sent["jobs"].values():
        for port, given in list(node.get("inputs", {}).items()):
            bound = re.fullmatch(r"\$\{\{parent\.inputs\.(\w+)\}\}", str(given.get("value")))
            if bound and bound[1] not in sent["inputs"]:
                del node["inputs"][port]
    return dict(sent)


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() | after.keys():
            yield from differences(before.get(key) or None, after.get(key) or None, f"{place}.{key}")
    elif before != after:
        yield f"{place}: {before} is {after}"


def newest(azure: FakeAzure) -> Job:
    return [job for job in azure.jobs.values() if not job.parent][-1]


PIPELINE = """\
type: pipeline
display_name: Everything
experiment_name: pulled
tags: {team: a}
settings: {default_compute: azureml:cpu-cluster, continue_on_step_failure: false}
inputs:
  epochs: 3
  words: {type: uri_file, path: https://example.com/words.txt, mode: download}
outputs:
  model: {type: uri_folder, mode: upload, path: azureml://datastores/workspaceblobstore/paths/model}
jobs:
  score:
    type: parallel
    component: ./score.yml
    inputs:
      data: {path: "${{parent.jobs.train.outputs.model}}", mode: ro_mount}
    resources: {instance_count: 2}
    mini_batch_size: "3"
  train:
    type: command
    display_name: Train it
    component: ./train/component.yaml
    compute: azureml:gpu-cluster
    inputs: {words: "${{parent.inputs.words}}", epochs: "${{parent.inputs.epochs}}", rate: 0.5}
    outputs: {model: "${{parent.outputs.model}}"}
    resources: {instance_count: 2, shm_size: 1g}
    distribution: {type: pytorch, process_count_per_instance: 2}
    environment_variables: {A: "1"}
    limits: {timeout: 3600}
  again:
    type: command
    component: azureml:registered:1
    inputs: {model: "${{parent.jobs.train.outputs.model}}"}
  tune:
    type: sweep
    trial: ./train/component.yaml
    inputs: {words: "${{parent.inputs.words}}"}
    search_space:
      rate: {type: uniform, min_value: 0.1, max_value: 1.0}
      epochs: {type: choice, values: [1, 2]}
    objective: {goal: minimize, primary_metric: loss}
    sampling_algorithm: {type: random, seed: 1}
    early_termination: {type: median_stopping, delay_evaluation: 1, evaluation_interval: 1}
    limits: {max_total_trials: 2, max_concurrent_trials: 1}
"""
TRAIN = """\
type: command
name: train
version: "1"
description: Trains.
inputs:
  words: {type: uri_file}
  epochs: {type: integer, default: 1}
  rate: {type: number, default: 0.1}
outputs:
  model: {type: uri_folder, description: The model.}
code: .
environment:
  image: python:3.12
  conda_file: {channels: [conda-forge], dependencies: [python=3.12]}
command: >-
  cat ${{inputs.words}} && echo ${{inputs.epochs}} ${{inputs.rate}} > ${{outputs.model}}/$RANK
"""
REGISTERED = """\
type: command
name: registered
version: "1"
inputs: {model: {type: uri_folder}}
code: ./code
environment: azureml:own:1
command: cat ${{inputs.model}}/0 && cat note.txt
"""
SCORE = """\
type: parallel
name: score
version: "1"
inputs: {data: {type: uri_folder}}
outputs: {scores: {type: uri_file}}
input_data: ${{inputs.data}}
mini_batch_size: "2"
task: {type: run_function, code: ./score, entry_script: score.py, environment: {image: "python:3.12"},
       append_row_to: "${{outputs.scores}}"}
"""


@pytest.fixture
def job(azure: FakeAzure, command: Command, project: Path) -> Job:
    """A job with most that a graph can have, submitted from YAML, with a registered component and environment."""
    write(project, "everything.yml", PIPELINE)
    write(project, "train/component.yaml", TRAIN)
    write(project, "score.yml", SCORE)
    write(project, "score/score.py", "def init(): ...\ndef run(batch): return batch\n")
    write(project, "registered.yml", REGISTERED)
    write(project, "code/note.txt", "registered\n")
    from azure.ai.ml import load_component
    from azure.ai.ml.entities import Environment

    client = azure.client()
    client.environments.create_or_update(Environment(name="own", version="1", image="python:3.11"))
    client.components.create_or_update(load_component(project / "registered.yml"))
    assert command("submit", "everything.yml", "--no-stream").code == 0
    return only_run(azure)


def test_what_was_pulled_is_the_same_request(azure: FakeAzure, job: Job, command: Command, project: Path) -> None:
    pulled = command("pull", f"azure:{job.name}", "--to", "pulled/it", "--json")
    assert pulled.json["files"] == ["pipeline.py", "pipeline.yml"], pulled.err
    assert pulled.json["stand_ins"] == {}
    assert yaml.safe_load((project / "pulled/it/allranks.yaml").read_text()) == {
        "components": {"registered:1": "components/registered/component.yaml"},
        "environments": {"own:1": "environments/own/environment.yaml"},
    }
    for file, form in (("pipeline.py", dict), ("pipeline.yml", in_yaml)):
        done = command("submit", f"pulled/it/{file}", "--no-stream")
        assert done.code == 0, done.err
        assert list(differences(form(request(azure, job)), form(request(azure, newest(azure))))) == []
    assert list(project.glob(".allranks-*")) == list((project / "pulled").glob(".*")) == []


STEP = f"{WORKSPACE_PATH}/components/secret/versions/1"


def make_designed(azure: FakeAzure, job: Job) -> None:
    """Puts into a job what cannot be read: a classic module, and components without permission or code."""
    jobs = job.properties["jobs"]
    jobs["classic"] = {
        "type": "AzureML.SplitData",
        "componentId": "azureml://registries/azureml-designer/components/split/versions/1",
        "inputs": {"rows": {"value": "${{parent.jobs.train.outputs.model}}", "job_input_type": "literal"}},
    }
    reads = {"value": "${{parent.jobs.classic.outputs.left}}", "job_input_type": "literal"}
    jobs["secret"] = {"type": "command", "componentId": STEP, "inputs": {"data": reads}}
    azure.fail("components/secret/versions/1$", 403, times=9)


def test_what_cannot_be_read_is_named_and_becomes_a_stand_in(
    azure: FakeAzure, job: Job, command: Command, project: Path
) -> None:
    make_designed(azure, job)
    pulled = command("pull", f"azure:{job.name}")
    assert pulled.code == 0, pulled.err
    assert "stand-in  step classic: azureml://registries/azureml-designer/components/split/versions/1" in pulled.out
    assert "such as that of a classic module" in pulled.out
    assert "stand-in  step secret: azureml:secret:1: access denied (403)" in pulled.out
    spec = (project / job.name / "components/classic/component.yaml").read_text()
    assert "left:" in spec
    assert "--stand-in STEP=FOLDER" in spec
    body = command("submit", f"{job.name}/pipeline.yml", "--dry-run").json["properties"]
    assert body["jobs"]["secret"]["componentId"] == STEP
    assert body["jobs"]["classic"]["inputs"] == job.properties["jobs"]["classic"]["inputs"]
    azure.fail("codes/.*/versions/1$", 403, times=9, method="GET")
    pulled = command("pull", f"azure:{job.name}", "--to", "it")
    assert "stand-in  step again: azureml:registered:1: access denied (403)" in pulled.out
    body = command("submit", "it/pipeline.yml", "--dry-run").json["properties"]
    assert body["jobs"]["train"]["componentId"] == job.properties["jobs"]["train"]["componentId"]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["azure:JOB"], 403, "requesting job JOB: access denied (403)"),
        (["azure:missing"], 0, "requesting job missing: not found (404)"),
        (["azure:JOB-step"], 0, "job JOB-step: it is a step of a pipeline"),
        (["azure:command"], 0, "job command: it is a job of type Command"),
        (["azure:JOB", "--to", "train"], 0, "train: it is not empty"),
        (["JOB"], 0, "argument 'JOB': it does not name a job of Azure ML"),
        (["azure:JOB"], 503, "requesting job JOB: the service failed (503)"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_written(
    arguments: list[str], status: int, said: str, azure: FakeAzure, command: Command, project: Path
) -> None:
    jobs = {"a": {"type": "command", "componentId": STEP}}
    azure.jobs["JOB"] = Job("JOB", {"jobType": "Pipeline", "jobs": jobs})
    azure.jobs["JOB-step"] = Job("JOB-step", None, parent="JOB", root="JOB")
    azure.jobs["command"] = Job("command", {"jobType": "Command", "command": "echo"})
    if status:
        azure.fail("/jobs/JOB$", status, times=9)
    before = content(project)
    done = command("pull", *arguments)
    assert (done.code, done.out) == (1 if status == 503 else 2, "")
    assert all(part in done.err for part in said.split(": "))
    assert content(project) == before


def test_two_pulled_jobs_are_compared_as_graphs(azure: FakeAzure, job: Job, command: Command, project: Path) -> None:
    assert command("pull", f"azure:{job.name}", "--to", "a").code == 0
    write(project, "train/component.yaml", TRAIN.replace("echo $", "echo again $"))
    changed = PIPELINE.replace("rate: 0.5", "rate: 0.6").replace("epochs: 3", "epochs: 4").partition("  tune:")[0]
    write(project, "everything.yml", changed)
    assert command("submit", "everything.yml", "--no-stream").code == 0
    assert command("pull", f"azure:{newest(azure).name}", "--to", "b").code == 0
    found = command("diff", "a", "b", "--json").json
    assert found["results"] == []
    causes = [(each["step"], each["what"], each["before"], each["after"]) for each in found["causes"]]
    assert ("train", "input rate", "0.5", "0.6") in causes
    assert ("train", "input epochs", "3 (input epochs)", "4 (input epochs)") in causes
    assert ("tune", "node", "sweep", "") in causes
    assert {step for step, *_ in causes} == {"train", "tune", "tune.trial[0]"}
    assert command("diff", "a", "a/pipeline.yml", "--json").json["causes"] == []
    assert "the folder has no pipeline" in command("diff", "a", "train").err


@pytest.mark.recipe
def test_it_runs_here(azure: FakeAzure, command: Command, project: Path) -> None:
    assert command("submit", "pipeline.yaml", "--no-stream").code == 0
    assert command("pull", f"azure:{newest(azure).name}", "--to", "it").code == 0
    done = allranks("run", "it/pipeline.py", "--json", folder=project)
    assert done.step("train")["status"] == "Completed"


REPOSITORY = Path(__file__).parents[2]
EXAMPLES = os.environ.get("ALLRANKS_EXAMPLES", "")
OWN = sorted((REPOSITORY / "pipelines").glob("*.py"))
PUBLIC = """
basics/hello-pipeline-abc.yml basics/hello-pipeline.yml basics/hello-pipeline-customize-output-file.yml
basics/hello-pipeline-customize-output-folder.yml basics/hello-pipeline-default-artifacts.yml
basics/hello-pipeline-io.yml basics/hello-pipeline-settings-serverless.yml parallel/1a_oj_sales_prediction
parallel/2a_iris_batch_prediction parallel/3a_mnist_batch_identification
pipelines/cifar-10 pipelines/iris-batch-prediction-using-parallel
pipelines/mnist-batch-identification-using-parallel pipelines/nyc-taxi pipelines/tensorflow-image-segmentation
pipelines-with-components/nyc_taxi_data_regression
pipelines-with-components/nyc_taxi_data_regression/single-job-pipeline.yml
pipelines-with-components/pipeline_with_hyperparameter_sweep
pipelines-with-components/pipeline_with_pipeline_component/pipeline_with_train_eval_pipeline_component
pipelines-with-components/basics/1a_e2e_local_components pipelines-with-components/basics/2a_basic_component
pipelines-with-components/basics/2b_component_with_input_output pipelines-with-components/basics/3b_pipeline_with_data
pipelines-with-components/basics/4a_local_data_input pipelines-with-components/basics/4b_datastore_datapath_uri
pipelines-with-components/basics/4c_web_url_input pipelines-with-components/basics/5a_env_public_docker_image
pipelines-with-components/basics/5b_env_registered pipelines-with-components/basics/5c_env_conda_file
pipelines-with-components/basics/6a_tf_hello_world pipelines-with-components/basics/6b_pytorch_hello_world
pipelines-with-components/basics/6c_r_iris
"""


@pytest.mark.recipe
@pytest.mark.slow
@pytest.mark.parametrize("file", [*OWN, *PUBLIC.split()], ids=str)
def test_jobs_of_others(file: Path | str, azure: FakeAzure, quick: None, tmp_path: Path) -> None:
    """Each form that can be written; a loop over a pipeline component whose steps the service keeps is in Python."""
    if isinstance(file, str) and not EXAMPLES:
        pytest.skip("ALLRANKS_EXAMPLES: no checkout of Azure/azureml-examples")
    source = file if isinstance(file, Path) else Path(EXAMPLES, "cli/jobs", file)

    source = source / "pipeline.yml" if source.is_dir() else source

    def call(*arguments: object) -> Any:
        done = allranks(*arguments, folder=tmp_path, patience=300, **azure.environment)
        assert done.code == 0, done.err
        return done

    call("submit", source, "--no-stream", "--compute", "cpu-cluster")
    job = newest(azure)
    pulled = call("pull", f"azure:{job.name}", "--to", "it", "--json").json
    assert pulled["files"] == ["pipeline.py", *(["pipeline.yml"] if source.name != "train_until_good.py" else [])]
    for name in pulled["files"]:
        call("submit", f"it/{name}", "--no-stream")
        form = in_yaml if name.endswith("yml") else dict
        assert list(differences(form(request(azure, job)), form(request(azure, newest(azure))))) == []
