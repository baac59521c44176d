import json
from collections.abc import Callable
from typing import Any

import pytest

from allranks.cli.views.plan import expression, plan_json, print_plan, rank_variables
from allranks.contract.launch import Launch, Process
from allranks.contract.produce import environment, processes
from allranks.contract.pytorch import PyTorch
from allranks.contract.tensorflow import TensorFlow
from allranks.errors import Location
from allranks.local.preview import StepPreview
from allranks.plan.environment import registered
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import GraphInput, GraphOutput, Input, Literal, NodeOutput, Output, Path, Text, Value

Screens = Callable[..., Any]


def make_plan(processes_of_train: int = 2) -> Plan:
    prepare = Step(
        "prepare",
        "python prepare.py --source ${{inputs.source}}",
        component="prepare_images",
        inputs=(Input("source", "string", GraphInput("source")),),
        outputs=(Output("images", "uri_folder", "rw_mount"),),
        location=Location("pipelines/digits.py", 12),
    )
    train = Step(
        "train",
        "python train.py",
        environment=registered("pytorch-cpu"),
        inputs=(Input("data", "uri_folder", NodeOutput("prepare", "images"), "ro_mount"),),
        outputs=(Output("model", "uri_folder"),),
        distribution=PyTorch(processes_of_train),
        instance_count=2,
        timeout=3600,
        environment_variables={"OMP_NUM_THREADS": "1"},
    )
    return Plan(
        "digits",
        Graph(
            (prepare, train),
            (Input("source", "string", Literal("digits")),),
            (GraphOutput("model", NodeOutput("train", "model")),),
        ),
        source="pipelines/digits.py",
    )


def make_previews(plan: Plan, **commands: str) -> dict[str, StepPreview]:
    found = {}
    for step in plan.graph.nodes:
        addresses = tuple(f"10.0.0.{index + 4}" for index in range(step.instance_count))
        launch = Launch(step.distribution, addresses, tuple(f"instance-{index}" for index in range(len(addresses))))
        ranks = tuple((process, environment(launch, process)) for process in processes(launch))
        found[step.name] = StepPreview(commands.get(step.name, step.command), ranks)
    return found


def test_the_plan_says_of_every_step_what_will_be_done(screen: Screens) -> None:
    plan = make_plan()
    console = screen()
    print_plan(console, plan, make_previews(plan, prepare="python prepare.py --source digits"))
    text = console.text.getvalue()
    for said in (
        "1  prepare  1 process",
        "pipelines/digits.py:12",
        "python prepare.py --source ${{inputs.source}}",
        "python prepare.py --source digits",
        "2  train  pytorch 2 x 2",
        "${{parent.jobs.prepare.outputs.images}}",
        "environment  azureml:pytorch-cpu\n    here       Python 3.",
        "1 h 00 min",
        "OMP_NUM_THREADS",
        "${{parent.jobs.train.outputs.model}}",
    ):
        assert said in text
    assert text.index("1  prepare") < text.index("2  train")


def test_what_ranks_share_is_said_once_and_what_differs_for_each(screen: Screens) -> None:
    plan = make_plan()
    console = screen()
    print_plan(console, plan, make_previews(plan))
    rows = {words[0]: words[1:] for line in console.lines if (words := line.split())}
    assert rows["WORLD_SIZE"] == ["4"]
    assert console.text.getvalue().count("MASTER_ADDR ") == 1
    assert rows["NODE_RANK"] == ["0", "0", "1", "1"]
    assert rows["RANK"] == ["0", "1", "2", "3"]
    assert rows["LOCAL_RANK"] == ["0", "1", "0", "1"]


def test_a_long_value_that_differs_is_written_out_for_each_rank(screen: Screens) -> None:
    step = Step("train", "python train.py", distribution=TensorFlow(worker_count=2), instance_count=2)
    plan = Plan("digits", Graph((step,)))
    console = screen()
    previews = make_previews(plan)
    print_plan(console, plan, previews)
    for _, variables in previews["train"].ranks:
        assert variables["TF_CONFIG"] in console.text.getvalue()


def test_a_variable_that_only_some_ranks_have_belongs_to_those() -> None:
    variables = rank_variables([(Process(0, 0, 0), {"A": "1", "B": "2"}), (Process(1, 1, 0), {"A": "1"})])
    assert variables.shared == {"A": "1"}
    assert variables.own == {"B": ("2", None)}


def test_json_holds_the_plan_and_each_ranks_environment() -> None:
    plan = make_plan()
    previews = make_previews(plan, prepare="python prepare.py --source digits")
    read = json.loads(plan_json(plan, previews))
    prepare, train = read["steps"]
    assert prepare["rendered_command"] == "python prepare.py --source digits"
    assert prepare["inputs"][0]["value"] == "${{parent.inputs.source}}"
    assert read["inputs"][0]["value"] == "digits"
    assert train["needs"] == ["prepare"]
    assert (train["instance_count"], train["process_count_per_instance"]) == (2, 2)
    for rank, (process, variables) in zip(train["ranks"], previews["train"].ranks, strict=True):
        assert rank["rank"] == process.rank
        assert train["shared_variables"] | rank["variables"] == variables


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (Literal(True), "true"),
        (Literal(0.5), "0.5"),
        (Path("/data"), "/data"),
        (GraphInput("lr"), "${{parent.inputs.lr}}"),
        (
            Text(("lr-", GraphInput("lr"), "-", NodeOutput("a", "b"))),
            "lr-${{parent.inputs.lr}}-${{parent.jobs.a.outputs.b}}",
        ),
    ],
)
def test_a_binding_is_written_as_azure_ml_writes_it(value: Value | None, expected: str) -> None:
    assert expression(value) == expected
