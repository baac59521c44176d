"""Random sequences of edits over pipelines of this repository, and of public ones."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from edit_sequences import Named, Outlined, an_edit, pick
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allranks_studio.documents.canvas import Graph, Node
from allranks_studio.documents.document import language_of
from allranks_studio.documents.placing import placed
from allranks_studio.documents.reading import Reader

ROOT = Path(__file__).parents[4]
OWN = (
    "packages/allranks-studio/tests/documents/pipelines/blocks.yml",
    "packages/allranks-studio/tests/documents/pipelines/flow.yml",
)


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    reader = Reader()
    yield reader
    reader.close()


@pytest.fixture(scope="module")
def own(reader: Reader) -> Named[tuple[str, Graph]]:
    """The texts and graphs of this repository's pipelines."""
    return Named({name: read(reader, ROOT / name) for name in OWN})


def read(reader: Reader, path: Path) -> tuple[str, Graph]:
    data = path.read_bytes()
    reading = reader.read(path, data)
    assert reading.graph is not None, reading.findings
    text = data.decode()
    return text, placed(reading.graph, language_of(path).outline(text))


@pytest.fixture(scope="module")
def items(own: Named[tuple[str, Graph]]) -> Named[Node]:
    """The library's components as nodes, by their names in the palette."""
    nodes = [node for _, graph in own.values() for node in graph.nodes if node.component.startswith("allranks_")]
    return Named({f"library:{node.component.removeprefix('allranks_')}": unset(node) for node in nodes})


def unset(node: Node) -> Node:
    inputs = tuple(replace(port, value=None, locked="") for port in node.inputs)
    return replace(node, inputs=inputs, compute="", after=(), lock=None)


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_outline_after_edits_is_the_intended_one(
    data: st.DataObject, own: Named[tuple[str, Graph]], items: Named[Node]
) -> None:
    name = pick(data.draw, sorted(own))
    text = Outlined(ROOT / name, *own[name], items)
    for _ in range(data.draw(st.integers(1, 8))):
        text.edit(an_edit(data.draw, text.graph, items))
