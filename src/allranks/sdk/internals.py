"""The parts of azure-ai-ml and azure-core that allranks uses, including all private ones, so that a new version is
checked in one place.

The SDK has no public way to read a node's bindings, to build the code that it uploads, or to list the steps of a run.
The upper bound of azure-ai-ml in pyproject.toml is the version with which `tests/sdk/test_internals.py` passes. Each
part has a test there, which fails if a new version changes the part.

Classes, functions and modules are attributes of this module, imported on first use: ``internals.LoopNode``. Private
attributes and methods are used by the functions below, and by no other module.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import cache
from http import HTTPStatus
from importlib import import_module
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

_SDK = "azure.ai.ml"

PARTS = {
    # Uploads
    "AdditionalIncludes": f"{_SDK}.entities._component._additional_includes:AdditionalIncludes",
    "Code": f"{_SDK}.entities._assets._artifacts.code:Code",
    "ComponentCodeMixin": f"{_SDK}.entities._component.code:ComponentCodeMixin",
    "GitWildMatchPattern": f"{_SDK}._utils._pathspec:GitWildMatchPattern",
    "IgnoreFile": f"{_SDK}._utils._asset_utils:IgnoreFile",
    "additional_includes": f"{_SDK}.entities._component._additional_includes",
    "artifacts": f"{_SDK}._artifacts._artifact_utilities",
    "environments": f"{_SDK}.entities._assets.environment",
    # Jobs, nodes, their ports and their components
    "Command": f"{_SDK}.entities:Command",
    "CommandComponent": f"{_SDK}.entities:CommandComponent",
    "CommandJob": f"{_SDK}.entities:CommandJob",
    "ControlFlowNode": f"{_SDK}.entities._builders.control_flow_node:ControlFlowNode",
    "Input": f"{_SDK}:Input",
    "Job": f"{_SDK}.entities:Job",
    "Output": f"{_SDK}:Output",
    "Parallel": f"{_SDK}.entities:Parallel",
    "PipelineJob": f"{_SDK}.entities:PipelineJob",
    "PipelineNode": f"{_SDK}.entities:Pipeline",
    "SchemaValidatableMixin": f"{_SDK}.entities._validation.schema:SchemaValidatableMixin",
    "Spark": f"{_SDK}.entities:Spark",
    "SweepJob": f"{_SDK}.sweep:SweepJob",
    "BaseNode": f"{_SDK}.entities._builders:BaseNode",
    "GroupAttrDict": f"{_SDK}.entities._job.pipeline._io:_GroupAttrDict",
    "GroupInput": f"{_SDK}.entities._inputs_outputs:GroupInput",
    "LoopNode": f"{_SDK}.entities._builders.control_flow_node:LoopNode",
    "OutputsAttrDict": f"{_SDK}.entities._job.pipeline._io:OutputsAttrDict",
    "Sweep": f"{_SDK}.entities._builders:Sweep",
    "PipelineExpression": f"{_SDK}.entities._job.pipeline._pipeline_expression:PipelineExpression",
    "PipelineInput": f"{_SDK}.entities._job.pipeline._io:PipelineInput",
    "NodeOutput": f"{_SDK}.entities._job.pipeline._io:NodeOutput",
    "builders": f"{_SDK}.dsl._pipeline_component_builder:_definition_builder_stack",
    "PipelineComponentBuilder": f"{_SDK}.dsl._pipeline_component_builder:PipelineComponentBuilder",
    "LocalsOfFunction": f"{_SDK}._utils._func_utils:PersistentLocalsFunctionProfilerBuilder",
    "component_functions": f"{_SDK}.entities._job.pipeline._load_component",
    "pipeline_expressions": f"{_SDK}.entities._job.pipeline._pipeline_expression",
    "schema_fields": f"{_SDK}._schema.core.fields",
    "load_schedule": f"{_SDK}.entities._load_functions:load_schedule",
    "LocationResolver": f"{_SDK}.entities._validation.core:_YamlLocationResolver",
    # Public parts
    "AmlCompute": f"{_SDK}.entities:AmlCompute",
    "CronTrigger": f"{_SDK}.entities:CronTrigger",
    "ErrorTarget": f"{_SDK}.exceptions:ErrorTarget",
    "JobOperations": f"{_SDK}.operations:JobOperations",
    "JobResourceConfiguration": f"{_SDK}.entities:JobResourceConfiguration",
    "JobSchedule": f"{_SDK}.entities:JobSchedule",
    "MLClient": f"{_SDK}:MLClient",
    "RecurrenceTrigger": f"{_SDK}.entities:RecurrenceTrigger",
    "TimeZone": f"{_SDK}.constants:TimeZone",
    "VmSize": f"{_SDK}.entities:VmSize",
    "exceptions": f"{_SDK}.exceptions",
    "load_component": f"{_SDK}:load_component",
    "load_environment": f"{_SDK}:load_environment",
    "load_job": f"{_SDK}:load_job",
    # The client
    "HttpResponseError": "azure.core.exceptions:HttpResponseError",
    "ResourceNotFoundError": "azure.core.exceptions:ResourceNotFoundError",
    "client": f"{_SDK}._ml_client",
    "studio_url_from_job_id": f"{_SDK}.entities._job._studio_url_from_job_id:studio_url_from_job_id",
    "RestModel": f"{_SDK}._restclient.arm_ml_service._utils.model_base:Model",
    "requests_with_retry": f"{_SDK}._utils.utils:create_requests_pipeline_with_retry",
}
"""Each private class, function or module by its name here: ``module:name``, or a module."""

BUILD_CODE = "_build_code"
"""The method of a component that yields the code to upload."""

UPLOAD = "_upload_to_datastore"
"""The function of `artifacts` that uploads a folder."""

DESERIALIZE = "_deserialize"
"""The method of a schema's field that reads a value."""

CALL_FUNCTION = "_call"
"""The method of `LocalsOfFunction` that calls a pipeline function, and returns its result and its variables."""

RESOLVE_COMMAND, RESOLVE_SWEEP = "_resolve_arm_id_for_command_job", "_resolve_arm_id_for_sweep_job"
"""The methods of JobOperations that replace the local parts of a job by ids."""


def __getattr__(name: str) -> Any:
    if name not in PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = PARTS[name].partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an attribute of a class or a module inside of the block."""
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _own(attribute: str) -> Callable[..., Any]:
    """Return a function that returns an attribute of an object, by default None.

    Nodes are attribute dictionaries, for which `getattr` returns a value for any name.
    """
    return lambda owner, default=None: vars(owner).get(attribute, default)


def _setter(attribute: str) -> Callable[[Any, Any], None]:
    return lambda owner, value: setattr(owner, attribute, value)


# Ports: the inputs and outputs of a node or a job


def data(port: Any) -> Any:
    """Return the value of a port: a literal, an Input or Output, or a binding; None for anything else."""
    return getattr(port, "_data", None)


declaration = attrgetter("_meta")
"""The Input or Output that declares a port; None if the component is unknown."""
mode, set_mode = attrgetter("_mode"), _setter("_mode")
"""The mode that a node sets for a port; None if it sets none."""
port_type = attrgetter("_type")
"""The type that the SDK infers for an undeclared output."""
port_name: Callable[[Any], str] = attrgetter("_port_name")
"""The name of an output within its node."""
owner = attrgetter("_owner")
"""The node that an output belongs to."""
bound_output = _own("_binding_output")
"""The output of a node to which the DSL bound a pipeline's output; None if it did not."""

# Nodes and jobs

component = _own("_component")
"""The component of a node, or its id; the default if there is none."""
component_key = methodcaller("_get_component_attr_name")
"""The key that names the component of a node: component, trial or task."""
replace_component = _setter("_component")
"""Set the component of a node to one with the same inputs and outputs. The bindings do not change."""
rest_object = methodcaller("_to_rest_object")
"""The request body of a node."""
schema_context = methodcaller("_default_context")
"""The context of the schema of an entity, on which it depends besides the class."""
validation_schema = attrgetter("_schema_for_validation")
"""A new schema of an entity."""


def source(port: Any) -> Any:
    """Return the node to whose output the DSL bound a port; None for any other value."""
    return getattr(data(port), "_owner", None) if isinstance(data(port), __getattr__("NodeOutput")) else None


def is_binding(value: Any) -> bool:
    """Return whether a value is a binding to the pipeline: an object of the DSL, or a text."""
    if isinstance(value, str):
        return re.search(r"\$\{\{\s*parent\.", value) is not None
    return isinstance(value, _bindings())


@cache
def _bindings() -> tuple[type, ...]:
    return tuple(__getattr__(name) for name in ("PipelineInput", "NodeOutput", "PipelineExpression"))


def declare(node: Any, name: str, port: Any) -> None:
    """Declare an Input or an Output in an unregistered copy of a node's component."""
    own = copy(node._component)
    if isinstance(port, __getattr__("Input")):
        own._inputs = {**own.inputs, name: port}
    else:
        own._outputs = {**own.outputs, name: port}
    own._id, node._component = None, own


def nodes_being_built() -> list[Any] | None:
    """Return the nodes so far of the innermost running function with @pipeline; None outside of one."""
    builder = __getattr__("builders").top()
    return None if builder is None else builder.nodes


def as_pipeline_job(node: Any) -> tuple[Any, frozenset[str]]:
    """Return the job that the client creates from a pipeline component's node, with all inputs of the node, and the
    names of the inputs that the client drops because they are 0, False or ""."""
    job = node._to_job()
    dropped = {name: value for name, value in node._job_inputs.items() if not value and value is not None}
    for name, value in dropped.items():
        job.inputs[name] = job._build_input(name, job.component.inputs.get(name), value)
    return job, frozenset(dropped)


resources = _own("_resources")
"""The resources that a node sets itself; None if it sets none."""
given_ports = attrgetter("_job_inputs", "_job_outputs")
"""The inputs and the outputs that are set on a node, including those that its component does not declare."""


def sweep_node(job: Any) -> Any:
    """Return a sweep job as a node of a pipeline. Its trial becomes a component with the job's inputs and outputs."""
    job._override_missing_properties_from_trial()
    component = job.trial
    if not isinstance(component, __getattr__("CommandComponent")):
        own = ("command", "code", "environment", "distribution", "resources")
        settings = {name: getattr(job.trial, name) for name in own}
        made = __getattr__("CommandJob")(inputs=job.inputs, outputs=job.outputs, **settings)
        component = made._to_component({"base_path": job.base_path})
        component.environment_variables = job.trial.environment_variables
    names = "name display_name description experiment_name compute resources queue_settings inputs outputs"
    names += " limits sampling_algorithm objective early_termination search_space"
    return __getattr__("Sweep")(trial=component, **{name: getattr(job, name) for name in names.split()})


def build_input(job: Any, name: str, declared: Any, value: Any) -> Any:
    return job._build_input(name, declared, value)


def build_output(node: Any, name: str, declared: Any = None) -> Any:
    return node._build_output(name, declared, None)


set_outputs = _setter("_outputs")
status, set_status = _own("_status"), _setter("_status")
"""The status of a job; None before it is submitted."""
set_id, set_path, set_provisioning_state = _setter("_id"), _setter("_path"), _setter("_provisioning_state")
"""Set values that the service assigns to an asset or a compute."""
is_swept = _own("_swept")
"""Whether a sweep was created from a command."""
pipeline_builder = _own("_pipeline_builder")
"""The builder of a function with @pipeline; None for any other function."""
set_enabled = _setter("_is_enabled")
"""Set whether a schedule is enabled when it is created."""

# Components and environments

is_anonymous = attrgetter("_is_anonymous")
"""Whether a component or an environment has no name."""


def source_path(asset: Any) -> str:
    """Return the file from which a component or an environment was loaded; "" if there is none."""
    return str(asset._source_path or "")


def conda_path(environment: Any) -> str:
    """Return the conda file of an environment; "" if its specification is inline."""
    return str(environment._conda_file_path or "")


def is_mldesigner_component(value: Any) -> bool:
    """Return whether a value is a function with mldesigner's @command_component."""
    return bool(getattr(value, "_is_mldesigner_component", False))


component_function = attrgetter("_func")
"""The function that creates nodes of a component. Calling the component would create the function each time."""
yaml_text, set_yaml_text = attrgetter("_yaml_str"), _setter("_yaml_str")
"""The YAML of a component for the docstring of its function; None if it is not known."""
code_text = methodcaller("_get_origin_code_in_str")
"""The code of a component as written in its file."""
code_base = methodcaller("_get_base_path_for_code")
"""The folder that the code of a component is relative to."""


def includes_configs(component: Any) -> Any:
    """Return the additional includes of a component as written in its file."""
    return getattr(component, "_get_all_additional_includes_configs", list)()


def includes(code: Any) -> Any:
    """Return the AdditionalIncludes of a component's code. code: a `request.CodeRequest`"""
    made = __getattr__("AdditionalIncludes")
    return made(origin_code_value=code.path, base_path=code.base, configs=list(code.includes))


def resolved_includes(additional: Any) -> list[Path]:
    """Return the paths of AdditionalIncludes. Download artifacts."""
    return [Path(path) for path in additional._get_resolved_additional_include_configs()]


validate_first_and_last = methodcaller("_validate_init_finalize_job")
"""The SDK's validation of a pipeline's `on_init` and `on_finalize`."""
validate_compute = methodcaller("_validate_compute_is_set")
"""The SDK's validation that each step of a pipeline job has a compute."""
validate = methodcaller("_validate")
"""The SDK's validation of a component."""
as_dict = methodcaller("_to_dict")
"""The YAML of a component as a dictionary."""


def ignored_patterns(file: Path) -> list[str]:
    """Return the lines with patterns of an ignore file. Raise OSError or ValueError if it cannot be read."""
    return list(__getattr__("IgnoreFile")(file)._get_ignore_list())


def schema(path: str) -> Any:
    """Return the schema class at a path such as ``job.command_job:CommandJobSchema``."""
    module, _, name = path.partition(":")
    return getattr(import_module(f"{_SDK}._schema.{module}"), name)


def rest_response(request: Any, content: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Any:
    """Return a complete response of azure-core to a request. content: JSON, unless the headers name another type"""
    # azure.core takes 0.1 s to import.
    from azure.core.rest._http_response_impl import HttpResponseImpl
    from azure.core.utils import case_insensitive_dict

    response = HttpResponseImpl(
        request=request,
        internal_response=None,
        status_code=status,
        reason=HTTPStatus(status).phrase,
        content_type="application/json",
        headers=case_insensitive_dict({"Content-Type": "application/json", **(headers or {})}),
        stream_download_generator=None,
        block_size=None,
    )
    response._content = content
    response._is_closed = response._is_stream_consumed = True
    return response


# The client


def run_details(client: Any, name: str) -> Any:
    """Return the run history of a job. `jobs.get` returns neither times nor reasons nor logs."""
    return _run_history(client).get_run_details(name)


def _run_history(client: Any) -> Any:
    """Return the SDK's client for run history.

    Raise HttpResponseError if the list of addresses cannot be read. The SDK parses any response, and raises KeyError if
    the request is refused (azure-ai-ml 1.35.2, `JobOperations._get_workspace_url`).
    """
    jobs, failure = client.jobs, __getattr__("HttpResponseError")
    if not jobs._api_base_url:
        response = requests(client).get(client.workspaces.get(client.workspace_name).discovery_url)
        if response.status_code != 200:
            raise failure(response=response)
        try:
            jobs._api_base_url = json.loads(response.body())["api"]
        except (ValueError, KeyError, TypeError):
            raise failure("the list of addresses of the workspace has none of run history") from None
    return jobs._runs_operations


def child_runs(client: Any, name: str) -> Iterator[Any]:
    """Yield the run history of the steps of a job.

    The SDK's iterator only continues with a `nextLink`, but run history may return only a continuation token
    (azure-ai-ml 1.35.2, `RunsOperations.get_child`), so pages are requested one by one.
    """
    scope, operation = client.jobs._operation_scope, _run_history(client)._operation
    where = (scope.subscription_id, scope.resource_group_name, client.workspace_name, name)
    bodies: list[Any] = []
    options = {"raw_response_hook": lambda response: bodies.append(json.loads(response.http_response.text()))}
    token = None
    while True:
        yield from next(operation.get_child(*where, continuationtoken=token, **options).by_page())
        before, token = token, _continuation(bodies[-1])
        if token in (None, before):
            return


def _continuation(body: Mapping[str, Any]) -> str | None:
    """Return the token of the next page; None for the last page."""
    query = parse_qs(urlsplit(str(body.get("nextLink") or "")).query)
    tokens = [value for key, values in query.items() if "continuation" in key.lower() for value in values]
    return body.get("continuationToken") or next(iter(tokens), None)


def studio_url(job: str) -> str:
    """Return the page of a job in the studio of the current cloud. job: its ARM id

    The cloud is set by the variable AZUREML_CURRENT_CLOUD or ARM_CLOUD_METADATA_URL.
    """
    page = str(__getattr__("studio_url_from_job_id")(job) or "")
    # The address of the studio ends with a slash in the SDK's table of clouds.
    return re.sub(r"(?<!:)//runs/", "/runs/", page)


def requests(client: Any) -> Any:
    """Return the client's pipeline of HTTP requests, which retries transient failures."""
    return __getattr__("requests_with_retry")(requests_pipeline=client._requests_pipeline)


def component_version(client: Any, name: str, version: str) -> Any:
    """Return the REST model of a registered component. `components.get` would convert it to an entity."""
    return client.components._get_component_version(name, version)


def datastore_id(datastore: str | None, scope: Any) -> Any:
    """Return the id of a datastore. datastore: None for the default one"""
    artifacts = __getattr__("artifacts")
    return artifacts.get_datastore_arm_id(artifacts._get_datastore_name(datastore_name=datastore), scope)


def job_body(client: Any, name: str) -> Any:
    """Return the REST model of a job. `jobs.get` would convert it to an entity, and fail for some kinds of nodes."""
    return client.jobs._get_job(name)


def job_tree(client: Any, body: Any) -> Any:
    """Return the tree of a file for the REST model of a job, with short ids."""
    return client.jobs._resolve_azureml_id(__getattr__("Job")._from_rest_object(body))._to_dict()


def download_code(client: Any, name: str, version: str, folder: Path) -> None:
    """Download the code of a component into a new folder."""
    client._code.download(name, version, folder)


def download_context(client: Any, address: str, folder: Path) -> None:
    """Download the build context of an environment into a folder."""
    __getattr__("artifacts").download_artifact_from_storage_url(address, str(folder), client.datastores, None)


def cause(error: Exception) -> Exception:
    """Return the error that an error of the SDK hides; the error itself if it hides none."""
    return getattr(error, "inner_exception", None) or error
