"""Read the nodes of a pipeline, or a component or a step by itself, as a graph, recursively."""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from allranks.errors import Problem
from allranks.plan.graph import DoWhile, Graph, Location, Node, ParallelFor, Pipeline, Plan, Step, Sweep
from allranks.plan.output_paths import with_bound_artifacts
from allranks.plan.ports import PRIMITIVES, GraphInput, GraphOutput, Input, Literal, NodeOutput
from allranks.plan.reader import (
    bound_settings,
    command_step,
    control_flow,
    registered_component,
    stand_in,
    step_ports,
    sweep,
)
from allranks.plan.reader.context import Context, plain, value_of
from allranks.plan.reader.settings import guessed_type
from allranks.sdk import internals
from allranks.sdk.paths import shown
from allranks.sdk.yaml_lines import line_of

ReadNode = Callable[[str, Any, Context], Node | None]
"""Returns the node with a name, or adds problems and returns None."""


def read_graph(owner: Any, inputs: tuple[Input, ...], context: Context, *, first: str = "", last: str = "") -> Graph:
    """Return the graph of a PipelineJob or a PipelineComponent, whose inputs have been read.

    first, last: the nodes that run before and after all others, if any

    Add every problem of its nodes to the context.
    """
    loops = control_flow.bodies(owner.jobs)
    read = {name: read_node(name, entity, context) for name, entity in owner.jobs.items() if name not in loops}
    nodes = [node for node in read.values() if node is not None]
    if loops:
        nodes = [control_flow.with_loops_for_bodies(node, loops) for node in nodes]
    nodes = stand_in.complete(with_bound_artifacts(nodes), context)
    ordered = in_order(nodes, Graph(tuple(nodes), first=first, last=last).needs)
    graph = Graph(ordered, inputs, tuple(_outputs(owner, ordered, loops, context)), first, last)
    return _with_assets(graph, {each.name: each.asset for each in graph.outputs if each.asset})


def _named(node: Node, assets: Mapping[str, str]) -> Node:
    """Return a node whose outputs are registered as assets, by the steps within it that write them."""
    if isinstance(node, Pipeline):
        return replace(node, graph=_with_assets(node.graph, assets))
    if isinstance(node, (DoWhile, ParallelFor, Sweep)):
        body = _named(node.body, assets)
        assert isinstance(body, (Step, Pipeline))
        return replace(node, body=body)  # type: ignore[arg-type]
    if not isinstance(node, Step):
        return node
    ports = (replace(port, asset=port.asset or assets.get(port.name, "")) for port in node.outputs)
    return replace(node, outputs=tuple(ports))


def _with_assets(graph: Graph, assets: Mapping[str, str]) -> Graph:
    """Return a graph whose outputs are registered. assets: the asset of each output that has one"""
    sources = {each.source: assets[each.name] for each in graph.outputs if each.name in assets}
    nodes = (
        _named(node, {source.name: asset for source, asset in sources.items() if source.node == node.name})
        for node in graph.nodes
    )
    return replace(graph, nodes=tuple(nodes)) if sources else graph


def read_node(name: str, entity: Any, context: Context) -> Node | None:
    """Return a node. One of a kind that the local engine does not run, or with a folder of the user's, is a stand-in.

    Add problems and return None if it cannot be read.
    """
    kind = type(entity).__name__
    component = internals.component(entity)
    special = "a flow" if type(component).__name__ == "FlowComponent" else ""  # in a Parallel
    if (getattr(component, "properties", None) or {}).get("azureml.pipelines.dynamic"):
        special = "a @dynamic pipeline of mldesigner, which the service completes,"
    runs_here = kind in READERS and not special
    folder = stand_in.folder_of(name, context)
    if runs_here and (folder is None or kind == "ConditionNode"):
        if wrong := list(bound_settings.problems(entity, context.place(name))):
            context.problems += wrong
            return None
        before = len(context.problems)
        node = READERS[kind](name, entity, context)
        if len(context.problems) == before:  # an error on a setting says more than that it cannot be sent
            context.problems += bound_settings.unsent(entity, context.place(name))
        return node
    what = "" if runs_here else special or stand_in.what_is(entity)
    return stand_in.read(name, entity, folder, context, what)


def _pipeline(name: str, entity: Any, context: Context) -> Pipeline | None:
    place = context.place(name)
    if not registered_component.attach(entity, place, context):
        return None
    component = entity.component
    step_ports.refuse_unknown(entity, place, context)
    bound = step_ports.inputs(entity, place, context)
    path = f"{context.path}{name}."
    base = Path(component.base_path) if component.base_path else context.base
    inner = context.within(path, _known_values(component, bound, context), base)
    component_name, version = command_step.identity(component)
    outputs = step_ports.outputs(entity, context)
    graph = read_graph(component, declared_inputs(component, {}, inner), inner)
    return Pipeline(
        name=name,
        graph=_with_assets(graph, {port.name: port.asset for port in outputs if port.asset}),
        component=component_name,
        version=version,
        display_name=str(entity.display_name or component.display_name or ""),
        description=str(entity.description or component.description or ""),
        inputs=bound,
        outputs=outputs,
        location=place.location,
    )


READERS: dict[str, ReadNode] = {
    "Command": command_step.read,
    "Parallel": command_step.read_parallel,
    "Pipeline": _pipeline,
    "DataTransferCopy": command_step.read_copy,
    "ConditionNode": control_flow.condition,
    "DoWhile": lambda name, entity, context: control_flow.do_while(name, entity, context, read_node),
    "ParallelFor": lambda name, entity, context: control_flow.parallel_for(name, entity, context, read_node),
    "Sweep": sweep.read,
}
"""Functions that read a node, by its class in the SDK."""


def _known_values(component: Any, bound: tuple[Input, ...], context: Context) -> dict[str, Any]:
    """Return the values of a component's inputs, as far as they are known before the run."""
    values = {name: plain(meta.default) for name, meta in step_ports.flat_definitions(component.inputs)}
    for port in bound:
        if isinstance(port.value, Literal):
            values[port.name] = port.value.value
        elif isinstance(port.value, GraphInput):
            values[port.name] = context.values.get(port.value.name)
        elif port.value is not None:
            values[port.name] = None
    return values


def declared_inputs(owner: Any, given: Mapping[str, Any], context: Context, at: str = "") -> tuple[Input, ...]:
    """Return the inputs of a graph, each with its value or default.

    given: the values of a PipelineJob's inputs
    at:    the file, for messages
    """
    declared = dict(step_ports.flat_definitions(owner.inputs))
    used = types_by_use(owner.jobs)
    return tuple(
        _input(name, declared.get(name), given.get(name), used.get(name), context, at) for name in {**declared, **given}
    )


def _input(name: str, meta: Any, data: Any, used: str | None, context: Context, at: str) -> Input:
    from azure.ai.ml import Input as SdkInput

    kind = meta.type if meta is not None else None
    if not kind and isinstance(data, SdkInput):
        kind = data.type
    if kind == "integer" and used == "number":
        # A default of 1 does not exclude 0.5.
        kind = used
    if not kind:
        value = plain(data)
        guessed = "string" if value is None else guessed_type(value)
        # azure-ai-ml sends a number that is not whole to an integer.
        kind = guessed if (used, guessed) == ("integer", "number") else used or guessed
    port = meta if meta is not None else SdkInput(type=kind)
    value = step_ports.data_value(data, kind, context)
    value = step_ports.resolved(value, kind, f"{context.path}{name}", f"key inputs.{context.path}{name}{at}", context)
    if value is None and port.default is not None:
        value = Literal(plain(port.default))
    mode = data.mode if isinstance(data, SdkInput) else None
    return replace(
        step_ports.definition(name, port, value, mode),
        type=str(kind),
        on_azure=step_ports.LEFT_OUT if step_ports.is_empty(data) else "",
        mode="" if kind in PRIMITIVES else str(mode or port.mode or "ro_mount"),
    )


def types_by_use(nodes: Mapping[str, Any]) -> dict[str, str]:
    """Return the types of the ports that a graph's inputs are bound to. Inputs without annotation have these types.

    Ports of an inline command do not count, because the SDK guesses their types.
    """
    types: dict[str, str] = {}
    for node in nodes.values():
        if type(node).__name__ not in ("Command", "Parallel", "Pipeline") or _is_inline(node.component):
            continue
        inner: dict[str, str] | None = None
        for port_name, port in step_ports.flat(node.inputs):
            name = _bound(port)
            if not name or name in types:
                continue
            declared = internals.declaration(port)
            if declared is not None and isinstance(declared.type, str):
                types[name] = declared.type
            elif type(node).__name__ == "Pipeline":
                inner = types_by_use(node.component.jobs) if inner is None else inner
                if port_name in inner:
                    types[name] = inner[port_name]
    return types


def _is_inline(component: Any) -> bool:
    if isinstance(component, str):
        return True
    is_own: bool = component.type in ("command", "parallel") and internals.is_anonymous(component)
    return is_own and not internals.source_path(component)


def _bound(port: Any) -> str | None:
    """Return the graph's input that is the whole value of a port, or None."""
    data = plain(internals.data(port))
    value = value_of(data) if isinstance(data, str) else None
    return value.name if isinstance(value, GraphInput) else None


def in_order(nodes: Iterable[Node], needs: Callable[[Node], tuple[str, ...]]) -> tuple[Node, ...]:
    """Return the nodes in topological order, otherwise in the order of definition. Cycles, and nodes that need them,
    come last."""
    defined = list(nodes)
    places = {node.name: place for place, node in enumerate(defined)}
    sorter = TopologicalSorter(
        {place: [places[name] for name in needs(node) if name in places] for place, node in enumerate(defined)}
    )
    with contextlib.suppress(CycleError):  # the sorter still yields the nodes that need no cycle
        sorter.prepare()
    ready = sorted(sorter.get_ready())
    order: dict[int, None] = {}
    while ready:
        order[place := heapq.heappop(ready)] = None
        sorter.done(place)
        for other in sorter.get_ready():
            heapq.heappush(ready, other)
    return tuple(defined[place] for place in {**order, **dict.fromkeys(range(len(defined)))})


def _outputs(owner: Any, nodes: tuple[Node, ...], loops: Mapping[str, str], context: Context) -> Iterator[GraphOutput]:
    from azure.ai.ml import Output as SdkOutput

    ports = {(node.name, port.name): port.type for node in nodes for port in node.outputs}
    for name, source in _sources(owner, nodes, loops, context).items():
        output = owner.outputs[name]
        data = output if isinstance(output, SdkOutput) else internals.data(output)
        path = data.path if isinstance(data, SdkOutput) else None
        declared = data.type if isinstance(data, SdkOutput) else internals.port_type(output)
        written = ports.get((source.node, source.name))
        # The SDK makes a uri_folder of an output that has only a mode, and the schema has no type for a value.
        kind = written if written in PRIMITIVES and declared == "uri_folder" else declared or written or "uri_folder"
        place = step_ports.output_location(str(path), context) if path else None
        yield GraphOutput(name, source, str(kind), place, step_ports.asset_of(output))


def _sources(owner: Any, nodes: tuple[Node, ...], loops: Mapping[str, str], context: Context) -> dict[str, NodeOutput]:
    """Return the graph's outputs with their sources. In YAML and in the DSL, nodes bind their outputs to them."""
    sources: dict[str, NodeOutput] = {}
    names = {node.name for node in nodes}
    for name, entity in owner.jobs.items():
        node = loops.get(name, name)
        if node not in names or not hasattr(type(entity), "outputs"):
            continue
        for port, target in step_ports.pipeline_outputs(entity):
            if target in owner.outputs:
                sources[target] = NodeOutput(node, port)
            else:
                known = ", ".join(owner.outputs)
                expected = f"one of {known}" if known else "an output that the pipeline declares"
                where = context.place(name).key(f"outputs.{port}")
                context.problems.append(Problem(where, f"the pipeline has no output {target}", expected))
    for name, output in owner.outputs.items():
        # A node's output that is returned under two names is bound to only one of them.
        bound = internals.bound_output(output)
        if name in sources or bound is None:
            continue
        node = internals.owner(bound)
        if owner.jobs.get(node.name) is node:
            sources[name] = NodeOutput(loops.get(node.name, node.name), internals.port_name(bound))
    return {name: sources[name] for name in owner.outputs if name in sources}


def read_component(component: Any, spec: Path) -> Plan | None:
    """Return the plan of a component of the SDK: that of one step for a command component, of its nodes for a pipeline
    component, without those that cannot be read here, such as a Spark node; None for other kinds."""
    from azure.ai.ml.entities import Command, CommandComponent, Parallel, ParallelComponent, PipelineComponent

    context = Context(spec.parent, None, {}, locate=lambda path: _location(spec, path))
    if isinstance(component, (CommandComponent, ParallelComponent)):
        node = Command if isinstance(component, CommandComponent) else Parallel
        step = read_node(component.name, node(component=component), context)
        assert step is None or isinstance(step, Step)
        return None if step is None else Plan(component.name, Graph((step,)))
    if isinstance(component, PipelineComponent):
        inputs = declared_inputs(component, {}, context)
        return Plan(component.name, read_graph(component, inputs, context), source=str(spec))
    return None


def read_step(path: str, node: Any) -> Step | None:
    """Return a node of the SDK that runs a command, or a sweep as one of its trials; None for other kinds, and if its
    component is not on this machine."""
    if type(node).__name__ not in ("Command", "Parallel", "Sweep"):
        return None
    read = read_node(path, node, Context(Path(), None, {}))
    step = read.body if isinstance(read, Sweep) else read
    return step if isinstance(step, Step) else None


def _location(spec: Path, path: str) -> Location | None:
    """Return where a node of a pipeline component begins in its file."""
    if spec.suffix == ".py":
        return None
    keys = [key for name in path.split(".") for key in ("jobs", name)]
    return Location(shown(spec), line_of(spec, *keys))
