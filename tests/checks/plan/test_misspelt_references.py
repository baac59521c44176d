"""A text that is nearly a reference to a port stays as it is on Azure ML; a warning gives the right form."""

from datetime import date

import pytest

from allranks.errors import Location
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Input, Literal, Output, Path
from plan_findings import warnings

TODAY = date(2026, 1, 1)


def found(step: Step, inputs: tuple[Input, ...] = ()) -> list[tuple[str, str]]:
    rows = warnings(Plan("p", Graph((step,), inputs)), TODAY)
    return [(row.where, row.fix) for row in rows if row.rule == "misspelt-reference"]


@pytest.mark.parametrize(
    "text",
    [
        "${inputs.x}",
        "{{inputs.x}}",
        "{{ inputs.x }}",
        "$(inputs.x)",
        "{inputs.x}",
        "$inputs.x",
        "${{inputs.x}",
        "${{{inputs.x}}}",
    ],
)
def test_each_form_is_named_with_the_right_one(text: str) -> None:
    step = Step("a", f"echo {text}", inputs=(Input("x", "string", Literal("1")),), location=Location("a.yml", 3))
    assert found(step) == [("step a, key command (a.yml:3)", "write ${{inputs.x}}")]


@pytest.mark.parametrize(
    "text",
    [
        "${{inputs.x}}",
        "${{ inputs.x }}",
        '{"x": ${{inputs.x}}}',
        "$[[--x ${{inputs.x}}]]",
        "{inputs.other}",
        "$(ls inputs.x)",
    ],
)
def test_what_is_right_or_names_no_port_has_no_warning(text: str) -> None:
    assert found(Step("a", f"echo {text}", inputs=(Input("x", "string", Literal("1")),))) == []


def test_an_output_in_a_variable_and_a_binding_in_python() -> None:
    at = Location("flow.py", 7)
    step = Step(
        "a",
        "ls",
        environment_variables={"OUT": "{{outputs.model}}/last"},
        inputs=(
            Input("x", "string", Literal("${parent.inputs.x}")),
            Input("d", "uri_folder", Path("/d/$(parent.inputs.x)")),
        ),
        outputs=(Output("model", "uri_folder"),),
        location=at,
    )
    binding = "write ${{parent.inputs.x}}, in an f-string ${{{{parent.inputs.x}}}}"
    assert found(step, (Input("x", "string", Literal("1")),)) == [
        (
            "step a, key environment_variables.OUT (flow.py:7)",
            "write ${{outputs.model}}, in an f-string ${{{{outputs.model}}}}",
        ),
        ("step a, key inputs.x (flow.py:7)", binding),
        ("step a, key inputs.d (flow.py:7)", binding),
    ]
