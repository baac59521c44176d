"""Pipelines of azure-ai-ml's own tests, each written in Python and in YAML: both are the same plan.

They are read from the folder that ALLRANKS_SDK_TESTS names, `sdk/ml/azure-ai-ml/tests/test_configs/dsl_pipeline` of
Azure/azure-sdk-for-python with the folders beside it. packages/allranks-lab/docs/conformance.md has the outcome.
"""

import os
import re
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from allranks.plan.graph import Graph, Plan
from allranks.plan.ports import PRIMITIVES
from allranks.plan.reader import opened

FOLDER = os.environ.get("ALLRANKS_SDK_TESTS", "")
FUNCTION = re.compile(r"^def (generate_dsl_pipeline(?:_from_yaml|(_from_builder))?)\(\)", re.MULTILINE)
PAIRS = [
    (file, function, yaml)
    for file in sorted(Path(FOLDER).rglob("*.py") if FOLDER else ())
    for function, built in FUNCTION.findall(file.read_text())
    for yaml in sorted(file.parent.glob(f"{file.stem}_inline*.yml" if built else f"{file.stem}.yml"))
]
OTHER_PIPELINES = {
    "basic_component_with_component_in_folder": "the YAML has one more step",
    "parallel_component": "two of its steps log at DEBUG in Python only",
    "automl_job_in_pipeline": "the type of a step's input is declared in Python, and guessed in YAML",
    "command_job_in_pipeline": "only the steps in Python have outputs",
    "export_file_system": "azure-ai-ml refuses both",
    "pipeline_with_pipeline_component": "their outputs have other names",
}
"""Pairs that are not one pipeline: azure-ai-ml's own tests do not compare them, or not these parts."""
OTHER_COMPONENTS = ("run_settings_literal", "e2e_inline_components", "data_transfer_job_in_pipeline/pipeline")
"""Pairs with other environments, or with other files of a component. azure-ai-ml's own tests compare no components."""

pytestmark = pytest.mark.skipif(not FOLDER, reason="ALLRANKS_SDK_TESTS names no folder with the SDK's tests")


def read(target: str) -> Plan:
    with opened(target, {}) as job:
        return job.plan()


def comparable(graph: Graph, components: bool) -> Graph:
    """The graph without places in files. A function declares the types of its inputs, and a file only their values."""
    inputs = (replace(port, optional=False, type="" if port.type in PRIMITIVES else port.type) for port in graph.inputs)
    nodes, ordered = (_node(node, components) for node in graph.nodes), {"key": attrgetter("name")}
    return replace(graph, nodes=tuple(sorted(nodes, **ordered)), inputs=tuple(sorted(inputs, **ordered)))


def _node(node: Any, components: bool) -> Any:
    changes: dict[str, Any] = {"location": None}
    if hasattr(node, "graph"):
        changes["graph"] = comparable(node.graph, components)
    if hasattr(node, "body"):
        changes["body"] = _node(node.body, components)
    if not components:
        changes |= {key: None for key in ("command", "environment", "spec") if hasattr(node, key)}
    return replace(node, **changes)


@pytest.mark.parametrize(("file", "function", "yaml"), PAIRS, ids=lambda part: str(part).removeprefix(FOLDER))
def test_python_and_yaml_are_the_same_plan(
    file: Path, function: str, yaml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)  # the paths in Python are relative to it, too
    name = str(file.with_suffix("").relative_to(FOLDER))
    if reason := OTHER_PIPELINES.get(file.parent.name):
        pytest.skip(reason)
    if re.search(r"(component|trial): *azureml:", yaml.read_text()):
        pytest.skip("its components are registered")
    components = not name.startswith(OTHER_COMPONENTS) and file.stem not in OTHER_COMPONENTS
    in_python, in_yaml = (comparable(read(target).graph, components) for target in (f"{file}:{function}", str(yaml)))
    assert in_python == in_yaml
