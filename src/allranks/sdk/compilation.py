"""Let azure-ai-ml turn its entities into requests."""

import contextlib
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Location, Problem, StepPlace
from allranks.sdk import internals, unsendable, validation_errors
from allranks.sdk.entity_ports import flat, flat_definitions, plain
from allranks.sdk.request import CodeRequest, ComponentRequest, EnvironmentRequest, JobRequest, NodeRequest

Locate = Callable[[str], Location | None]
"""Returns the location of a node in the user's files, by its path."""

_MODES = {
    "ReadOnlyMount": "ro_mount",
    "ReadWriteMount": "rw_mount",
    "Download": "download",
    "Upload": "upload",
    "Direct": "direct",
    "EvalMount": "eval_mount",
    "EvalDownload": "eval_download",
}
"""The modes of requests, by their names in files."""

_SECTIONS = ("distribution", "limits", "queue_settings", "resources")
"""Groups of settings of a node whose keys have several spellings in requests."""

_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SETTINGS = ("default_datastore", "continue_on_step_failure", "force_rerun", "on_init", "on_finalize")
_ABOUT = (
    *("name", "version", "display_name", "description", "type", "tags", "properties"),
    *("is_deterministic", "environment_variables"),
)
"""Fields that a component's specification in the request lacks, or has in other forms."""


def nowhere(path: str) -> None:  # noqa: ARG001
    return None


def job_request(job: Any, source: str = "", locate: Locate = nowhere) -> JobRequest:
    """Return the request of a pipeline or another job.

    source: the job's file, after which it is named if it has no name
    locate: returns the location of the node at a path, for messages

    Raise InputError if azure-ai-ml cannot convert a sweep to a node.
    """
    dropped: frozenset[str] = frozenset()
    if isinstance(job, internals.PipelineNode):
        job, dropped = internals.as_pipeline_job(job)
    if isinstance(job, internals.SweepJob):
        job = _sweep_node(job)
    is_pipeline = isinstance(job, internals.PipelineJob)
    is_node = isinstance(job, (internals.Command, internals.Parallel, internals.Spark, internals.Sweep))
    name = _name(job, source) if is_pipeline or is_node else str(job.name or job.display_name or "")
    root: ComponentRequest | NodeRequest | str | None = None
    of_pipeline: dict[str, Any] = {}
    with _cached_schemas():
        if is_pipeline:
            root = job.component if isinstance(job.component, str) else _component(job.component, "", locate)
            without_compute = internals.validate_compute(job).error_messages  # keys: jobs.inner.jobs.train.compute
            of_pipeline = {
                "settings": {key: plain(getattr(job.settings, key)) for key in _SETTINGS},
                "inputs": {key: _given(internals.data(port)) for key, port in flat(job.inputs)},
                "outputs": _outputs(job),
                "without_compute": tuple(".".join(key.split(".")[1:-1:2]) for key in without_compute),
                "problems": tuple(internals.validate_first_and_last(job).error_messages.items()),
            }
        elif is_node:
            root = _node(name, job, "", locate, alone=True)
    return JobRequest(
        type=str(job.type),
        name=name,
        display_name=str(job.display_name or ""),
        description=str(job.description or ""),
        experiment=str(job.experiment_name or ""),
        base=Path(job.base_path or "."),
        root=root,
        dropped=dropped,
        **of_pipeline,
    )


def component_request(component: Any, locate: Locate = nowhere) -> ComponentRequest:
    """Return the request of a component. locate: as of `job_request`"""
    with _cached_schemas():
        return _component(component, "", locate)


def node_request(path: str, node: Any) -> NodeRequest:
    """Return the request of a node. path: in its pipeline"""
    with _cached_schemas():
        return _node(path, node, "", nowhere)


def environment_request(environment: Any) -> EnvironmentRequest | str | None:
    """Return the request of an environment: a definition, or the id of a registered one."""
    if environment is None or isinstance(environment, str):
        return environment
    if internals.is_binding(environment):
        return str(plain(environment))
    is_named = bool(environment.name) and not internals.is_anonymous(environment)
    build = environment.build
    return EnvironmentRequest(
        name=str(environment.name) if is_named else "",
        version=str(environment.version or "") if is_named else "",
        image=str(environment.image or ""),
        context=str(build.path) if build is not None else "",
        dockerfile=str(build.dockerfile_path or "") if build is not None else "",
        conda=environment.conda_file or None,
        conda_file=internals.conda_path(environment),
        file=internals.source_path(environment),
        base=Path(environment.base_path or "."),
    )


def name_of_file(path: Path) -> str:
    """Return the name of a file as the name of a job, with ASCII letters and digits only; "" if it has none."""
    text = unicodedata.normalize("NFKD", path.stem.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"\W+", "_", text).strip("_")


def _name(job: Any, source: str) -> str:
    """Return the name of the job, else that of its component, of its file, or of its type."""
    component: Any = internals.component(job) or getattr(job, "component", None)
    is_named = component is not None and not isinstance(component, str) and not internals.is_anonymous(component)
    return str(job.name or (is_named and component.name) or name_of_file(Path(source)) or job.type)


@contextlib.contextmanager
def _cached_schemas() -> Iterator[None]:
    """Let the SDK create the schema of a class once per folder, not once per object.

    This reduces the time for the request of a pipeline of four steps from 80 ms to 15 ms. The request of a component
    is created once, however many steps use it. The SDK would also write it into each step, and then drop it.
    """
    made: dict[tuple[type, str], Any] = {}

    def dump(entity: Any) -> Any:
        key = (type(entity), str(internals.schema_context(entity)))
        if key not in made:
            made[key] = internals.validation_schema(entity)
            if isinstance(entity, internals.BaseNode):
                made[key].dump_fields.pop(internals.component_key(entity), None)
        return made[key].dump(entity)

    try:
        with internals.replaced(internals.SchemaValidatableMixin, "_dump_for_validation", dump):
            yield
    finally:
        _component_requests.clear()


_component_requests: dict[int, tuple[Any, ComponentRequest]] = {}
"""Components without nodes and their requests, by the ids of the components, while a job is converted."""


def _sweep_node(job: Any) -> Any:
    try:
        return internals.sweep_node(job)
    except Exception as error:
        if not validation_errors.is_own(error):
            raise
        raise InputError(Problem("key inputs", validation_errors.one_line(error), "values or data")) from None


def _node(name: str, entity: Any, path: str, locate: Locate, *, alone: bool = False) -> NodeRequest:
    place = StepPlace(f"{path}{name}", locate(f"{path}{name}"))
    if not isinstance(entity, (internals.BaseNode, internals.ControlFlowNode)):  # for example an AutoML job
        types = {key: getattr(port, "type", None) for key, port in (getattr(entity, "outputs", None) or {}).items()}
        outputs = {key: {"job_output_type": kind or "uri_folder"} for key, kind in types.items()}
        return NodeRequest({"type": str(entity.type), "display_name": entity.display_name, "outputs": outputs})
    if wrong := tuple(unsendable.problems(entity, place)):
        return NodeRequest({"type": str(entity.type)}, problems=wrong)
    given = internals.component(entity)
    try:
        body = internals.rest_object(entity)
        component = given if given is None or isinstance(given, str) else _component(given, f"{path}{name}.", locate)
    except Exception as error:  # the SDK's own, and those caused by values that it does not expect
        return NodeRequest({"type": str(entity.type)}, problems=tuple(unsendable.refused(error, place)))
    if isinstance(component, ComponentRequest) and component.type.startswith("promptflow"):  # a flow accepts any input
        accepted = {key: _declared(internals.declaration(port)) for key, port in flat(entity.inputs)}
        component = replace(component, inputs=accepted)
    sent = {key: _plain(value) for key, value in body.items() if key not in ("componentId", "trial")}
    for key in _SECTIONS:
        if isinstance(section := sent.get(key), dict):
            sent[key] = {_CAMEL_CASE.sub("_", name).lower(): value for name, value in section.items()}
    for ports in (sent.get("inputs"), sent.get("outputs")):
        for port in (ports or {}).values():
            port["mode"] = _MODES.get(port.get("mode"), "")
    if alone and given is not None and not isinstance(given, str) and "environment_variables" not in sent:
        # The variables of a sweep's trial are sent with a job, but not in a pipeline.
        sent["environment_variables"] = getattr(given, "environment_variables", None)
    is_node = isinstance(entity, internals.BaseNode)
    own = (vars(entity).get("environment") or None) if is_node else None
    return NodeRequest(
        sent,
        component,
        registered=str((given if isinstance(given, str) else getattr(given, "id", None)) or ""),
        key=internals.component_key(entity) if is_node else "",
        ports=tuple(tuple(ports) for ports in internals.given_ports(entity)) if is_node else ((), ()),
        environment=environment_request(own),
        warnings=tuple(unsendable.unsent(entity, place)),
    )


def _component(component: Any, path: str, locate: Locate) -> ComponentRequest:
    """Return the request of a component. path: of the nodes within it, with a trailing dot"""
    if id(component) in _component_requests:
        return _component_requests[id(component)][1]
    jobs = getattr(component, "jobs", None)
    nodes = {name: _node(name, node, path, locate) for name, node in jobs.items()} if isinstance(jobs, dict) else {}
    spec = {} if nodes else internals.as_dict(component)
    has_code = isinstance(component, internals.ComponentCodeMixin)
    base = Path(component.base_path or ".")
    code = internals.code_text(component) if has_code else None
    includes = internals.includes_configs(component) if has_code else []
    request = ComponentRequest(
        spec={**spec, **{key: getattr(component, key, None) for key in _ABOUT}},
        inputs={name: _declared(port) for name, port in flat_definitions(component.inputs)},
        outputs=_outputs(component),
        code=CodeRequest(code, Path(internals.code_base(component) or base), includes) if code or includes else None,
        environment=environment_request(getattr(component, "environment", None)),
        nodes=nodes,
        base=base,
        file=internals.source_path(component),
        is_anonymous=internals.is_anonymous(component),
    )
    if not nodes:
        _component_requests[id(component)] = component, request
    return request


def _declared(port: Any) -> dict[str, Any]:
    kind = " or ".join(map(str, port.type)) if isinstance(port.type, list) else str(port.type or "")
    return {
        "type": kind,
        "default": plain(port.default),
        "optional": port.optional is True,
        "min": port.min,
        "max": port.max,
        "enum": [str(plain(choice)) for choice in port.enum or ()],
        "mode": port.mode or "",
    }


def _given(value: Any) -> Any:
    """Return the value of a pipeline's input: a plain value, or a mapping with the path of data."""
    if not isinstance(value, internals.Input):
        return plain(value)
    if value.path is None:
        return plain(value.default)
    return {"uri": str(value.path), "job_input_type": str(value.type or ""), "mode": value.mode or ""}


def _outputs(owner: Any) -> dict[str, dict[str, Any]]:
    """Return the outputs of a pipeline or a component."""
    outputs = {}
    for name, port in owner.outputs.items():
        given = port if isinstance(port, internals.Output) else internals.data(port)
        is_output = isinstance(given, internals.Output)
        asset, version = (getattr(given, key, None) or getattr(port, key, None) for key in ("name", "version"))
        outputs[name] = {
            "type": str((given.type if is_output else internals.port_type(port)) or ""),
            "mode": (given.mode if is_output else None) or "",
            "uri": str(given.path) if is_output and given.path else "",
            "name": str(asset or ""),
            "version": str(version or ""),
            "source": _source(owner, port),
        }
    return outputs


def _source(owner: Any, output: Any) -> str:
    """Return the binding that the DSL creates from a pipeline's output to the output of a node; "" if there is none.

    In the request, a node's output that is returned under two names is bound to only one of them.
    """
    bound = internals.bound_output(output)
    if bound is None:
        return ""
    node = internals.owner(bound)
    is_own = getattr(owner, "jobs", {}).get(node.name) is node
    return f"${{{{parent.jobs.{node.name}.outputs.{internals.port_name(bound)}}}}}" if is_own else ""


def _plain(value: Any) -> Any:
    """Return a part of a request as plain data."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return plain(value)
