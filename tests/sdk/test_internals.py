"""Each private part of azure-ai-ml that `allranks.sdk.internals` uses, in the version that is installed."""

# Without `annotations` of the future: the DSL reads those of functions as they are.

import ast
import contextlib
import copy
import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter, methodcaller
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake.rest import sdk_parts

import allranks
from allranks.sdk import internals, session

SOURCE = Path(allranks.__file__).parent
COMPONENT = {
    "type": "command",
    "name": "train",
    "version": "1",
    "code": ".",
    "inputs": {"data": {"type": "uri_folder"}, "epochs": {"type": "integer", "optional": True}},
    "outputs": {"model": {"type": "uri_folder"}},
    "environment": {"image": "python:3.12"},
    "command": "echo ${{inputs.data}} ${{outputs.model}}",
}


@pytest.fixture(autouse=True)
def sdk() -> Iterator[None]:
    with session.session(client=True):
        yield


@pytest.fixture
def component(tmp_path: Path) -> Any:
    from azure.ai.ml import load_component

    file = tmp_path / "component.yaml"
    file.write_text(json.dumps(COMPONENT))
    return load_component(file)


@pytest.fixture
def job(component: Any) -> Any:
    """A pipeline of two steps, the second with resources of its own, whose result is the pipeline's output."""
    from azure.ai.ml import Input, dsl
    from azure.ai.ml.entities import JobResourceConfiguration

    @dsl.pipeline
    def two(data: Input(type="uri_folder"), epochs: int = 3):  # type: ignore[valid-type, no-untyped-def]
        first = component(data=data, epochs=epochs)
        second = component(data=first.outputs.model)
        second.resources = JobResourceConfiguration(instance_count=2)
        second.outputs.model.mode = "upload"
        return {"model": second.outputs.model}

    return two(data=Input(type="uri_folder", path="azureml:words:1"))


@pytest.fixture
def client() -> Any:
    """A client that is not asked anything."""
    from azure.ai.ml import MLClient
    from azure.core.credentials import AccessToken

    credential = SimpleNamespace(get_token=lambda *_, **__: AccessToken("token", 2**31))
    return MLClient(credential, "subscription", "group", "workspace", enable_telemetry=False)


@pytest.mark.parametrize("name", sorted(internals.PARTS))
def test_every_part_is_where_it_is_said_to_be(name: str) -> None:
    assert getattr(internals, name) is not None


def test_a_part_that_is_not_listed_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = internals.nothing


def _module(name: str) -> Callable[[], Any]:
    return lambda: sys.modules[f"azure.ai.ml.{name}"]


PARAMETERS = {
    "merge_local_code_and_additional_includes": (lambda: internals.AdditionalIncludes, ["self"]),
    "__init__": (lambda: internals.Code, ["self"]),
    "get_object_hash": (_module("_utils._asset_utils"), ["path", "ignore_file"]),
    "upload_artifact": (
        lambda: internals.artifacts,
        ["local_path", "datastore_operation", "operation_scope", "datastore_name", "asset_hash"],
    ),
    internals.UPLOAD: (
        lambda: internals.artifacts,
        ["operation_scope", "datastore_operation", "path", "artifact_type", "datastore_name"],
    ),
    internals.BUILD_CODE: (lambda: internals.ComponentCodeMixin, ["self"]),
    "add_node": (lambda: internals.PipelineComponentBuilder, ["self", "node"]),
    "build": (lambda: internals.PipelineComponentBuilder, ["self"]),
    "to_component_func": (_module("dsl._component_func"), ["entity", "component_creation_func"]),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_what_is_replaced_has_the_parameters_of_its_replacement(name: str) -> None:
    """Read from the SDK's source: in a session some of them are replaced already."""
    find, expected = PARAMETERS[name]
    owner = find()
    tree: Any = ast.parse(Path(inspect.getsourcefile(owner) or "").read_text(encoding="utf-8"))
    body = _class(tree, owner.__name__).body if inspect.isclass(owner) else tree.body
    (function,) = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == name]
    assert [argument.arg for argument in function.args.args][: len(expected)] == expected
    keywords = {"path", "ignore_file"} if owner is internals.Code else set()
    assert keywords <= {argument.arg for argument in function.args.kwonlyargs}


def test_what_is_replaced_is_used_by_that_name() -> None:
    assert callable(internals.environments.get_object_hash)
    assert callable(internals.load_component_functions.to_component_func)
    assert callable(internals.validation_results.strictyaml.load)


def test_the_operations_on_jobs_resolve_commands_and_sweeps() -> None:
    from azure.ai.ml.operations import JobOperations

    for name in (internals.RESOLVE_COMMAND, internals.RESOLVE_SWEEP):
        assert callable(vars(JobOperations)[name])


def test_a_name_is_replaced_inside_of_the_block_only() -> None:
    before = internals.artifacts.upload_artifact
    with contextlib.suppress(KeyError), internals.replaced(internals.artifacts, "upload_artifact", len):
        assert internals.artifacts.upload_artifact is len
        raise KeyError
    assert internals.artifacts.upload_artifact is before
    with pytest.raises(KeyError), internals.replaced(internals.artifacts, "no_such_name", len):
        pass


def test_the_modules_whose_temporary_folders_are_ours_make_them_with_mkdtemp() -> None:
    for module in (internals.additional_includes, internals.pipeline_expressions):
        assert "tempfile" in vars(module)
        assert "tempfile.mkdtemp(" in Path(inspect.getsourcefile(module) or "").read_text(encoding="utf-8")


def test_a_port_has_its_binding_its_declaration_its_mode_and_its_type(job: Any) -> None:
    first, second = job.jobs["first"], job.jobs["second"]
    assert str(internals.data(first.inputs["data"])) == "${{parent.inputs.data}}"
    assert internals.data("no port") is None
    assert internals.declaration(first.inputs["epochs"]).type == "integer"
    assert internals.mode(second.outputs["model"]) == "upload"
    assert internals.mode(first.outputs["model"]) is None
    assert internals.port_type(first.outputs["model"]) == "uri_folder"
    source = internals.data(second.inputs["data"])
    assert internals.port_name(source) == "model"
    assert internals.owner(source) is first
    sdk_parts.set_data(first.inputs["epochs"], 5)
    assert job._to_rest_object().properties.jobs["first"]["inputs"]["epochs"]["value"] == "5"


def test_the_output_of_a_pipeline_knows_the_step_that_it_is_bound_to(job: Any) -> None:
    bound = internals.bound_output(job.component.outputs["model"])
    assert (internals.owner(bound).name, internals.port_name(bound)) == ("second", "model")
    assert internals.bound_output(job.jobs["first"].component.outputs["model"]) is None


def test_a_node_has_its_component_its_resources_and_its_ports(job: Any, component: Any) -> None:
    first, second = job.jobs["first"], job.jobs["second"]
    assert internals.component(first) is component
    assert internals.component(SimpleNamespace(), "none") == "none"
    assert internals.component_key(first) == "component"
    assert internals.resources(second).instance_count == 2
    assert internals.resources(first) is None
    inputs, outputs = internals.given_ports(first)
    assert list(inputs) == ["data", "epochs"]
    assert outputs == {}


def test_a_sweep_job_is_a_node_whose_trial_is_like_a_step() -> None:
    from azure.ai.ml.entities import CommandJob
    from azure.ai.ml.sweep import Choice, Objective, SweepJob, SweepJobLimits

    command = CommandJob(
        command="echo ${{search_space.lr}}", environment="azureml:x:1", environment_variables={"A": "1"}
    )
    node = internals.sweep_node(
        SweepJob(
            trial=command,
            inputs={"seed": 3},
            search_space={"lr": Choice([0.1])},
            objective=Objective(goal="minimize", primary_metric="loss"),
            limits=SweepJobLimits(max_total_trials=1, trial_timeout=90),
            resources={"instance_count": 2},
        )
    )
    assert isinstance(node, internals.Sweep)
    step = internals.trial(node)
    assert step.component.environment_variables == {"A": "1"}
    assert (list(step.inputs), step.limits.timeout, step.resources.instance_count) == (["seed"], 90, 2)
    assert internals.given_ports(step)[0].keys() == {"seed"}


def test_a_node_gets_a_component_and_outputs(component: Any) -> None:
    from azure.ai.ml.entities import Command

    node = Command(component="azureml:train:1", inputs={"epochs": 2}, _from_component_func=True)
    assert internals.component(node) == "azureml:train:1"
    internals.set_component(node, component)
    assert internals.component(node) is component
    assert internals.declaration(node.inputs["epochs"]).type == "integer"
    other = copy.copy(component)
    internals.replace_component(node, other)
    assert internals.component(node) is other
    assert internals.data(node.inputs["epochs"]) == 2
    made = internals.build_output(node, "other")
    internals.set_outputs(node, internals.OutputsAttrDict({"other": made}))
    assert internals.port_name(node.outputs["other"]) == "other"


def test_a_node_gets_ports_that_its_component_has_not(job: Any, component: Any) -> None:
    from azure.ai.ml import Input, Output, dsl

    seen = []

    @dsl.pipeline
    def two() -> None:
        first = component(data="azureml:words:1")
        second = component(data=first.outputs.model)
        seen.extend([internals.nodes_being_built(), internals.source(second.inputs["data"]), first])

    two()
    built, source, first = seen
    assert (len(built), source is first, internals.nodes_being_built()) == (2, True, None)
    assert internals.source(first.inputs["data"]) is None
    internals.declare(first, "more", Input(type="string"))
    internals.declare(first, "log", Output(type="uri_file"))
    assert (list(first.component.inputs), list(first.component.outputs)) == (
        ["data", "epochs", "more"],
        ["model", "log"],
    )
    assert (list(component.inputs), first.component.id) == (["data", "epochs"], None)
    internals.set_mode(first.inputs["data"], "direct")
    assert internals.mode(first.inputs["data"]) == "direct"


def test_a_job_gets_an_input(job: Any) -> None:
    made = internals.build_input(job, "epochs", job.component.inputs["epochs"], 7)
    assert internals.data(made) == 7


def test_states_are_set(job: Any) -> None:
    from azure.ai.ml.entities import AmlCompute, CronTrigger, Data, JobSchedule
    from azure.ai.ml.exceptions import ValidationException
    from azure.ai.ml.sweep import SweepJob

    assert internals.status(job) is None
    internals.set_status(job, "Completed")
    assert (internals.status(job), job.status) == ("Completed", "Completed")
    compute = AmlCompute(name="cluster")
    internals.set_provisioning_state(compute, "Succeeded")
    assert compute.provisioning_state == "Succeeded"
    internals.set_id(compute, "an id")
    data = Data(name="numbers", path="/data")
    internals.set_path(data, "azureml://datastores/a/paths/b")
    assert data.path == "azureml://datastores/a/paths/b"
    assert compute.id == "an id"
    schedule = JobSchedule(name="daily", trigger=CronTrigger(expression="0 0 * * *"), create_job=job)
    internals.set_enabled(schedule, False)
    assert schedule.is_enabled is False
    sweep = SweepJob(sampling_algorithm="random")
    with pytest.raises(ValidationException, match="Unsupported job type 'SweepJob' in schedule daily"):
        internals.schedule_request(JobSchedule(name="daily", trigger=schedule.trigger, create_job=sweep))


def test_a_command_that_is_swept_says_so(component: Any) -> None:
    from azure.ai.ml.sweep import Choice

    command = component(data="azureml:words:1", epochs=1)
    assert not internals.is_swept(command)
    swept = component(data="azureml:words:1", epochs=Choice([1, 2]))
    swept.sweep(primary_metric="loss", goal="minimize", sampling_algorithm="random")
    assert internals.is_swept(swept)


def test_a_pipeline_node_becomes_the_job_of_the_client_with_the_inputs_that_it_leaves_out() -> None:
    from azure.ai.ml import dsl

    @dsl.pipeline
    def inner(epochs: int, rate: float) -> None:
        pass

    @dsl.pipeline
    def outer() -> None:
        inner(epochs=0, rate=0.5)

    (node,) = outer().jobs.values()
    job, dropped = internals.as_pipeline_job(node)
    assert (type(job).__name__, dropped) == ("PipelineJob", {"epochs"})
    assert {name: internals.data(port) for name, port in job.inputs.items()} == {"epochs": 0, "rate": 0.5}


def test_the_function_of_a_pipeline_has_its_builder() -> None:
    from azure.ai.ml import dsl

    @dsl.pipeline
    def nothing() -> None:
        pass

    assert isinstance(internals.pipeline_builder(nothing), internals.PipelineComponentBuilder)
    assert internals.pipeline_builder(lambda: None) is None


def test_what_a_component_knows_of_its_file(component: Any, tmp_path: Path) -> None:
    assert Path(internals.source_path(component)) == tmp_path / "component.yaml"
    (tmp_path / "conda.yml").write_text("dependencies: [six]\n")
    from azure.ai.ml.entities import Environment

    environment = Environment(image="i:1", conda_file=tmp_path / "conda.yml")
    assert Path(internals.conda_path(environment)) == tmp_path / "conda.yml"
    assert internals.conda_path(Environment(image="i:1", conda_file={"dependencies": ["six"]})) == ""
    assert internals.code_text(component) == "."
    assert Path(internals.code_base(component)) == tmp_path
    assert internals.includes_configs(component) == []
    (tmp_path / "more").mkdir()
    component.additional_includes = ["./more"]
    assert internals.resolved_includes(internals.includes(component)) == [Path("./more")]
    with getattr(component, internals.BUILD_CODE)() as code:
        assert isinstance(code, internals.Code)


def test_a_component_without_includes_has_code_all_the_same() -> None:
    """As a parallel component has."""
    kind = SimpleNamespace(_get_origin_code_in_str=lambda: "./src", _get_base_path_for_code=lambda: Path("/base"))
    assert internals.includes_configs(kind) == []
    assert str(internals.includes(kind).resolved_code_path) == "/base/src"


def test_a_component_is_anonymous_or_not(component: Any) -> None:
    assert not internals.is_anonymous(component)
    sdk_parts.set_anonymous(component)
    assert internals.is_anonymous(component)
    assert component._to_rest_object().properties.is_anonymous is True


def test_the_text_of_a_component_is_cached(component: Any) -> None:
    assert "name: train" in component._to_yaml()
    internals.set_yaml_text(component, "-")
    assert internals.yaml_text(component) == "-"
    assert internals.component(internals.component_function(component)()) is component
    assert inspect.getsource(internals.load_component_functions.to_component_func).count("_yaml_str") in (0, 1)


def test_a_component_is_validated_and_written(component: Any) -> None:
    assert internals.validate(component).passed
    from azure.ai.ml.entities import PipelineJob

    assert internals.validate_first_and_last(PipelineJob(jobs={})).passed
    assert internals.validate_compute(PipelineJob(jobs={})).passed
    assert internals.as_dict(component)["command"] == COMPONENT["command"]
    sdk_parts.set_inputs(component, {})
    assert "inputs" not in internals.as_dict(component) or not internals.as_dict(component)["inputs"]


def test_a_function_of_mldesigner_is_recognised() -> None:
    from mldesigner import command_component

    @command_component(environment="azureml:e:1")
    def step(text: str):  # type: ignore[no-untyped-def]
        pass

    assert internals.is_mldesigner_component(step)
    assert not internals.is_mldesigner_component(len)


def test_the_lines_of_an_ignore_file_are_read(tmp_path: Path) -> None:
    file = tmp_path / ".amlignore"
    file.write_text("# a comment\n*.bin\n!keep.bin\n")
    lines = internals.ignored_patterns(file)
    assert [line for line in lines if line and not line.startswith("#")] == ["*.bin", "!keep.bin"]
    pattern = internals.GitWildMatchPattern("*.bin")
    assert pattern.include is True
    assert list(pattern.match(["a.bin", "a.txt"])) == ["a.bin"]


def test_every_schema_that_keys_are_compared_with_is_there() -> None:
    from allranks.sdk import validation_errors

    for path in validation_errors._SCHEMAS.values():
        assert internals.schema(path)(context={"base_path": Path()}).fields


def test_rest_bodies_become_entities(component: Any) -> None:
    from azure.ai.ml.entities import Component, Environment, Job

    body = component._to_rest_object().as_dict()
    body["properties"]["componentSpec"].pop("code", None)
    again = sdk_parts.from_rest(Component, "ComponentVersion", {**body, "id": "x", "name": "1"})
    assert list(again.inputs) == ["data", "epochs"]
    workspace = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
    image = {"name": "1", "id": f"{workspace}/environments/e/versions/1", "properties": {"image": "python:3.12"}}
    assert sdk_parts.from_rest(Environment, "EnvironmentVersion", image).image == "python:3.12"
    node = {"type": "command", "componentId": f"{workspace}/components/c/versions/1"}
    spec = {
        "name": "p",
        "version": "1",
        "type": "pipeline",
        "jobs": {"a": {**node, "computeId": f"{workspace}/computes/c"}},
    }
    assert internals.nodes_of_rest(spec)["a"]["compute"] == "azureml:c"
    command = {"jobType": "Command", "command": "echo", "environmentId": "e", "computeId": "cpu"}
    assert sdk_parts.from_rest(Job, "JobBase", {"name": "j", "properties": command}).command == "echo"


def test_inputs_and_outputs_of_rest_bodies_are_read() -> None:
    given = {"epochs": sdk_parts.rest_model("JobInput", {"jobInputType": "literal", "value": "3"})}
    assert sdk_parts.inputs_of(given) == {"epochs": "3"}
    made = {"model": sdk_parts.rest_model("JobOutput", {"jobOutputType": "uri_folder", "mode": "Upload"})}
    assert sdk_parts.outputs_of(made)["model"].mode == "upload"


def test_nodes_of_rest_bodies_are_made(component: Any) -> None:
    from azure.ai.ml.entities import PipelineComponent

    nodes = sdk_parts.nodes_of({"first": {"type": "command", "componentId": component, "inputs": {}}})
    assert isinstance(nodes["first"], internals.BaseNode)
    pipeline = PipelineComponent(name="p", jobs={})
    sdk_parts.set_nodes(pipeline, nodes)
    assert list(pipeline.jobs) == ["first"]


def test_a_response_is_read_as_one_of_the_network() -> None:
    from azure.core.rest import HttpRequest

    response = internals.rest_response(HttpRequest("GET", "https://host/path"), b'{"a": 1}')
    assert (response.status_code, response.json(), response.text()) == (200, {"a": 1}, '{"a": 1}')
    response.raise_for_status()


def test_the_client_has_what_is_asked_of_it(client: Any) -> None:
    """What it answers is tested against the service: tests/azure/test_client_internals.py."""
    import azure.ai.ml

    assert internals.client.MLClient is azure.ai.ml.MLClient
    assert callable(internals.requests(client).get)
    scope = client.jobs._operation_scope
    assert (scope.subscription_id, scope.resource_group_name) == ("subscription", "group")
    assert str(internals.datastore_id(None, scope)).endswith("/datastores/workspaceblobstore")
    assert str(internals.datastore_id("own", scope)).endswith("/datastores/own")


def test_the_storage_of_one_account_is_replaced() -> None:
    internals.serve_storage("ours", lambda container: f"ours/{container}")
    found = internals.artifacts.get_storage_client
    assert found(credential=None, storage_account="ours", container_name="a") == "ours/a"
    assert (
        found(credential=None, storage_account=None, account_url="https://ours.blob.core.windows.net/b?s") == "ours/b"
    )
    other = found(credential=None, storage_account="other", account_url="https://other.blob.core.windows.net/b")
    assert isinstance(other, internals.BlobStorageClient)


def test_the_client_of_a_registry_has_the_transport_of_its_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = list(map(importlib.import_module, internals._REGISTRY_USERS))
    for module in modules:
        monkeypatch.setattr(module, "get_registry_client", lambda credential, name, **more: (name, more))
    internals.adapt_registries()
    for module in modules:
        assert module.get_registry_client(SimpleNamespace(transport="here"), "ours") == ("ours", {"transport": "here"})
        assert module.get_registry_client(SimpleNamespace(), "ours") == ("ours", {})


def test_a_stream_waits_as_it_is_told(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    module = internals.job_streams

    @contextlib.contextmanager
    def pause(job: str) -> Iterator[Callable[[], None]]:
        yield lambda: said.append(job)

    monkeypatch.setattr(
        client.jobs, "_stream_logs_until_completion", lambda *_: said.append(str(module._wait_before_polling(7)))
    )
    internals.adapt_jobs(client, pause)
    client.jobs._stream_logs_until_completion(None, SimpleNamespace(name="job"), None)
    assert said == ["job", "0"]
    assert module._wait_before_polling(0) >= 1


@pytest.mark.parametrize(
    ("cloud", "host"),
    [("AzureCloud", "ml.azure.com"), ("AzureUSGovernment", "ml.azure.us"), ("AzureChinaCloud", "ml.azure.cn")],
)
def test_the_page_of_a_job_is_in_the_studio_of_its_cloud(
    cloud: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZUREML_CURRENT_CLOUD", cloud)
    workspace = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
    page = internals.studio_url(f"{workspace}/jobs/run_1")
    assert page == f"https://{host}/runs/run_1?wsid=/subscriptions/s/resourcegroups/g/workspaces/w"


def test_what_is_a_binding_and_what_is_sent_of_it() -> None:
    from azure.ai.ml import command, dsl

    sent: list[object] = []

    @dsl.pipeline()
    def bound(size: str = "a") -> None:
        node = command(command="echo", environment="azureml:e:1", compute="cpu")()
        node.compute = size
        sent.extend([internals.is_binding(size), str(internals.node_request(node)["computeId"])])

    bound()
    assert sent == [True, "${{parent.inputs.size}}"]
    assert not internals.is_binding("cpu")


def test_every_function_has_a_test_here_or_against_the_service() -> None:
    functions = [
        name
        for name, each in vars(internals).items()
        if isinstance(each, (attrgetter, methodcaller))
        or (inspect.isfunction(each) and each.__module__ == internals.__name__)
    ]
    tests = Path(__file__).read_text(encoding="utf-8")
    service = {"run_details", "child_runs", "component_version"}
    assert [
        name for name in functions if name[0] != "_" and f"internals.{name}(" not in tests and name not in service
    ] == []


def test_no_other_module_uses_a_private_part() -> None:
    """Not by import, not by attribute, not by the attribute's name as a text."""
    found = [use for file in sorted(SOURCE.rglob("*.py")) if _may_use_the_sdk(file) for use in _private_uses(file)]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "from azure.ai.ml._utils import utils",
        "from azure.ai.ml.entities import _load",
        "import azure.ai.ml._ml_client",
        "x = port._data",
        "x = getattr(port, '_data')",
        "x = import_module('azure.ai.ml._utils')",
    ],
)
def test_a_private_use_is_found(line: str, tmp_path: Path) -> None:
    file = tmp_path / "use.py"
    file.write_text(line)
    assert _private_uses(file)


_NOT_OF_THE_SDK = {
    "os._exit",
    "sys._getframe",
    "hashlib._Hash",
    "parameter._runtime_param",  # of typer
}


def _may_use_the_sdk(file: Path) -> bool:
    """The engine and the runtime never import it, which import-linter checks; light_import names the modules of which
    it defers the import, and goes on without those that are gone."""
    package = file.relative_to(SOURCE).parts[0]
    return package not in ("local", "runtime", "project") and file.name not in ("internals.py", "light_import.py")


def _private_uses(file: Path) -> list[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = _attribute_names(Path(internals.__file__))
    own = _own_attributes(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            used = any(each.name.startswith("azure.") and "._" in each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            private = "._" in module or any(each.name.startswith("_") for each in node.names)
            used = module.startswith("azure.") and private
        elif isinstance(node, ast.Attribute):
            private = node.attr.startswith("_") and not node.attr.startswith("__") and node.attr not in own
            used = private and not _of_self(node) and ast.unparse(node) not in _NOT_OF_THE_SDK
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used = node.value in names or node.value.startswith("azure.ai.ml._")
        else:
            used = False
        if used:
            found.append(f"{os.path.relpath(file, SOURCE)}:{node.lineno}: {ast.unparse(node)}")  # type: ignore[attr-defined]
    return found


@cache
def _attribute_names(file: Path) -> set[str]:
    """The private attributes that a module uses, and those whose names it has as texts."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    texts = {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)} | texts
    return {name for name in names if name.startswith("_") and not name.startswith("__") and name.isidentifier()}


def _own_attributes(tree: ast.AST) -> set[str]:
    """The attributes of the classes that a module defines, and of named tuples."""
    own = {"_replace", "_asdict", "_fields"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            own |= {each.name for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))}
            own |= {ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign)}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _of_self(node):
            own.add(node.attr)
    return own


def _of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def _class(tree: ast.AST, name: str) -> ast.ClassDef:
    return next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name)


def test_the_version_that_was_tested_is_the_one_installed() -> None:
    from importlib.metadata import requires, version

    (requirement,) = [each for each in requires("allranks") or () if each.startswith("azure-ai-ml")]
    assert "<1.36" in requirement
    assert version("azure-ai-ml").startswith("1.35.")
    assert sys.modules["azure.ai.ml"]


def test_a_property_of_nodes_is_there_inside_of_the_block_only(job: Any) -> None:
    node = job.jobs["first"]
    with internals.with_property("allranks_test", lambda owner: owner.name):
        assert node.allranks_test == "first"
    assert node.allranks_test == {}
