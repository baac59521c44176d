"""A plan is stored and shown without its secrets, and runs with them."""

import json
import pathlib

import pytest

from allranks.contract.mpi import Mpi
from allranks.errors import InputError
from allranks.plan import codec, literals
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import GraphInput, Input, Literal, NodeOutput, Path, Text
from allranks.plan.reader import read_plan, settings
from allranks.plan.secrets import hidden, restored, shown

KEY = "c2VjcmV0" * 10 + "abcdef" + "=="

PLAN = Plan(
    "p",
    Graph(
        (
            Step(
                "a",
                "login --name hunter2-of-hf; train --key ${{inputs.storage_key}} --hf-token=${{inputs.hf_token}}",
                environment_variables={
                    "HF_TOKEN": "hunter2-of-hf",
                    "A_TOKEN": "${{parent.inputs.hf_token}}",
                    "STORE": f"AccountName=a;AccountKey={KEY};End=x",
                    "OTHER/~_KEY": "hunter3-of-other",
                    "A": "1",
                },
                inputs=(
                    Input("storage_key", "string", Literal("hunter4-of-storage")),
                    Input("hf_token", "string", GraphInput("hf_token")),
                    Input("data_token", "uri_file", NodeOutput("b", "hf_token")),
                    Input("text_token", "string", Text(("hunter6-", GraphInput("hf_token")))),
                    Input("data", "uri_file", Path("/data/a.csv")),
                ),
                distribution=Mpi(2),
            ),
            Step("b", "true"),
        ),
        inputs=(Input("hf_token", "string", Literal("hunter5-of-input")), Input("pin_key", "integer", Literal(7))),
    ),
)


def test_no_secret_is_left_in_the_text() -> None:
    found = hidden(codec.dumps(PLAN))
    assert "hunter" not in found.plan
    assert KEY not in found.plan
    assert found.known >= {"hunter2-of-hf", KEY, "hunter3-of-other", "hunter4-of-storage", "hunter5-of-input"}
    step = codec.loads(found.plan).graph.by_name["a"]
    assert step.environment_variables == {
        "HF_TOKEN": "***",
        "A_TOKEN": "${{parent.inputs.hf_token}}",
        "STORE": "AccountName=a;AccountKey=***;End=x",
        "OTHER/~_KEY": "***",
        "A": "1",
    }
    assert step.command == "login --name ***; train --key ${{inputs.storage_key}} --hf-token=${{inputs.hf_token}}"
    # What is bound stays, and so does all else.
    assert [port.value for port in step.inputs[1:]] == [
        GraphInput("hf_token"),
        NodeOutput("b", "hf_token"),
        Text(("***", GraphInput("hf_token"))),
        Path("/data/a.csv"),
    ]
    assert step.distribution == Mpi(2)


def test_it_comes_back_as_it_was() -> None:
    found = hidden(codec.dumps(PLAN))
    assert codec.loads(restored(found.plan, found.values)) == PLAN


def test_a_plan_without_secrets_is_its_own_text() -> None:
    text = codec.dumps(Plan("p", Graph((Step("a", "true", environment_variables={"A": "1"}),))))
    assert (hidden(text).plan, hidden(text).values) == (text, {})
    assert restored(text, {}) == text


def test_a_plan_whose_secrets_are_gone_does_not_run() -> None:
    found = hidden(codec.dumps(Plan("p", Graph((Step("a", "true", environment_variables={"HF_TOKEN": "hunter2"}),)))))
    with pytest.raises(InputError) as told:
        restored(found.plan, {})
    assert "HF_TOKEN" in str(told.value)
    assert "hunter2" not in str(told.value)


def test_a_request_to_azure_is_shown_without_them() -> None:
    body = {
        "name": "train_token",
        "properties": {
            "inputs": {"hf_token": {"jobInputType": "literal", "value": "hunter2"}, "lr": {"value": "0.1"}},
            "jobs": {"a": {"environmentVariables": {"HF_TOKEN": "hunter2", "A": "1"}, "type": "command"}},
        },
    }
    assert "hunter2" not in json.dumps(shown(body))
    assert shown(body)["properties"]["jobs"]["a"] == {
        "environmentVariables": {"HF_TOKEN": "***", "A": "1"},
        "type": "command",
    }
    assert shown(body)["properties"]["inputs"]["lr"] == {"value": "0.1"}


JOB = """
command: echo
environment: {image: "python:3.12"}
compute: local
environment_variables: {HF_TOKEN: [hunter2]}
limits: {timeout: 1}
"""


def test_a_message_about_a_secret_does_not_quote_it(tmp_path: pathlib.Path) -> None:
    port = Input("api_key", "integer", enum=("1", "2"), minimum=3)
    messages = [str(settings.wrong("api_key", "hunter2", "a number"))]
    messages += map(str, literals.wrong("step train", port, "hunter2", "change it"))
    (tmp_path / "job.yml").write_text(JOB)
    with pytest.raises(InputError) as refused:
        read_plan(str(tmp_path / "job.yml"), {}, tmp_path / "snapshots")
    messages.append(str(refused.value))
    assert ["***" in message for message in messages] == [True] * 3
    assert not [message for message in messages if "hunter2" in message]
    assert "0.5" in str(settings.wrong("lr", "0.5", "a whole number"))
