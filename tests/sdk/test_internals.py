"""Each private part of azure-ai-ml that `allranks.sdk.internals` uses, in the version that is installed."""

# Without `annotations` of the future: the DSL reads those of functions as they are.

import ast
import contextlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

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


@pytest.fixture(autouse=True, scope="module")
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


ATTRIBUTES = {
    "AdditionalIncludes": "_get_resolved_additional_include_configs",
    "AmlCompute": "_provisioning_state",
    "BaseNode": "_build_input _build_output _component _get_component_attr_name _job_inputs _job_outputs _status"
    " _to_job _to_rest_object",
    "Code": "_id _path",
    "Command": "_resources _swept",
    "CommandComponent": "_func _get_all_additional_includes_configs _inputs _is_anonymous _outputs _source_path"
    " _to_dict _validate _yaml_str",
    "CommandJob": "_to_component",
    "ComponentCodeMixin": "_build_code _get_base_path_for_code _get_origin_code_in_str",
    "IgnoreFile": "_get_ignore_list",
    "Job": "_from_rest_object",
    "JobOperations": "_api_base_url _get_job _operation_scope _requests_pipeline _resolve_arm_id_for_command_job"
    " _resolve_arm_id_for_sweep_job _resolve_azureml_id _runs_operations",
    "JobSchedule": "_is_enabled",
    "LocalsOfFunction": "_call",
    "NodeOutput": "_binding_output _data _meta _mode _owner _port_name _type",
    "PipelineJob": "_validate_compute_is_set _validate_init_finalize_job",
    "SchemaValidatableMixin": "_default_context _schema_for_validation",
    "SweepJob": "_override_missing_properties_from_trial",
    "artifacts": "_get_datastore_name _upload_to_datastore",
    "environments": "_conda_file_path",
    "azure.ai.ml._ml_client": "_code",
    "azure.ai.ml.dsl._pipeline_decorator": "_pipeline_builder",
    "azure.ai.ml.operations._component_operations": "_get_component_version",
    "azure.ai.ml.operations._run_operations": "_operation",
    "azure.core.rest._http_response_impl": "_content _is_closed _is_stream_consumed",
    "marshmallow.fields": "_deserialize",
    "mldesigner._component": "_is_mldesigner_component",
}
"""The private attributes and methods of each part or module."""


@pytest.mark.parametrize(
    ("owner", "name"), [(owner, name) for owner, names in ATTRIBUTES.items() for name in names.split()]
)
def test_every_attribute_is_defined(owner: str, name: str) -> None:
    part = getattr(internals, owner) if owner in internals.PARTS else import_module(owner)
    modules = {sys.modules[each.__module__] for each in part.__mro__[:-1]} if inspect.isclass(part) else {part}
    assert any(name in _defined(Path(module.__file__ or "")) for module in modules if hasattr(module, "__file__"))


def test_every_attribute_has_a_test() -> None:
    listed = " ".join(ATTRIBUTES.values()).split()
    assert sorted(listed) == sorted(_attribute_names(Path(internals.__file__)))


@cache
def _defined(file: Path) -> set[str]:
    """The functions, methods and attributes that a module defines or sets."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    return functions | {
        node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }


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
    internals.CALL_FUNCTION: (lambda: internals.LocalsOfFunction, ["self", "func", "_all_kwargs"]),
    "to_component_func": (
        lambda: import_module("azure.ai.ml.dsl._component_func"),
        ["entity", "component_creation_func"],
    ),
    internals.BUILD_CODE: (lambda: internals.ComponentCodeMixin, ["self"]),
    "add_node": (lambda: internals.PipelineComponentBuilder, ["self", "node"]),
    "build": (lambda: internals.PipelineComponentBuilder, ["self"]),
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
    assert callable(internals.LocationResolver.resolve)


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


def test_every_schema_that_keys_are_compared_with_is_there() -> None:
    from allranks.sdk import validation_errors

    for path in validation_errors._SCHEMAS.values():
        assert internals.schema(path)(context={"base_path": Path()}).fields


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
    """The other rooms never hold an object of it, which import-linter checks; light_import names the modules of which
    it defers the import, and goes on without those that are gone."""
    room = file.relative_to(SOURCE).parts[0]
    holds = ("sdk", "plan", "checks", "images", "catalog", "library.py", "schedules", "azure", "api", "cli")
    return room in holds and file.name not in ("internals.py", "light_import.py")


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
