"""Jobs of `LocalClient`: they run in the background, from files, from registered assets and from one another."""

# Without `annotations` of the future: the DSL reads those of functions as they are.

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from azure.ai.ml import Input, Output, command, dsl, load_component, load_job
from azure.ai.ml.entities import AmlCompute, BuildContext, Data, Environment, ManagedOnlineDeployment, Model
from azure.ai.ml.entities._assets import Code
from azure.ai.ml.exceptions import JobException
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from allranks import InputError, LocalClient
from allranks.api import jobs
from allranks.plan.graph import Pipeline
from allranks.workspace import Workspace
from allranks_client.client import running_jobs
from allranks_command import write

SPEC = """\
name: count
version: "1"
type: command
environment: azureml:small@latest
code: code
inputs: {words: {type: uri_folder}}
outputs: {counted: {type: uri_folder}}
command: >-
  sh count.sh ${{inputs.words}}/words ${{outputs.counted}}/count
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "count.yaml", SPEC)
    write(tmp_path, "code/count.sh", "cp $1 $2\n")  # without Python, and so without MLflow
    write(tmp_path, "data/words", "hello")
    return LocalClient(show_progress=False)


def register(client: Any) -> Any:
    client.environments.create_or_update(Environment(name="small", version="1", image="python:3.12"))
    client.data.create_or_update(Data(name="words", version="1", path="data"))
    return client.components.create_or_update(load_component("count.yaml"))


def pipeline(count: Any, words: str) -> Any:
    @dsl.pipeline(compute="any")
    def counting(words):  # type: ignore[no-untyped-def]
        counted = count(words=words)
        return {"counted": counted.outputs.counted}

    return counting(words=Input(type="uri_folder", path=words))


def _built(name: str, version: str | None, content: str) -> Environment:
    write(Path.cwd(), f"{content}/Dockerfile", f"FROM {content}\n")
    return Environment(name=name, version=version, build=BuildContext(path=content))


def _component(name: str, version: str | None, content: str) -> Any:
    return command(name=name, version=version, command=f"echo {content}", environment="azureml:e:1").component


ASSETS: dict[str, tuple[str, Any, type[HttpResponseError], list[str]]] = {
    "data": ("data", lambda *key: Data(name=key[0], version=key[1], path=key[2]), ResourceExistsError, ["2", "3"]),
    "model": ("models", lambda *key: Model(name=key[0], version=key[1], path=key[2]), ResourceExistsError, ["2", "3"]),
    "code": ("_code", lambda *key: Code(name=key[0], version=key[1], path=key[2]), ResourceExistsError, []),
    "component": ("components", _component, HttpResponseError, ["2", "3"]),
    # azure-ai-ml compares an environment without a version with the latest one.
    "environment": (
        *("environments", lambda *key: Environment(name=key[0], version=key[1], image=key[2])),
        *(ResourceExistsError, ["2", "2"]),
    ),
    "conda": (
        *(
            "environments",
            lambda *key: Environment(name=key[0], version=key[1], image="i", conda_file={"name": key[2]}),
        ),
        *(ResourceExistsError, ["2", "2"]),
    ),
    "build": ("environments", _built, ResourceExistsError, ["2", "2"]),
}
"""By kind: the collection, how one is made of name, version and content, the exception of a conflict, and the versions
of other content that is created twice without a version."""


@pytest.mark.parametrize(("collection", "make", "conflict", "versions"), ASSETS.values(), ids=ASSETS)
def test_a_version_keeps_its_content(
    client: Any, collection: str, make: Any, conflict: type[HttpResponseError], versions: list[str]
) -> None:
    for content in ("one", "other"):
        write(Path.cwd(), f"{content}/file.py", content)
    create = getattr(client, collection).create_or_update
    assert [create(make("mine", "1", "one")).version for _ in range(3)] == ["1"] * 3
    with pytest.raises(HttpResponseError) as raised:
        create(make("mine", "1", "other"))
    assert type(raised.value) is conflict
    assert raised.value.status_code == (409 if conflict is ResourceExistsError else 400)
    assert [create(make("mine", None, "other")).version for _ in versions] == versions
    if versions:
        assert create(make("mine", "1", "one")).version == "1"
        assert create(make("mine", "2", "other")).version == "2"


@pytest.mark.recipe
def test_jobs_in_turn(client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    register(client)
    Path("data/words").write_text("changed after it was registered")

    async def session() -> Any:
        """Work inside of a running event loop, as in a notebook."""
        by_name = client.components.get("count", label="latest")
        first = client.jobs.create_or_update(pipeline(by_name, "azureml:words:1"), experiment_name="words")
        client.jobs.stream(first.name)
        return first

    first = asyncio.run(session())
    printed = capsys.readouterr().out
    for line in (f"RunId: {first.name}", f"Web View: {first.studio_url}", "Execution Summary", ":counted): Completed"):
        assert line in printed
    assert (first.experiment_name, client.jobs.get(first.name).status) == ("words", "Completed")
    assert [job.display_name for job in client.jobs.list(parent_job_name=first.name)] == ["counted"]
    client.jobs.download(first.name, output_name="counted", download_path=tmp_path / "first")
    assert (tmp_path / "first/named-outputs/counted/count").read_text() == "hello"

    output = f"azureml://jobs/{first.name}/outputs/counted"
    client.models.create_or_update(Model(name="counts", version="1", path=output))
    job = command(
        command="cat ${{inputs.model}}/count && mkdir -p outputs && echo kept > outputs/note && exit 3",
        inputs={"model": Input(type="custom_model", path="azureml:counts:1")},
        environment="azureml:small:1",
        compute="any",
    )
    second = client.jobs.create_or_update(job)
    with pytest.raises(JobException, match="exit code 3"):
        client.jobs.stream(second.name)
    assert "hello" in capsys.readouterr().out
    client.jobs.download(second.name, all=True, download_path=tmp_path / "second")
    files = {path.relative_to(tmp_path / "second/artifacts").as_posix() for path in (tmp_path / "second").rglob("*.*")}
    assert files == {"user_logs/std_log.txt"}
    assert (tmp_path / "second/artifacts/outputs/note").read_text() == "kept\n"
    assert [job.name for job in client.jobs.list()] == [second.name, first.name]


def test_names_of_the_mapping_file_are_found(client: Any, tmp_path: Path) -> None:
    write(tmp_path, "allranks.yaml", 'components: {"count:1": count.yaml}\ndata: {words: data}\nmodels: {net: data}\n')
    count = client.components.get("count", "1")
    assert (count.version, list(count.inputs), list(count.outputs)) == ("1", ["words"], ["counted"])
    assert Path(client.data.get("words", label="latest").path) == tmp_path / "data"
    assert client.models.get("net", version="4").version == "4"
    with pytest.raises(HttpResponseError, match="is invalid"):
        client.data.create_or_update(Data(name="a name", version="1", path="data"))
    for missing in (("count", "2"), ("other", "1")):
        with pytest.raises(ResourceNotFoundError):
            client.components.get(*missing)
    plan = jobs.read(pipeline(count, client.data.get("words", "3").id), None, Workspace.at())
    (step,) = plan.graph.nodes
    assert step.spec == str(tmp_path / "count.yaml")


@pytest.mark.recipe
def test_a_registered_pipeline_component_runs_twice_and_as_a_job(client: Any, tmp_path: Path) -> None:
    count = register(client)

    @dsl.pipeline(name="inner", version="1")
    def inner(words: Input(type="uri_folder")):  # type: ignore[no-untyped-def,valid-type]
        return {"counted": count(words=words).outputs.counted}

    client.components.create_or_update(inner)
    job = pipeline(client.components.get("inner", "1"), client.data.get("words", label="latest").id)
    names = []
    for _ in range(2):  # the client has replaced the component of the submitted job by its id
        names.append(client.jobs.create_or_update(job).name)
        client.jobs.stream(names[-1])
    assert [client.jobs.get(name).status for name in names] == ["Completed", "Completed"]
    (step,) = client.jobs.list(parent_job_name=names[1])
    assert [child.name for child in client.jobs.list(parent_job_name=step.name)] == [f"{names[1]}:counted.count"]
    spec = "type: pipeline\ncomponent: azureml:inner:1\ninputs: {words: {type: uri_folder, path: azureml:words:1}}\n"
    alone = client.jobs.create_or_update(load_job(write(tmp_path, "job.yml", spec), params_override=[{"compute": "a"}]))
    client.jobs.stream(alone.name)
    client.jobs.download(alone.name, output_name="counted")
    assert Path("named-outputs/counted/count").read_text() == "hello"


RICH = """\
name: rich
version: "1"
type: pipeline
inputs: {n: {type: integer, default: 3}, words: {type: uri_folder}}
outputs: {o: {type: uri_folder}}
jobs:
  a:
    type: command
    command: echo ${{inputs.n}} ${{outputs.o}}
    environment: azureml:small:1
    compute: azureml:cluster
    inputs: {n: "${{parent.inputs.n}}"}
    outputs: {o: "${{parent.outputs.o}}"}
    environment_variables: {A: "b"}
    distribution: {type: pytorch, process_count_per_instance: 2}
    resources: {instance_count: 2, shm_size: 3g}
    limits: {timeout: 100}
  p:
    type: parallel
    compute: azureml:cluster
    input_data: ${{inputs.files}}
    mini_batch_size: "2"
    retry_settings: {max_retries: 2, timeout: 60}
    inputs: {files: {type: uri_folder, path: "${{parent.inputs.words}}"}}
    outputs: {out: {type: uri_file}}
    task: {type: run_function, code: code, entry_script: score.py, environment: azureml:small:1}
"""


def test_a_registered_pipeline_component_has_the_settings_of_its_nodes(client: Any, tmp_path: Path) -> None:
    register(client)
    write(tmp_path, "code/score.py", "def init(): ...\ndef run(batch): return batch\n")
    rich = load_component(write(tmp_path, "rich.yml", RICH))

    def plan(component: Any) -> list[Any]:
        @dsl.pipeline(compute="any")
        def outer(words):  # type: ignore[no-untyped-def]
            component(words=words)

        (node,) = jobs.read(outer(Input(type="uri_folder", path="data")), None, Workspace.at()).graph.nodes
        assert isinstance(node, Pipeline)
        others = {"spec": "", "component": "", "version": "", "location": None}  # those of anonymous components
        return [replace(step, **others) for step in node.graph.nodes]

    before = plan(rich)
    client.components.create_or_update(rich)
    assert plan(client.components.get("rich", "1")) == before
    assert before[0].environment_variables == {"A": "b"}


def test_a_job_is_canceled_and_archived(client: Any) -> None:
    job = command(
        command="sleep 600",
        environment=Environment(image="python:3.12"),
        compute="any",
        outputs={"x": Output(type="uri_file")},
    )
    waiting = client.jobs.create_or_update(job)
    assert waiting.name in running_jobs()
    client.jobs.begin_cancel(waiting.name).result()
    assert waiting.name not in running_jobs()
    assert client.jobs.get(waiting.name).status == "Canceled"
    client.jobs.archive(waiting.name)
    assert list(client.jobs.list()) == []
    client.jobs.update(waiting.name, tags={"kind": "test"}, display_name="Waits")
    restored = client.jobs.restore(waiting.name) or client.jobs.get(waiting.name)
    assert (restored.tags, restored.display_name, len(list(client.jobs.list()))) == ({"kind": "test"}, "Waits", 1)


def test_this_machine_is_every_compute(client: Any) -> None:
    assert client.begin_create_or_update(AmlCompute(name="cluster")).result().name == "cluster"
    for change in (client.compute.begin_stop, client.compute.begin_start, client.compute.begin_delete):
        change("cluster").wait()
    assert client.compute.get("cluster").provisioning_state == "Succeeded"
    assert [workspace.name for workspace in client.workspaces.list()] == [client.workspace_name]


def test_what_has_no_meaning_here_is_named(client: Any) -> None:
    count = register(client)
    cases = {
        "LocalClient, online_endpoints": lambda: client.online_endpoints.get("scorer"),
        "fix: start the model's server yourself": lambda: client.online_deployments.begin_create_or_update(
            ManagedOnlineDeployment(
                name="blue", endpoint_name="scorer", model=Model(name="net", version="1", path="data")
            )
        ),
        "LocalClient, batch_endpoints": lambda: client.batch_endpoints.list_jobs("scorer"),
        "azureml:nothing:1": lambda: client.jobs.create_or_update(pipeline(count, "azureml:nothing:1")),
    }
    for words, call in cases.items():
        with pytest.raises(InputError) as caught:
            call()
        assert words in str(caught.value)
        assert caught.value.problems[0].fix
    assert list(client.jobs.list()) == []


def test_a_pipeline_finds_what_is_in_a_registry(client: Any, tmp_path: Path) -> None:
    registry = LocalClient(registry_name="shared", show_progress=False)
    assert "registries/shared" in registry.components.get("count", "1").id  # nothing is in it: only a name
    image = registry.environments.create_or_update(Environment(name="small", version="1", image="python:3.12"))
    spec = load_component("count.yaml")
    spec.environment = image.id
    count = registry.components.create_or_update(spec)
    client.data.create_or_update(Data(name="words", version="1", path="data"))
    client.data.share("words", "1", share_with_name="said", share_with_version="4", registry_name="shared")
    words = registry.data.get("said", version="4").id
    assert (count.id[:28], words[:28]) == ("azureml://registries/shared/",) * 2
    plan = jobs.read(pipeline(registry.components.get("count", "1"), words), None, Workspace.at())
    (step,) = plan.graph.nodes
    assert Path(step.spec).is_relative_to(tmp_path / ".allranks/registries/shared")
    with pytest.raises(ResourceNotFoundError):
        registry.components.get("count", "2")


def test_faults_are_injected_into_each_job(client: Any) -> None:
    pytest.importorskip("allranks_lab")
    job = command(command="exec sleep 600", environment=Environment(image="python:3.12"), compute="any")
    with pytest.raises(InputError, match="rank 7"):
        LocalClient(faults=["kill:rank=7"]).jobs.create_or_update(job)
    faulty = LocalClient(show_progress=False, faults=["kill:rank=0"])
    with pytest.raises(JobException, match="SIGKILL"):
        faulty.jobs.stream(faulty.jobs.create_or_update(job).name)
    assert not running_jobs()


def test_secrets_are_in_no_file(client: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    token, key = "hunter2-of-hugging-face", "c2VjcmV0c2VjcmV0" * 5 + "abcdef=="
    variables = {"HF_TOKEN": token, "STORE": f"AccountKey={key}"}
    train = command(command="echo $HF_TOKEN", environment="azureml:cpu:1", environment_variables=variables)
    job = client.jobs.create_or_update(train, experiment_name="secrets")
    client.jobs.stream(job.name)
    assert client.jobs.get(job.name).status == "Completed"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    texts = ["".join(capfd.readouterr()).encode(), *(path.read_bytes() for path in files)]
    assert not [text for text in texts if token.encode() in text or key.encode() in text]
    assert {path.stat().st_mode & 0o777 for path in files if path.name == "job.json"} == {0o600}
