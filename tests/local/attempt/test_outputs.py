"""Where a step's outputs end up, what is recorded of them, and the root of its artifacts as an output."""

import os
from pathlib import Path

import pytest

from allranks.history.records import Status
from allranks.plan.graph import Graph, Item, ParallelFor, Pipeline, Plan, Step
from allranks.plan.ports import GraphInput, GraphOutput, Input, Literal, NodeOutput, Output
from plan_findings import check

FOLDER = Output("out", "uri_folder", "rw_mount")
WRITE = "echo written > ${{outputs.out}}/file"


def _nested(name: str, inner: Step | Pipeline, path: str | None = None, own: str | None = None) -> Pipeline:
    """A pipeline component that passes the output of its only node on.

    path: that the node around it gives; own: that the component gives
    """
    graph = Graph((inner,), outputs=(GraphOutput("out", NodeOutput(inner.name, "out"), path=own),))
    return Pipeline(name, graph, outputs=(Output("out", "uri_folder", "rw_mount", path),))


LEVELS = ("pipeline", "outer-node", "outer-component", "inner-node", "inner-component", "step")


def test_the_path_of_an_output_at_each_level(tmp_path: Path, run_steps) -> None:
    nodes, outputs = [], []
    for level in LEVELS:
        paths = {level: str(tmp_path / level)}
        step = Step("write", WRITE, outputs=(Output("out", "uri_folder", "rw_mount", paths.get("step")),))
        inner = _nested("inner", step, paths.get("inner-node"), paths.get("inner-component"))
        nodes.append(_nested(level, inner, paths.get("outer-node"), paths.get("outer-component")))
        outputs.append(GraphOutput(level, NodeOutput(level, "out"), path=paths.get("pipeline")))
    plan = Plan("p", Graph(tuple(nodes), outputs=tuple(outputs)))
    assert check(plan) == []
    record = run_steps(plan=plan)
    assert record.status is Status.COMPLETED
    assert record.outputs == {level: str(tmp_path / level) for level in LEVELS}
    assert [(tmp_path / level / "file").read_text() for level in LEVELS] == ["written\n"] * len(LEVELS)


def test_an_outer_path_wins(tmp_path: Path, run_steps) -> None:
    inner = _nested("inner", Step("write", WRITE, outputs=(FOLDER,)), own=str(tmp_path / "component"))
    output = GraphOutput("all", NodeOutput("inner", "out"), path=str(tmp_path / "pipeline"))
    plan = Plan("p", Graph((inner,), outputs=(output,)))
    assert check(plan) == []
    assert run_steps(plan=plan).outputs == {"all": str(tmp_path / "pipeline")}
    assert not (tmp_path / "component").exists()


def test_an_output_under_two_names_is_at_the_path_of_one(tmp_path: Path, run_steps) -> None:
    outputs = (
        GraphOutput("a", NodeOutput("write", "out"), path=str(tmp_path / "a")),
        GraphOutput("b", NodeOutput("write", "out")),
    )
    plan = Plan("p", Graph((Step("write", WRITE, outputs=(FOLDER,)),), outputs=outputs))
    assert check(plan) == []
    assert run_steps(plan=plan).outputs == dict.fromkeys("ab", str(tmp_path / "a"))


def test_two_outputs_at_one_path(tmp_path: Path) -> None:
    place = str(tmp_path / "wanted")
    at_place = Output("out", "uri_folder", "rw_mount", place)
    plan = Plan(
        "p",
        Graph(
            (
                Step("one", WRITE, outputs=(at_place,)),
                _nested("nested", Step("two", WRITE, outputs=(FOLDER,)), own=f"{place}/../wanted"),
            )
        ),
    )
    (problem,) = check(plan)
    assert problem.where == "pipeline component nested, key outputs.out"
    assert problem.found == f"{place}/../wanted is also the path of step one, key outputs.out"


def test_iterations_that_run_side_by_side_at_one_path(tmp_path: Path) -> None:
    step = Step("write", WRITE, outputs=(Output("out", "uri_folder", "rw_mount", str(tmp_path / "wanted")),))
    body = Pipeline("body", Graph((step,), (Input("seed", "integer"),)), inputs=(Input("seed", "integer"),))
    items = tuple(Item(str(seed), (("seed", Literal(seed)),)) for seed in (1, 2))
    (problem,) = check(Plan("p", Graph((ParallelFor("loop", body, items),))))
    assert problem.found.endswith("is also the path of the other iterations of loop")


PRIMITIVES = {
    r"3\n": "3",
    r"3\r\n": "3",
    r"3\n\n": "3\n",
    "3": "3",
    r"\n": "",
    "": "",
    r" 3 \n": " 3 ",
    r"a\r\nb\r\n": "a\r\nb",
    r"3\r": "3\r",
}


def test_a_primitive_ends_before_its_last_newline(run_steps) -> None:
    steps = []
    for number, written in enumerate(PRIMITIVES):
        command = f"printf '{written}' > ${{{{outputs.value}}}}"
        read = "printf '%s' \"$VALUE\" > ${{outputs.out}}/file"
        variables = {"VALUE": NodeOutput(f"write{number}", "value")}
        steps += [
            Step(f"write{number}", command, outputs=(Output("value", "string"),)),
            Step(f"read{number}", read, outputs=(FOLDER,), environment_variables=variables),
        ]
    record = run_steps(*steps)
    assert record.status is Status.COMPLETED
    for number, text in enumerate(PRIMITIVES.values()):
        assert record.step(f"write{number}").outputs[0].value == text
        with Path(record.step(f"read{number}").outputs[0].path, "file").open(newline="") as file:
            assert file.read() == text


def test_a_failed_step_keeps_its_files(run_steps) -> None:
    outputs = (FOLDER, Output("count", "integer"), Output("missing", "uri_file", "rw_mount"))
    command = (
        f"{WRITE}; echo 3 > ${{{{outputs.count}}}}; echo x > outputs/report.txt; : ${{{{outputs.missing}}}}; exit 2"
    )
    plan = Plan(
        "p",
        Graph((Step("write", command, outputs=outputs),), outputs=(GraphOutput("all", NodeOutput("write", "out")),)),
    )
    record = run_steps(plan=plan)
    step = record.step("write")
    assert step.status is Status.FAILED
    assert step.artifacts == ["outputs/report.txt"]
    assert [(output.name, output.value) for output in step.outputs] == [("out", None), ("count", "3")]
    assert os.listdir(step.outputs[0].path) == ["file"]
    assert record.outputs == {}  # what a failed step has left is no output of the pipeline


def test_a_try_that_fails_later_has_no_outputs_of_the_one_before(run_steps, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    command = f"[ -e {flag} ] && rm ${{{{outputs.count}}}} || echo 3 > ${{{{outputs.count}}}}; touch {flag}; exit 2"
    record = run_steps(Step("write", command, outputs=(Output("count", "integer"),)), retries=1)
    assert record.step("write").outputs == []


def test_a_declared_output_named_artifacts_is_like_any_other(run_steps) -> None:
    command = "echo private > outputs/log.txt && echo data > ${{outputs.artifacts}}"
    record = run_steps(Step("write", command, outputs=(Output("artifacts", "uri_file"),)))
    assert record.status is Status.COMPLETED, record.verdict
    assert Path(record.step("write").outputs[0].path).read_text() == "data\n"
    assert record.step("write").artifacts == ["outputs/log.txt"]


@pytest.mark.parametrize("mode", ["rw_mount", "upload"])
def test_the_root_of_the_artifacts_is_an_output(kind: str, mode: str, run_steps) -> None:
    record = run_steps(
        Step(
            "write",
            "echo report > outputs/report.txt",
            outputs=(Output("artifacts", "uri_folder", mode, holds_artifacts=True),),
        ),
        Step(
            "read",
            "cat ${{inputs.run}}/outputs/report.txt > ${{outputs.out}}/file",
            inputs=(Input("run", "uri_folder", NodeOutput("write", "artifacts"), "ro_mount"),),
            outputs=(FOLDER,),
        ),
        instances=kind,
    )
    assert record.status is Status.COMPLETED, record.verdict
    assert record.step("write").artifacts == ["outputs/report.txt"]
    assert Path(record.step("write").folder, "outputs/report.txt").read_text() == "report\n"
    assert Path(record.step("read").outputs[0].path, "file").read_text() == "report\n"


def test_bindings_in_environment_variables(run_steps) -> None:
    nodes, outputs = [], []
    for levels in range(3):
        node: Step | Pipeline = Step(
            f"write{levels}",
            'printf "%s %s %s" "$NAME" "$TEXT" "$LITERAL" > ${{outputs.out}}/file',
            outputs=(FOLDER,),
            environment_variables={"NAME": GraphInput("name"), "TEXT": "fixed", "LITERAL": "${{outputs.out}}"},
        )
        for level in range(levels):
            graph = Graph((node,), (Input("name", "string"),), (GraphOutput("out", NodeOutput(node.name, "out")),))
            port = Input("name", "string", GraphInput("name"))
            node = Pipeline(f"level{levels}-{level}", graph, inputs=(port,), outputs=(FOLDER,))
        nodes.append(node)
        outputs.append(GraphOutput(f"all{levels}", NodeOutput(node.name, "out")))
    inputs = (Input("name", "string", Literal("given")),)
    record = run_steps(plan=Plan("p", Graph(tuple(nodes), inputs, tuple(outputs))))
    for place in record.outputs.values():
        assert Path(place, "file").read_text() == "given fixed ${{outputs.out}}"
    assert len(record.outputs) == 3


def test_bindings_in_environment_variables_of_a_loops_body(run_steps) -> None:
    step = Step(
        "body",
        'printf "%s %s" "$SEED" "$NAME" > ${{outputs.out}}/file',
        outputs=(FOLDER,),
        environment_variables={"SEED": GraphInput("seed"), "NAME": GraphInput("name")},
    )
    body = Pipeline(
        "body",
        Graph((step,), (Input("seed", "integer"), Input("name", "string"))),
        inputs=(Input("seed", "integer"), Input("name", "string", GraphInput("name"))),
    )
    items = tuple(Item(str(seed), (("seed", Literal(seed)),)) for seed in (1, 2))
    graph = Graph((ParallelFor("loop", body, items),), (Input("name", "string", Literal("given")),))
    record = run_steps(plan=Plan("p", graph))
    assert record.status is Status.COMPLETED, record.verdict
    for seed in (1, 2):
        output = record.step(f"loop[{seed}].body").outputs[0]
        assert Path(output.path, "file").read_text() == f"{seed} given"
