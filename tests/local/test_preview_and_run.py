"""Dry run and run agree on every path and variable, for pipelines of many shapes."""

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from allranks.contract.launch import Distribution
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.single import Single
from allranks.contract.tensorflow import TensorFlow
from allranks.history.records import RunRecord, Status
from allranks.local import preview
from allranks.local.engine import run
from allranks.local.instances.supervisor import INSTANCE_KINDS
from allranks.local.options import Options
from allranks.plan.graph import DoWhile, Graph, Item, Node, ParallelFor, Pipeline, Plan, Step
from allranks.plan.ports import GraphInput, GraphOutput, Input, Literal, NodeOutput, Output, Text
from allranks.plan.ports import Path as DataPath
from allranks.workspace import Workspace
from plan_findings import check

DISTRIBUTIONS: tuple[tuple[Distribution, int], ...] = (
    (Single(), 1),
    (PyTorch(2), 2),
    (Mpi(2), 1),
    (TensorFlow(worker_count=2), 2),
)
MODES = ("ro_mount", "download", "direct", "rw_mount")
WRITE = (
    "echo 3 > ${{outputs.count}}; echo false > ${{outputs.again}}; echo x > ${{outputs.text}}; "
    "echo x > ${{outputs.out}}/file"
)


@dataclass(frozen=True)
class Shape:
    """What a pipeline is made from: a step, and a second one that reads what the first one wrote.

    modes:  of the second step's inputs: data, what the first step wrote, and a file of it
    path:   where the outputs are wanted
    levels: how many pipeline components are around the second step
    loop:   the loop around these, if any
    """

    modes: tuple[str, str, str]
    output_mode: str
    path: str
    distribution: tuple[Distribution, int]
    levels: int
    loop: str


SHAPES = st.builds(
    Shape,
    modes=st.tuples(*[st.sampled_from(MODES)] * 3),
    output_mode=st.sampled_from(("rw_mount", "upload")),
    path=st.sampled_from(("", "wanted", "${{name}}/${{output_name}}", "pipeline", "node")),
    distribution=st.sampled_from(DISTRIBUTIONS),
    levels=st.integers(0, 2),
    loop=st.sampled_from(("", "do_while", "parallel_for")),
)


def _plan(shape: Shape, folder: Path) -> Plan:
    own = str(folder / shape.path) if shape.path not in ("", "pipeline", "node") else None
    outputs = (
        Output("out", "uri_folder", shape.output_mode),
        Output("text", "uri_file", shape.output_mode),
        Output("count", "integer"),
        Output("again", "boolean"),
    )
    seen = folder / "workspace" / "seen"
    # The second of Bash's arguments is the command as it was filled in.
    record = f"f=$(mktemp {seen}/XXXXXXXX); cp /proc/$$/cmdline $f.command; cp /proc/self/environ $f.environ; rm $f; "
    first = Step("first", record + WRITE, outputs=outputs, deterministic=False)
    names = ("lr", "data", "made", "file", "n", "seed")
    inputs = (
        Input("lr", "number"),
        Input("data", "uri_folder", mode=shape.modes[0]),
        Input("made", "uri_folder", mode=shape.modes[1]),
        Input("file", "uri_file", mode=shape.modes[2]),
        Input("n", "integer"),
        Input("seed", "integer"),
    )
    inside = tuple(replace(port, value=GraphInput(port.name)) for port in inputs)
    distribution, instances = shape.distribution
    node: Step | Pipeline = Step(
        "second",
        record + WRITE + "; : " + " ".join(f"${{{{inputs.{name}}}}}" for name in names),
        inputs=inside,
        outputs=(replace(outputs[0], path=own), *outputs[1:]),
        environment_variables={
            "FIXED": "text",
            "LR": GraphInput("lr"),
            "MIXED": Text(("lr-", GraphInput("lr"), "-", GraphInput("seed"))),
            "PLACE": GraphInput("made"),
            "COUNT": GraphInput("n"),
        },
        distribution=distribution,
        instance_count=instances,
        deterministic=False,
    )
    for level in range(shape.levels):
        passed = tuple(GraphOutput(port.name, NodeOutput(node.name, port.name), port.type) for port in outputs)
        graph = Graph((node,), tuple(replace(port, mode="ro_mount") for port in inputs), passed)
        node = Pipeline(f"level{level}", graph, inputs=inside, outputs=outputs)
    bound = {
        "lr": GraphInput("lr"),
        "data": GraphInput("data"),
        "made": NodeOutput("first", "out"),
        "file": NodeOutput("first", "text"),
        "n": NodeOutput("first", "count"),
        "seed": Literal(7),
    }
    at_node = str(folder / "node") if shape.path == "node" else own if not shape.levels else None
    node = replace(
        node,
        inputs=tuple(replace(port, value=bound[port.name]) for port in inside),
        outputs=(replace(outputs[0], path=at_node), *outputs[1:]),
    )
    if isinstance(node, Step):
        variables = {
            "LR": bound["lr"],
            "PLACE": bound["made"],
            "COUNT": bound["n"],
            "MIXED": Text(("lr-", bound["lr"])),
        }  # type: ignore[arg-type]
        node = replace(node, environment_variables={"FIXED": "text", **variables})  # type: ignore[arg-type]
    last: Node = node
    if shape.loop == "do_while":
        last = DoWhile("loop", node, "again", (("count", "n"),), limit=3)
    elif shape.loop == "parallel_for":
        items = tuple(Item(name, (("seed", Literal(seed)),)) for seed, name in enumerate(("a", "b")))
        last = ParallelFor("loop", node, items, tuple(replace(port, path=None) for port in outputs))
    place = str(folder / "pipeline") if shape.path == "pipeline" else None
    data = folder / "data"
    data.mkdir()
    (data / "numbers.csv").write_text("1,2\n")
    graph = Graph(
        (first, last),
        (Input("lr", "number", Literal(0.5)), Input("data", "uri_folder", DataPath(str(data)), "ro_mount")),
        (GraphOutput("all", NodeOutput(last.name, "out"), path=place),),
    )
    return Plan("p", graph)


def _agree(shape: Shape, kind: str) -> None:
    # Below the workspace, which an instance of the rack sees although its /tmp is its own.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = _plan(shape, folder)
        assume(not check(plan))
        workspace = Workspace(folder / "workspace")
        shown = preview.previews(plan, workspace, INSTANCE_KINDS[kind])
        seen = workspace.root / "seen"
        seen.mkdir(parents=True)
        record = run(plan, workspace, Options(instances=kind, slots=8))
        assert record.status is Status.COMPLETED, record.verdict
        assert set(shown) <= {step.name for step in record.steps if step.kind == "command"}
        got = [_variables(file) for file in seen.glob("*.environ")]
        commands = {
            _variables(file.with_suffix(".environ"))["AZUREML_RUN_ID"]: file.read_bytes().decode().split("\0")[2]
            for file in seen.glob("*.command")
        }
        for path, step in shown.items():
            fill = _filler(record)
            job = step.ranks[0][1]["AZUREML_RUN_ID"].replace("RUN", record.id, 1)
            assert _plain(commands[job], kind) == _plain(fill(step.command), kind)
            ranks = [_compared(one, kind) for one in got if one["AZUREML_RUN_ID"] == job]
            expected = [
                _compared({key: fill(value) for key, value in variables.items()}, kind) for _, variables in step.ranks
            ]
            assert len(ranks) == len(expected)
            for one in expected:
                nearest = min(ranks, key=lambda rank: len(one.items() - rank.items()))
                assert {key: nearest.get(key) for key in one} == one, path
                assert {key for key in nearest if key.startswith("AZUREML_")} <= one.keys(), path
                ranks.remove(nearest)


def _filler(record: RunRecord) -> Callable[[str], str]:
    """Fill in what is known only once the pipeline runs: the run's id, and what other steps wrote."""

    def written(found: re.Match[str]) -> str:
        path, _, name = found["output"].rpartition(".")
        output = next(output for output in record.step(path).outputs if output.name == name)
        text = output.path if output.value is None else output.value
        return f"/{Path(text).name}" if found["slash"] else text

    def fill(text: str) -> str:
        return re.sub(r"\bRUN\b|RUN(?=_)", record.id, re.sub(r"(?P<slash>/?)<(?P<output>[\w.\[\]]+)>", written, text))

    return fill


def _variables(file: Path) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in file.read_bytes().decode().split("\0") if entry)
    return {name: value for name, _, value in pairs}


def _compared(variables: dict[str, str], kind: str) -> dict[str, str]:
    unknown = {"MASTER_PORT"} if kind == "loopback" else set()
    return {name: _plain(value, kind) for name, value in variables.items() if name not in unknown}


def _plain(text: str, kind: str) -> str:
    """Paths on an instance differ by its number alone; on loopback ports are free ones."""
    text = re.sub(r"/instances/\d+/", "/instances/0/", text)
    return re.sub(r"(127\.0\.0\.\d+):\d+", r"\1:PORT", text) if kind == "loopback" else text


# Without shrinking: an example is a run of a second.
@settings(max_examples=3, phases=[Phase.generate])
@given(SHAPES)
def test_on_loopback(shape: Shape) -> None:
    _agree(shape, "loopback")


@settings(max_examples=1, phases=[Phase.generate])
@given(SHAPES)
def test_on_the_rack(rack_works: bool, shape: Shape) -> None:
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    _agree(shape, "rack")
