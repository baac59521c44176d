"""The meaning of each edit on a graph, and the errors of impossible ones."""

import pytest

from allranks.errors import InputError
from allranks_studio.documents import edits
from allranks_studio.documents.canvas import Graph, InputPort, Layout, Lock, Node, OutputPort, Port
from allranks_studio.documents.comparison import difference
from allranks_studio.documents.edits import Edit, Expression, FromInput, FromOutput, Literal, Value
from allranks_studio.documents.intended import intended, named
from allranks_studio.documents.rewiring import node_at


def step(name: str, around: str = "", **values: Value | None) -> Node:
    data = InputPort("data", "uri_folder", value=values.get("data"))
    rate = InputPort("rate", "number", default=0.1, minimum=0.0, maximum=1.0, value=values.get("rate"))
    kind = InputPort("kind", "string", optional=True, enum=("a", "b"), value=values.get("kind"))
    outputs = (Port("model", "uri_folder"), Port("score", "number"))
    path = f"{around}.{name}" if around else name
    layout = Layout("pytorch", Literal(1), Literal(2))
    return Node(path, name, "command", f"make_{name}", inputs=(data, rate, kind), outputs=outputs, layout=layout)


INNER = Graph(
    inputs=(InputPort("folder", "uri_folder"),),
    outputs=(OutputPort("best", "uri_folder", FromOutput("try_it", "model")),),
    nodes=(step("try_it", "tune", data=FromInput("folder")),),
)
TUNE = Node(
    "tune",
    "tune",
    "pipeline",
    inputs=(InputPort("folder", "uri_folder", value=FromOutput("prepare", "model")),),
    outputs=(Port("best", "uri_folder"),),
    graph=INNER,
)
GRAPH = Graph(
    inputs=(InputPort("source", "uri_folder"), InputPort("lr", "number", value=Literal(0.5))),
    outputs=(OutputPort("result", "uri_folder", FromOutput("train", "model")),),
    nodes=(
        step("prepare", data=FromInput("source")),
        TUNE,
        step("train", data=FromOutput("tune", "best"), rate=FromInput("lr"), kind=Literal("a")),
    ),
)
NEW = step("evaluate")


def value(graph: Graph, path: str, name: str) -> Value | None:
    return next(port.value for port in node_at(graph, path).inputs if port.name == name)


def after(*all_edits: Edit) -> Graph:
    graph = GRAPH
    for edit in all_edits:
        graph = intended(graph, edit, NEW)
    return graph


def test_an_added_step_is_connected() -> None:
    bound: dict[str, Value] = {"data": FromOutput("train", "model"), "rate": Literal(0.2)}
    edit = named(GRAPH, edits.AddNode("", "project:train/component.yaml", "", bound))
    assert isinstance(edit, edits.AddNode)
    assert edit.name == "train_step"
    assert value(after(edit), "train_step", "data") == FromOutput("train", "model")
    assert isinstance(short := named(GRAPH, edits.AddNode("", "library:train_image_classifier")), edits.AddNode)
    assert short.name == "train_2"
    nested = after(edits.AddNode("tune", "library:x", "other", {"data": FromInput("folder")}))
    assert node_at(nested, "tune.other").component == "make_evaluate"


def test_deleting_disconnects_around_nested_pipelines_too() -> None:
    graph = after(edits.DeleteNode("tune.try_it"))
    assert (graph.nodes[1].outputs, value(graph, "train", "data")) == ((), None)
    graph = after(edits.DeleteNode("train"))
    assert graph.outputs == ()
    graph = after(edits.DeleteInput("tune", "folder"))
    assert (node_at(graph, "tune").inputs, value(graph, "tune.try_it", "data")) == ((), None)
    assert after(edits.DeleteOutput("", "result")).outputs == ()


def test_renaming_follows_in_bindings() -> None:
    graph = after(edits.RenameNode("tune", "search"), edits.RenameNode("train", "fit"))
    assert value(graph, "fit", "data") == FromOutput("search", "best")
    assert graph.outputs[0].value == FromOutput("fit", "model")
    assert node_at(graph, "search.try_it").path == "search.try_it"


def test_wrapping_keeps_the_bindings() -> None:
    graph = after(edits.WrapNodes(("tune", "train"), "whole"))
    whole = node_at(graph, "whole")
    assert [(port.name, port.value) for port in whole.inputs] == [
        ("model", FromOutput("prepare", "model")),
        ("lr", FromInput("lr")),
    ]
    assert value(graph, "whole.train", "data") == FromOutput("tune", "best")
    assert value(graph, "whole.tune", "folder") == FromInput("model")
    assert graph.outputs[0].value == FromOutput("whole", "model")
    assert node_at(graph, "whole.tune.try_it").kind == "command"


def test_layout_compute_ports_and_copies() -> None:
    count = edits.AddInput("", "count", "integer", 2)
    graph = after(
        count,
        edits.SetLayout("train", FromInput("count"), Literal(4)),
        edits.SetCompute("train", "gpus"),
        edits.DuplicateNode("train", "again"),
        edits.SetDistribution("again", "none"),
        edits.ResetInput("again", "kind"),
        edits.AddOutput("tune", "score", "try_it", "score"),
    )
    train, again = node_at(graph, "train"), node_at(graph, "again")
    assert (train.layout, train.compute) == (Layout("pytorch", FromInput("count"), Literal(4)), "gpus")
    assert again.layout == Layout("none", FromInput("count"), Literal(1))
    assert value(graph, "again", "kind") is None
    assert [port.name for port in node_at(graph, "tune").outputs] == ["best", "score"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (edits.DeleteNode("trian"), "did you mean train"),
        (edits.RenameNode("train", "prepare"), "the name prepare exists"),
        (edits.RenameNode("train", "lr"), "the name lr exists"),
        (edits.RenameNode("train", "Train-1"), "cannot be a name"),
        (edits.RenameNode("train", "class"), "cannot be a name"),
        (edits.AddOutput("", "result", "train", "score"), "the name result exists"),
        (edits.AddOutput("", "other", "train", "model"), "is output result already"),
        (edits.SetInput("train", "nothing", Literal(1)), "one of data, rate, kind"),
        (edits.SetInput("prepare", "data", FromOutput("train", "model")), "would wait for each other"),
        (edits.WrapNodes(("prepare", "train"), "both"), "would wait for each other"),
        (edits.SetLayout("tune", Literal(1), Literal(1)), "has no instances"),
        (edits.SetDistribution("train", "nccl"), "one of mpi"),
    ],
)
def test_impossible_edits_are_refused(edit: Edit, message: str) -> None:
    with pytest.raises(InputError, match=message):
        intended(GRAPH, edit)


def test_locked_steps_and_code_that_names_a_step_are_refused() -> None:
    locked = step("locked", data=Expression("prepare.outputs.model if big else None"))
    text = "Each call is made in a loop: edit line 9."
    graph = Graph(nodes=(step("prepare"), Node(**{**vars(locked), "lock": Lock("loop", text, 9)})))
    with pytest.raises(InputError, match=r"line 9: .* edit line 9"):
        intended(graph, edits.RenameNode("locked", "free"))
    with pytest.raises(InputError, match="prepare, which would be moved"):
        intended(graph, edits.WrapNodes(("prepare",), "inner"))


def test_differences_are_told_in_lines() -> None:
    assert difference(GRAPH, GRAPH) == []
    default = after(edits.SetInput("prepare", "rate", Literal(0.1)))
    assert difference(GRAPH, default) == []
    changed = after(
        edits.RenameNode("prepare", "get"),
        edits.SetInput("train", "rate", Literal(1)),
        edits.SetLayout("train", Literal(2), Literal(2)),
        edits.DeleteNode("tune.try_it"),
    )
    assert sorted(difference(GRAPH, changed)) == [
        "input data of train: not set, not output best of tune",
        "input folder of tune: output model of get, not output model of prepare",
        "input rate of train: 1.0, not input lr",
        "layout of train: pytorch 2 x 2, not pytorch 1 x 2",
        "output best of tune: it would be missing",
        "step get: it would appear",
        "step prepare: it would be missing",
        "step try_it of tune: it would be missing",
    ]
