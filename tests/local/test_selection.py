"""Which steps --from, --only and --until select."""

import pytest

from allranks.errors import InputError
from allranks.local.selection import Mode, Modes, Selection, modes_of
from allranks.plan.graph import DoWhile, Graph, Node, Pipeline, Step
from allranks.plan.ports import GraphInput, GraphOutput, Input, NodeOutput, Output

OUT = (Output("out", "uri_folder", "rw_mount"),)


def step(name: str, *needs: str) -> Step:
    inputs = tuple(Input(need, "uri_folder", NodeOutput(need, "out"), "ro_mount") for need in needs)
    return Step(name, "true", inputs=inputs, outputs=OUT)


def pipeline(name: str, *nodes: Node, needs: str = "") -> Pipeline:
    ports = (Input("data", "uri_folder", NodeOutput(needs, "out"), "ro_mount"),) if needs else ()
    outputs = (GraphOutput("out", NodeOutput(nodes[-1].name, "out")),)
    inner = Graph(nodes, tuple(Input(port.name, port.type) for port in ports), outputs)
    return Pipeline(name, inner, inputs=ports, outputs=OUT)


GRAPH = Graph(
    (
        step("prepare"),
        step("notify"),
        pipeline("tune", step("split"), step("train", "split"), step("score", "train"), needs="prepare"),
        DoWhile("loop", pipeline("body", step("fit")), limit=2),
        step("report", "tune", "loop"),
    )
)

RUN, FRESH, REUSE, EXCLUDED = "run", "fresh", "reuse", "excluded"


def modes(**options: str) -> dict[str, str]:
    selection = Selection(**{name: tuple(paths.split()) for name, paths in options.items()})
    found = modes_of(GRAPH, selection)
    paths = ["prepare", "notify", "tune", "tune.split", "tune.train", "tune.score", "loop[1].fit", "report"]
    return {path: found.at(path).value for path in paths}


@pytest.mark.parametrize(
    ("options", "prepare", "notify", "tune", "split", "train", "score", "loop", "report"),
    [
        ({}, RUN, RUN, RUN, RUN, RUN, RUN, RUN, RUN),
        ({"until": "tune"}, RUN, EXCLUDED, RUN, RUN, RUN, RUN, EXCLUDED, EXCLUDED),
        ({"until": "tune.train"}, RUN, EXCLUDED, RUN, RUN, RUN, EXCLUDED, EXCLUDED, EXCLUDED),
        ({"until": "tune.train report"}, RUN, EXCLUDED, RUN, RUN, RUN, RUN, RUN, RUN),
        ({"only": "report"}, REUSE, EXCLUDED, REUSE, REUSE, REUSE, REUSE, REUSE, FRESH),
        ({"only": "tune.train"}, REUSE, EXCLUDED, RUN, REUSE, FRESH, EXCLUDED, EXCLUDED, EXCLUDED),
        ({"only": "prepare report"}, FRESH, EXCLUDED, REUSE, REUSE, REUSE, REUSE, REUSE, FRESH),
        ({"start": "tune"}, REUSE, RUN, FRESH, FRESH, FRESH, FRESH, RUN, FRESH),
        ({"start": "tune.train"}, REUSE, RUN, RUN, REUSE, FRESH, FRESH, RUN, FRESH),
        ({"start": "tune.train prepare"}, FRESH, RUN, FRESH, FRESH, FRESH, FRESH, RUN, FRESH),
        (
            {"start": "loop", "until": "loop"},
            EXCLUDED,
            EXCLUDED,
            EXCLUDED,
            EXCLUDED,
            EXCLUDED,
            EXCLUDED,
            FRESH,
            EXCLUDED,
        ),
        (
            {"start": "tune.train", "until": "tune.train"},
            REUSE,
            EXCLUDED,
            RUN,
            REUSE,
            FRESH,
            EXCLUDED,
            EXCLUDED,
            EXCLUDED,
        ),
    ],
)
def test_modes(
    options: dict[str, str],
    prepare: str,
    notify: str,
    tune: str,
    split: str,
    train: str,
    score: str,
    loop: str,
    report: str,
) -> None:
    assert list(modes(**options).values()) == [prepare, notify, tune, split, train, score, loop, report]


@pytest.mark.parametrize(
    ("options", "found", "fix"),
    [
        ({"until": "trian"}, "the pipeline has no step trian", ""),
        ({"start": "tune.trian"}, "tune has no step trian", "did you mean --from tune.train?"),
        ({"only": "loop[0].fit"}, "loop contains no step that can be selected", "select it as a whole: --only loop"),
        ({"only": "train.x"}, "the pipeline has no step train", ""),
        ({"until": ""}, "", ""),
    ],
)
def test_a_path_that_is_no_step_is_a_problem(options: dict[str, str], found: str, fix: str) -> None:
    if not found:
        assert not Selection()
        return
    with pytest.raises(InputError) as caught:
        modes(**options)
    (problem,) = caught.value.problems
    assert (problem.found, problem.fix) == (found, fix)


def test_only_excludes_the_other_options() -> None:
    with pytest.raises(InputError, match="--only"):
        modes_of(GRAPH, Selection(start=("prepare",), only=("report",)))


def test_a_node_without_a_mode_has_that_of_the_node_around_it() -> None:
    by_path = Modes({"loop": Mode.REUSE})
    assert by_path.at("loop[a.b].train") is Mode.REUSE
    assert by_path.at("looper") is Mode.RUN


def test_a_binding_to_an_input_needs_nothing() -> None:
    graph = Graph((Step("a", "true", inputs=(Input("x", "string", GraphInput("x")),)),), (Input("x", "string"),))
    assert modes_of(graph, Selection(only=("a",))).at("a") is Mode.FRESH
