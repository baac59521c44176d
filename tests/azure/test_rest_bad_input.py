"""REST bodies that cannot be read: each ends in an InputError that names the place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fake.rest import read_rest

from allranks.errors import InputError, Problem
from allranks.plan.environment import registered
from allranks.plan.graph import Pipeline, Step
from allranks.plan.ports import GraphInput, Input, Literal

SPEC = {"name": "say", "version": "1", "type": "command", "command": "echo ${{inputs.x}}", "environment": "azureml:e:1"}
STEP = {"type": "command", "componentId": "say"}
MANY = {"type": "pipeline", "componentId": "many"}
INLINE = {"name": "inline", "type": "pipeline", "jobs": {"two": {**STEP, "componentId": "nope"}}}
LOOP = {"type": "do_while", "mapping": {}, "limits": {"max_iteration_count": 2}}


class Shelf:
    """Components by the ids that the tests give them; everything else is missing."""

    _SPECS: Mapping[str, Any] = {
        "say": {**SPEC, "inputs": {"x": {"type": "number", "optional": True}}},
        "many": {"name": "many", "version": "1", "type": "pipeline", "jobs": {"say": STEP}},
        "empty": {"name": "empty", "version": "1", "type": "pipeline", "jobs": {}},
        "wrong": {
            "name": "wrong",
            "type": "pipeline",
            "jobs": {"a": {**STEP, "componentId": "nope"}, "b": {**STEP, "componentId": "x"}},
        },
        "sweep": {"name": "sweep", "version": "1", "type": "sweep"},
        "broken": {"type": "command", "name": "broken"},
    }

    def component(self, identity: str) -> Mapping[str, Any]:
        if identity not in self._SPECS:
            raise InputError(Problem(identity, "there is no such component"))
        path = f"/subscriptions/s/resourceGroups/g/providers/p/workspaces/w/components/{identity}/versions/1"
        return {"id": path, "name": "1", "properties": {"componentSpec": self._SPECS[identity]}}

    def environment(self, identity: str) -> Mapping[str, Any]:
        return {"name": "1", "properties": {"isAnonymous": False, "image": "ubuntu"}}

    def code(self, identity: str) -> Path:
        raise InputError(Problem(identity, "there is no such code"))

    def build_context(self, uri: str) -> Path:
        raise InputError(Problem(uri, "there is no such folder"))

    def data(self, uri: str) -> str:
        return uri


def pipeline(**jobs: Any) -> dict[str, Any]:
    return {"name": "p", "properties": {"jobType": "Pipeline", "jobs": jobs}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": "p"}, "job p: the body has no properties"),
        ({"name": "p", "properties": {"jobType": "AutoML"}}, "a job of type AutoML is not yet run"),
        ({"name": "p", "properties": {}}, "key jobType"),
        (pipeline(), "key jobs: the pipeline has no jobs"),
        (pipeline(one={**STEP, "componentId": "nope"}), "step one, nope: there is no such component"),
        (pipeline(one={**STEP, "componentId": "many"}), "step one, key type: command, but its component is of"),
        (pipeline(one={**STEP, "componentId": "sweep"}), "a component of type sweep is not yet run"),
        (pipeline(one={**STEP, "componentId": "broken"}), "job p: the SDK cannot read the body"),
        (pipeline(one=STEP, two={"type": "do_while"}), "job p: the SDK cannot read the body"),
        (pipeline(one={**STEP, "limits": {"timeout": "soon"}}), "job p: the SDK cannot read the body"),
        (
            pipeline(one={**MANY, "componentId": "empty"}),
            "step one, component empty, key jobs: the pipeline has no jobs",
        ),
        (pipeline(one={**MANY, "componentId": "wrong"}), "step one.a, nope: there is no such component"),
        (pipeline(one={**MANY, "componentId": "wrong"}), "step one.b, x: there is no such component"),
        (pipeline(one={**MANY, "componentId": INLINE}), "step one.two, nope: there is no such component"),
        (pipeline(one=STEP, two={**LOOP, "body": "${{parent.jobs.three}}"}), "job p: the SDK cannot read the body"),
        (
            {"name": "c", "properties": {"jobType": "Command", "codeId": "x", "command": "echo"}},
            "there is no such code",
        ),
    ],
)
def test_a_body_that_cannot_be_read(body, message, tmp_path) -> None:
    with pytest.raises(InputError) as caught:
        read_rest(body, Shelf(), tmp_path)
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_body_that_can_be_read(tmp_path) -> None:
    node = {**STEP, "inputs": {"x": {"job_input_type": "literal", "value": "1e-05"}}}
    (step,) = read_rest(pipeline(one=node), Shelf(), tmp_path).graph.nodes
    assert isinstance(step, Step)
    assert (step.component, step.version, step.environment) == ("say", "1", registered("azureml:e:1"))
    assert step.inputs[0].value == Literal(1e-05)


def test_a_component_may_stand_in_place_of_its_id(tmp_path) -> None:
    command = {**SPEC, "inputs": {"x": {"type": "number", "default": "2"}}}
    nested = {
        "name": "nested",
        "type": "pipeline",
        "inputs": {"x": {"type": "number", "default": "3"}},
        "jobs": {
            "one": {
                "type": "command",
                "componentId": command,
                "inputs": {"x": {"job_input_type": "literal", "value": "${{parent.inputs.x}}"}},
            }
        },
    }
    (node,) = read_rest(pipeline(outer={"type": "pipeline", "componentId": nested}), Shelf(), tmp_path).graph.nodes
    assert isinstance(node, Pipeline)
    assert node.graph.inputs == (Input("x", "number", Literal(3)),)
    assert [(step.name, step.inputs) for step in node.graph.nodes] == [
        ("one", (Input("x", "number", GraphInput("x")),))
    ]
