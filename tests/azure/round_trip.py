"""A job there and back: the plan of a file, and the plan of the REST body that the real client sends for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from commands import small_runtime
from fake.fixtures import fresh
from fake.library import Library
from fake.rest import read_rest
from fake.server import Server
from fake.service import FakeAzure

from allranks.azure.changes import place
from allranks.plan import digest
from allranks.plan.graph import DoWhile, Graph, Node, ParallelFor, Pipeline, Plan, Step, Sweep
from allranks.plan.ports import Input, Value
from allranks.plan.ports import Path as DataPath
from allranks.plan.reader import read_job
from allranks.plan.reader.pipeline import without_compute
from allranks.plan.walk import walk
from allranks.sdk import python_file, session


@dataclass(frozen=True)
class Shared:
    """A service with a client of it."""

    service: FakeAzure
    client: Any


@pytest.fixture(scope="module")
def azure(azure_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """One service for all, which uploads code once, with little of the runtime; it has the environments cpu:1 and
    other:2, and runs nothing."""
    from azure.ai.ml.entities import Environment

    folder = tmp_path_factory.mktemp("azure")
    with pytest.MonkeyPatch.context() as patch, fresh(azure_server, folder) as service:
        small_runtime(folder, patch)
        service.executes = False
        client = service.client(show_progress=False)
        for name, version in (("cpu", "1"), ("other", "2")):
            client.environments.create_or_update(Environment(name=name, version=version, image="ubuntu:22.04"))
        yield Shared(service, client)


def comparable(plan: Plan) -> Plan:
    """A plan without what the wire does not carry.

    - the folder of a snapshot, of which the digest counts;
    - names that the SDK makes up when it submits: the job's and the experiment's;
    - what is declared of the pipeline's own inputs beyond a value: ranges, choices, whether optional; and the order;
    - the folder into which data was uploaded, of which the content counts.
    """
    graph = _graph(plan.graph)
    return replace(
        plan,
        name="",
        experiment="",
        graph=replace(
            graph,
            inputs=tuple(sorted((_bare(port) for port in graph.inputs), key=lambda port: port.name)),
            outputs=tuple(sorted(graph.outputs, key=lambda output: output.name)),
        ),
    )


def _graph(graph: Graph) -> Graph:
    return replace(graph, nodes=tuple(map(_node, graph.nodes)), inputs=tuple(map(_port, graph.inputs)))


def _node(node: Node) -> Node:
    if isinstance(node, Step):
        code = node.code and replace(node.code, folder="")
        environment = node.environment
        if environment.version:  # the client registers it, and the step refers to it
            environment = replace(environment, context="", dockerfile="", folder="")
        return replace(node, code=code, environment=environment, inputs=tuple(map(_port, node.inputs)))
    if isinstance(node, Pipeline):
        return replace(node, graph=_graph(node.graph), inputs=tuple(map(_port, node.inputs)))
    if isinstance(node, (DoWhile, ParallelFor, Sweep)):
        body: Any = _node(node.body)
        return replace(node, body=body)
    return node


def _bare(port: Input) -> Input:
    return replace(port, minimum=None, maximum=None, enum=(), optional=False)


def _port(port: Input) -> Input:
    return replace(port, value=_content(port.value))


def _content(value: Value | None) -> Value | None:
    if isinstance(value, DataPath) and Path(value.path).exists():
        return DataPath(digest.of_path(Path(value.path)))
    return value


def there_and_back(azure: Shared, path: Path, folder: Path, values: Mapping[str, str]) -> tuple[Plan, Plan]:
    """The plan of the job in a file, and that of the body that the real client sends for it."""
    from allranks.plan import reader

    with session.session(), python_file.importable(path):
        file = reader._open(path, None, None)
        job = file.build(reader._converted(file, values))
        plan = read_job(job, folder / "dsl")
        if without_compute(job):  # as `submit --compute`
            place(job, "cpu-cluster")
        name = azure.client.jobs.create_or_update(job).name
    body = {"name": name, "properties": azure.service.jobs[name].properties}
    back = read_rest(body, Library(azure.service, folder / "files"), folder / "rest")
    return comparable(plan), comparable(back)


def check_round_trip(
    azure: Shared, path: Path, folder: Path, values: Mapping[str, str] = MappingProxyType({}), nameless: bool = False
) -> None:
    """nameless: whether components have no names on the wire: a job has none, and a pipeline in YAML drops them"""
    plan, back = there_and_back(azure, path, folder, values)
    if nameless:
        plan, back = (replace(side, graph=_nameless(side.graph)) for side in (plan, back))
    here, there = dict(_walked(plan.graph)), dict(_walked(back.graph))
    assert list(there) == list(here)
    for path_in_plan, node in here.items():
        assert there[path_in_plan] == node, path_in_plan
    assert back == plan


def _walked(graph: Graph) -> Iterator[tuple[str, Node]]:
    """The nodes by their paths, the innermost first: what they differ in is told of the smallest that does."""
    return reversed([(path, node) for path, node, _ in walk(graph)])


def _nameless(graph: Graph) -> Graph:
    return replace(graph, nodes=tuple(map(_nameless_node, graph.nodes)))


def _nameless_node(node: Node) -> Node:
    if isinstance(node, Step):
        return replace(node, component="", version="")
    if isinstance(node, Pipeline):
        return replace(node, component="", version="", graph=_nameless(node.graph))
    if isinstance(node, (DoWhile, ParallelFor)):
        body = _nameless_node(node.body)
        assert isinstance(body, (Step, Pipeline))
        return replace(node, body=body)
    return node
