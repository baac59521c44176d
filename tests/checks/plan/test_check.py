"""What the SDK lets through is found before anything runs, with the step and the key."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.tensorflow import TensorFlow
from allranks.contract.variables import ELASTIC_INSTANCES
from allranks.errors import InputError, Location, Problem
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import GraphInput, GraphOutput, Input, Literal, NodeOutput, Output, Text
from allranks.plan.ports import Path as DataPath
from plan_findings import check

DATA = Input("data", "uri_folder", GraphInput("data"), "ro_mount")


TRAIN = Step(
    "train",
    "x ${{inputs.data}} ${{inputs.lr}} $[[${{inputs.epochs}}]] ${{outputs.model}} ${{outputs.score}}",
    inputs=(
        DATA,
        Input("lr", "number", GraphInput("lr"), minimum=0, maximum=1),
        Input("epochs", "integer", None, optional=True, minimum=1),
    ),
    outputs=(Output("model", "uri_folder", "rw_mount"), Output("score", "number")),
    distribution=PyTorch(2),
    instance_count=2,
    location=Location("p.py", 7),
)


TEST = Step(
    "test",
    "x ${{inputs.model}} ${{inputs.least}}",
    inputs=(
        Input("model", "uri_folder", NodeOutput("train", "model"), "ro_mount"),
        Input("least", "number", NodeOutput("train", "score")),
        Input("name", "string", Text(("run-", GraphInput("lr")))),
    ),
    outputs=(Output("report", "uri_file", "rw_mount"),),
    location=Location("p.py", 9),
)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "file").touch()
    inputs = (Input("data", "uri_folder", DataPath(str(tmp_path / "data"))), Input("lr", "number", Literal(0.1)))
    outputs = (GraphOutput("best", NodeOutput("train", "model")),)
    return Plan("digits", Graph((TRAIN, TEST), inputs, outputs), source=str(tmp_path / "p.py"))


def test_a_sound_plan(plan: Plan) -> None:
    assert check(plan) == []


def with_graph(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, graph=replace(plan.graph, **changes))


def with_step(plan: Plan, name: str, **changes: Any) -> Plan:
    steps = tuple(replace(step, **changes) if step.name == name else step for step in plan.graph.nodes)
    return with_graph(plan, nodes=steps)


def with_port(plan: Plan, name: str, **changes: Any) -> Plan:
    """The plan with another port of that name in the step train."""
    ports = tuple(
        replace(port, **changes) if port.name == name else port for port in plan.graph.by_name["train"].inputs
    )
    return with_step(plan, "train", inputs=ports)


def with_input(plan: Plan, name: str, **changes: Any) -> Plan:
    """The plan with another input of the pipeline of that name."""
    return with_graph(plan, inputs=tuple(replace(p, **changes) if p.name == name else p for p in plan.graph.inputs))


Change = Callable[[Plan], Plan]


def step(**changes: Any) -> Change:
    return lambda plan: with_step(plan, "train", **changes)


def port(name: str, **changes: Any) -> Change:
    return lambda plan: with_port(plan, name, **changes)


def value(name: str, value: Any) -> Change:
    return lambda plan: with_input(plan, name, value=Literal(value))


def output(**changes: Any) -> Change:
    return lambda plan: with_step(plan, "train", outputs=(replace(TRAIN.outputs[0], **changes), TRAIN.outputs[1]))


ONE_PROBLEM: dict[str, tuple[Change, str, str]] = {
    # layouts
    "instances": (step(instance_count=-5), "step train, key resources.instance_count (p.py:7)", "-5"),
    "processes": (
        step(distribution=PyTorch(0)),
        "step train, key distribution.process_count_per_instance (p.py:7)",
        "0",
    ),
    "timeout": (step(timeout=-3.0), "step train, key limits.timeout (p.py:7)", "-3"),
    "shared memory": (step(shm_size=0), "step train, key resources.shm_size (p.py:7)", "0"),
    "no range": (
        step(environment_variables={ELASTIC_INSTANCES: "three"}),
        f"step train, key environment_variables.{ELASTIC_INSTANCES} (p.py:7)",
        "'three'",
    ),
    "too many for the least": (
        step(
            environment_variables={ELASTIC_INSTANCES: "1:2"}, instance_count=2, distribution=TensorFlow(worker_count=2)
        ),
        f"step train, key environment_variables.{ELASTIC_INSTANCES} (p.py:7)",
        "1:2, and distribution.worker_count 2 on 1 instance",
    ),
    # commands
    "no command": (step(command=" \n"), "step train, key command (p.py:7)", "it is empty"),
    "unknown input": (
        step(command="x ${{inputs.dat}}"),
        "step train, key command (p.py:7)",
        "${{inputs.dat}}: there is no such input",
    ),
    "unknown output": (
        step(command="x ${{outputs.nope}}"),
        "step train, key command (p.py:7)",
        "${{outputs.nope}}: there is no such output",
    ),
    "unknown expression": (
        step(command="x ${{parent.inputs.lr}}"),
        "step train, key command (p.py:7)",
        "${{parent.inputs.lr}} is unknown in a command",
    ),
    "optional, but always used": (
        step(command="x ${{inputs.epochs}}"),
        "step train, key command (p.py:7)",
        "${{inputs.epochs}} is optional and has no value, but is always used",
    ),
    "never closed": (step(command="x $[[--fast"), "step train, key command (p.py:7)", "a $[[ is never closed"),
    # literals
    "text for a number": (port("lr", value=Literal("much")), "step train, key inputs.lr (p.py:7)", "'much'"),
    "above": (port("lr", value=Literal(1.5)), "step train, key inputs.lr (p.py:7)", "1.5"),
    "below": (port("lr", value=Literal("-0.5")), "step train, key inputs.lr (p.py:7)", "'-0.5'"),
    "fraction": (port("epochs", value=Literal(2.5)), "step train, key inputs.epochs (p.py:7)", "2.5"),
    "choice": (
        port("epochs", type="string", value=Literal("smal"), enum=("small", "large")),
        "step train, key inputs.epochs (p.py:7)",
        "'smal'",
    ),
    "no binding": (
        port("epochs", value=Literal("${{parent.outputs.x}}")),
        "step train, key inputs.epochs (p.py:7)",
        "${{parent.outputs.x}} is not a binding",
    ),
    "pipeline's own value": (value("lr", "much"), "pipeline digits, key inputs.lr (p.py)", "'much'"),
    "pipeline's value in the step": (
        value("lr", 7),
        "step train, key inputs.lr (p.py:7)",
        "input lr of the pipeline is 7",
    ),
    # bindings
    "nothing given": (
        port("lr", value=None),
        "step train, key inputs.lr (p.py:7)",
        "the input is required, but nothing is bound to it",
    ),
    "no such pipeline input": (
        port("lr", value=GraphInput("rl")),
        "step train, key inputs.lr (p.py:7)",
        "the pipeline has no input rl",
    ),
    "no such output": (
        lambda plan: with_step(
            plan, "test", command="x", inputs=(replace(TEST.inputs[0], value=NodeOutput("train", "modle")),)
        ),
        "step test, key inputs.model (p.py:9)",
        "step train has no output modle",
    ),
    "a folder for a number": (
        lambda plan: with_step(plan, "test", command="x", inputs=(Input("n", "number", NodeOutput("train", "model")),)),
        "step test, key inputs.n (p.py:9)",
        "output model of step train is a uri_folder, and is bound to a number",
    ),
    "a folder inside a number": (
        port("lr", value=Text(("1", GraphInput("data")))),
        "step train, key inputs.lr (p.py:7)",
        "input data of the pipeline is a uri_folder, and is bound to a number",
    ),
    "no such pipeline output": (
        lambda plan: with_graph(plan, outputs=(GraphOutput("best", NodeOutput("trian", "model")),)),
        "pipeline digits, key outputs.best (p.py)",
        "there is no step trian",
    ),
    "another type of pipeline output": (
        lambda plan: with_graph(plan, outputs=(GraphOutput("best", NodeOutput("train", "score")),)),
        "pipeline digits, key outputs.best (p.py)",
        "output score of step train is a number, and is returned as a uri_folder",
    ),
    # data
    "missing": (
        lambda plan: with_input(plan, "data", value=DataPath(os.path.abspath("nope"))),
        "pipeline digits, key inputs.data (p.py)",
        "nope does not exist",
    ),
    "a file": (
        lambda plan: with_input(plan, "data", value=DataPath(os.path.abspath("file"))),
        "pipeline digits, key inputs.data (p.py)",
        "file is a file",
    ),
    "a folder": (
        lambda plan: with_port(plan, "data", type="uri_file", value=DataPath(os.path.abspath("data"))),
        "step train, key inputs.data (p.py:7)",
        "data is a folder",
    ),
    "far away": (
        lambda plan: with_input(plan, "data", value=DataPath("adl://x/y")),
        "pipeline digits, key inputs.data (p.py)",
        "adl://x/y cannot be read on this machine",
    ),
    "output over a file": (
        lambda plan: output(path=os.path.abspath("file"))(plan),
        "step train, key outputs.model (p.py:7)",
        "file is a file",
    ),
    "output's path": (
        output(path="/x/${{nope}}"),
        "step train, key outputs.model (p.py:7)",
        "${{nope}} is unknown in a path",
    ),
    # names
    "name of a variable": (
        step(environment_variables={"A=B": "1"}),
        "step train, key environment_variables.A=B (p.py:7)",
        "'A=B' cannot be the name of a variable",
    ),
    "two steps of one name": (
        lambda plan: with_graph(plan, nodes=(*plan.graph.nodes, TEST)),
        "pipeline digits, key jobs (p.py)",
        "the name test appears 2 times",
    ),
    "a step's name": (
        lambda plan: with_graph(plan, nodes=(*plan.graph.nodes, Step("../x", "ls"))),
        "pipeline digits, key jobs (p.py)",
        "'../x' cannot be a name",
    ),
    "no steps": (
        lambda plan: with_graph(plan, nodes=(), outputs=()),
        "pipeline digits, key jobs (p.py)",
        "the pipeline has no steps",
    ),
}


@pytest.mark.parametrize(("change", "where", "found"), ONE_PROBLEM.values(), ids=ONE_PROBLEM)
def test_one_problem(plan: Plan, change: Change, where: str, found: str) -> None:
    (problem,) = check(change(plan))
    assert (problem.where, problem.found) == (where, found)


FITTING: dict[str, Change] = {
    "text that is a number": port("lr", value=Literal("1e-3")),
    "a whole number for a number": port("lr", value=Literal(1)),
    "text that is whole": port("epochs", value=Literal("3")),
    "true as text": port("epochs", type="boolean", value=Literal("True"), minimum=None),
    "a number for a text": port("epochs", type="string", value=Literal(3)),
    "a choice that is a number": port("epochs", value=Literal(3), enum=("3", "4")),
    "an optional input of the pipeline": lambda plan: with_port(
        with_graph(plan, inputs=(*plan.graph.inputs, Input("n", "integer", optional=True))),
        "epochs",
        value=GraphInput("n"),
    ),
    "any data for any data": lambda plan: with_port(plan, "data", type="mltable"),
    "a path inside a text": port("epochs", type="string", value=Text((GraphInput("data"), "/x"))),
    "a file of a model": lambda plan: with_input(
        plan, "data", type="custom_model", value=DataPath(os.path.abspath("file"))
    ),
    "an output in a datastore": output(path="azureml://datastores/x/paths/${{name}}"),
    "an output where nothing is": output(path="/nowhere/${{name}}/${{output_name}}"),
    "an unused input of the pipeline": lambda plan: with_graph(
        plan, inputs=(*plan.graph.inputs, Input("n", "integer"))
    ),
    "a shell's own brackets": step(command="if [[ -e x ]]; then ls; fi"),
}


@pytest.mark.parametrize("change", FITTING.values(), ids=FITTING)
def test_no_problem(plan: Plan, change: Change) -> None:
    assert check(change(plan)) == []


def test_an_input_of_the_pipeline_that_is_not_given_is_told_with_the_way_to_give_it(plan: Plan) -> None:
    (problem,) = check(with_input(plan, "data", value=None))
    assert problem == Problem(
        "step train, key inputs.data (p.py:7)",
        "it needs the pipeline's input data, which has no value",
        "a uri_folder",
        "set it: --set data=PATH",
    )


def test_what_was_probably_meant(plan: Plan) -> None:
    (problem,) = check(with_port(plan, "data", value=GraphInput("dat")))
    assert (problem.expected, problem.fix) == ("one of data, lr", "did you mean data?")
    # A longer name is another thing: no hint is better than a wrong one.
    (problem,) = check(with_port(plan, "data", value=GraphInput("data_id")))
    assert (problem.rule, problem.fix) == ("dangling-binding", "declare data_id in the inputs of the pipeline")


@pytest.mark.parametrize(
    ("distribution", "instances", "key"),
    [
        (TensorFlow(worker_count=5), 2, "distribution.worker_count"),
        (TensorFlow(parameter_server_count=-1), 2, "distribution.parameter_server_count"),
        (Mpi(-1), 1, "distribution.process_count_per_instance"),
    ],
)
def test_layouts_of_other_distributions(plan: Plan, distribution: Any, instances: int, key: str) -> None:
    places = [
        problem.where
        for problem in check(with_step(plan, "train", distribution=distribution, instance_count=instances))
    ]
    assert f"step train, key {key} (p.py:7)" in places


def test_problems_come_in_the_order_of_the_steps(plan: Plan) -> None:
    broken = with_step(with_step(plan, "test", command="", timeout=-1.0), "train", command="", shm_size=-1)
    assert [problem.where for problem in check(broken)] == [
        "step train, key command (p.py:7)",
        "step train, key resources.shm_size (p.py:7)",
        "step test, key command (p.py:9)",
        "step test, key limits.timeout (p.py:9)",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_data_that_may_not_be_read(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "data").chmod(0)
    (problem,) = check(plan)
    (tmp_path / "data").chmod(0o755)
    assert problem.found == "data cannot be read: permission denied"


def test_a_problem_reads_well(plan: Plan) -> None:
    error = InputError.of(check(with_port(plan, "epochs", value=Literal(2.5))))
    assert str(error) == (
        "step train, key inputs.epochs (p.py:7): 2.5\n  expected: a whole number\n  fix: change epochs\n"
        "  more: allranks why wrong-type"
    )
