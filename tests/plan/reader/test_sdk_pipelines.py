"""Pipelines of azure-ai-ml's own tests, each written in Python and in YAML: both are the same plan.

They are read from the folder that ALLRANKS_SDK_TESTS names, `sdk/ml/azure-ai-ml/tests/test_configs/dsl_pipeline` of
Azure/azure-sdk-for-python with the folders beside it. docs/conformance.md has the outcome.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allranks.plan.graph import Graph, Plan
from allranks.plan.ports import PRIMITIVES
from allranks.plan.reader import opened

FOLDER = os.environ.get("ALLRANKS_SDK_TESTS", "")
FUNCTION = re.compile(r"^def (generate_dsl_pipeline(?:_from_yaml)?)\(", re.MULTILINE)
PAIRS = {
    file: function[1]
    for file in sorted(Path(FOLDER).rglob("*.py") if FOLDER else ())
    if file.with_suffix(".yml").exists() and (function := FUNCTION.search(file.read_text()))
}

pytestmark = pytest.mark.skipif(not FOLDER, reason="ALLRANKS_SDK_TESTS names no folder with the SDK's tests")


def read(target: str) -> Plan:
    with opened(target, {}) as job:
        return job.plan()


def comparable(graph: Graph) -> Graph:
    """The graph without places in files. A function declares the types of its inputs, and a file only their values."""
    inputs = (replace(port, optional=False, type="" if port.type in PRIMITIVES else port.type) for port in graph.inputs)
    ordered = tuple(sorted(inputs, key=lambda port: port.name))
    return replace(graph, nodes=tuple(map(_node, graph.nodes)), inputs=ordered)


def _node(node: Any) -> Any:
    inner = {"graph": comparable(node.graph)} if hasattr(node, "graph") else {}
    body = {"body": _node(node.body)} if hasattr(node, "body") else {}
    return replace(node, location=None, **inner, **body)


@pytest.mark.parametrize("file", PAIRS, ids=lambda file: str(file.relative_to(FOLDER)))
def test_python_and_yaml_are_the_same_plan(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)  # the paths in Python are relative to it, too
    yaml = file.with_suffix(".yml")
    if re.search(r"(component|trial): *azureml:", yaml.read_text()):
        pytest.skip("its components are registered")
    in_python, in_yaml = (comparable(read(target).graph) for target in (f"{file}:{PAIRS[file]}", str(yaml)))
    assert in_python == in_yaml
