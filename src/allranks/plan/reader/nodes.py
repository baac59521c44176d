"""Read the nodes of a pipeline, or a single component or step, as a graph, recursively."""

import contextlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from allranks.errors import Level, Location, Problem
from allranks.plan.graph import DoWhile, Graph, Node, ParallelFor, Pipeline, Plan, StandIn, Step, Sweep
from allranks.plan.ports import PRIMITIVES, GraphInput, GraphOutput, Input, Literal, NodeOutput
from allranks.plan.reader import command_step, control_flow, registered_component, stand_in, step_ports, sweep
from allranks.plan.reader.context import Context, pipeline_output, value_of
from allranks.plan.reader.settings import STAND_IN, guessed_type
from allranks.plan.values import with_bound_artifacts
from allranks.sdk.compilation import component_request, node_request
from allranks.sdk.paths import shown
from allranks.sdk.request import ComponentRequest, NodeRequest, not_run_name
from allranks.sdk.yaml_lines import line_of


def read_graph(
    owner: ComponentRequest, inputs: tuple[Input, ...], context: Context, *, first: str = "", last: str = ""
) -> Graph:
    """Return the graph of a pipeline with these inputs. Add the problems of its nodes to the context.

    first, last: the nodes that run before and after all others, if any
    """
    loops = control_flow.bodies(owner.nodes)
    read = {name: read_node(name, node, owner, context) for name, node in owner.nodes.items() if name not in loops}
    nodes = [node for node in read.values() if node is not None]
    if loops:
        nodes = [control_flow.with_loops_for_bodies(node, loops) for node in nodes]
    nodes = stand_in.complete(with_bound_artifacts(nodes), context)
    ordered = in_order(nodes, Graph(tuple(nodes), first=first, last=last).needs)
    graph = Graph(ordered, inputs, tuple(_outputs(owner, ordered, loops, context)), first, last)
    return _with_assets(graph, {each.name: each.asset for each in graph.outputs if each.asset})


def _with_asset_names(node: Node, assets: Mapping[str, str]) -> Node:
    """Return a node whose outputs are registered as assets by the steps that write them."""
    if isinstance(node, Pipeline):
        return replace(node, graph=_with_assets(node.graph, assets))
    if isinstance(node, (DoWhile, ParallelFor, Sweep)):
        body = _with_asset_names(node.body, assets)
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
        _with_asset_names(node, {source.name: asset for source, asset in sources.items() if source.node == node.name})
        for node in graph.nodes
    )
    return replace(graph, nodes=tuple(nodes)) if sources else graph


def read_node(name: str, node: NodeRequest, owner: ComponentRequest | None, context: Context) -> Node | None:
    """Return a node. An unsupported node, or one for which the user provides a folder, becomes a stand-in.

    owner: the pipeline that contains it; None for a standalone job

    Add problems and return None if it cannot be read.
    """
    component = node.component if isinstance(node.component, ComponentRequest) else None
    special = "a flow" if component is not None and component.type.startswith("promptflow") else ""  # in a Parallel
    if component is not None and (component.spec.get("properties") or {}).get("azureml.pipelines.dynamic"):
        special = "a @dynamic pipeline of mldesigner, which the service completes,"
    folder = stand_in.folder_of(name, context)
    is_known = node.type in (*STEP_READERS, *LOOP_READERS, "if_else")
    is_import = node.type == "data_transfer" and node.body.get("task") != "copy_data"  # or an export
    runs_here = is_known and not special and not is_import
    if not runs_here or (folder is not None and node.type != "if_else"):
        what = "" if runs_here else special or not_run_name(node.type)
        return stand_in.read(name, node, folder, context, what)
    if node.problems:
        context.problems += node.problems
        return None
    before = len(context.problems)
    found = _read(name, node, owner, context)
    if len(context.problems) == before:  # an error of a setting explains more than the warning that it is not sent
        context.problems += node.warnings
    return found


def _read(name: str, node: NodeRequest, owner: ComponentRequest | None, context: Context) -> Node | None:
    if node.type == "if_else":
        return control_flow.condition(name, node, context)
    if node.type in LOOP_READERS:
        body = _loop_body(name, node, owner, context)
        return None if body is None else LOOP_READERS[node.type](name, node, body, context)
    component = registered_component.component_of(node, context.place(name), context)
    if component is None:
        return stand_in.read(name, node, None, context, "") if stand_in.is_drawn(node, context) else None
    return STEP_READERS[node.type](name, node, component, context)


def _loop_body(
    name: str, node: NodeRequest, owner: ComponentRequest | None, context: Context
) -> Step | Pipeline | None:
    """Return the body of a loop. Add problems and return None if it cannot be read."""
    body, nodes = control_flow.body_of(node), owner.nodes if owner is not None else {}
    if body not in nodes:
        found = f"{node.body.get('body')} is not a step of the pipeline"
        context.problems.append(Problem(context.place(name).key("body"), found, "${{parent.jobs.NAME}}"))
        return None
    read = read_node(body, nodes[body], owner, context)
    if isinstance(read, StandIn):
        found = f"{read.what or 'a node that a folder stands in for'} cannot be the body of a loop on this machine"
        expected = "a command or a pipeline component"
        fix = f"let a folder stand in for the loop: {STAND_IN}{context.path}{name}=FOLDER"
        context.problems.append(Problem(str(context.place(name)), found, expected, fix, level=Level.MACHINE))
        return None
    assert read is None or isinstance(read, (Step, Pipeline))
    return read


def _pipeline(name: str, node: NodeRequest, component: ComponentRequest, context: Context) -> Pipeline:
    place = context.place(name)
    step_ports.refuse_unknown(node, component, place, context)
    bound = step_ports.inputs(node, component, place, context)
    values = _known_values(component, bound, context)
    inner = replace(context, path=f"{context.path}{name}.", values=values, base=component.base)
    component_name, version = command_step.identity(component)
    outputs = step_ports.outputs(node, component, context)
    graph = read_graph(component, declared_inputs(component, {}, inner), inner)
    return Pipeline(
        name=name,
        graph=_with_assets(graph, {port.name: port.asset for port in outputs if port.asset}),
        component=component_name,
        version=version,
        display_name=str(node.body.get("display_name") or component.spec.get("display_name") or ""),
        description=str(component.spec.get("description") or ""),
        inputs=bound,
        outputs=outputs,
        location=place.location,
    )


STEP_READERS: dict[str, Callable[[str, NodeRequest, ComponentRequest, Context], Node]] = {
    "command": command_step.read,
    "parallel": command_step.read_parallel,
    "pipeline": _pipeline,
    "data_transfer": command_step.read_copy,
    "sweep": sweep.read,
}
"""Functions that read a node with a component, by its type."""

LOOP_READERS: dict[str, Callable[[str, NodeRequest, Step | Pipeline, Context], Node | None]] = {
    "do_while": control_flow.do_while,
    "parallel_for": control_flow.parallel_for,
}
"""Functions that read a loop with a body, by its type."""


def _known_values(component: ComponentRequest, bound: tuple[Input, ...], context: Context) -> dict[str, Any]:
    """Return the values of a component's inputs, as far as they are known before the run."""
    values = {name: declared["default"] for name, declared in component.inputs.items()}
    for port in bound:
        if isinstance(port.value, Literal):
            values[port.name] = port.value.value
        elif isinstance(port.value, GraphInput):
            values[port.name] = context.values.get(port.value.name)
        elif port.value is not None:
            values[port.name] = None
    return values


def declared_inputs(
    owner: ComponentRequest, given: Mapping[str, Any], context: Context, at: str = ""
) -> tuple[Input, ...]:
    """Return the inputs of a graph, each with its value or default.

    given: the values of a job's inputs, as of `JobRequest`
    at:    the file, to append to the place of messages
    """
    used = types_by_use(owner.nodes)
    return tuple(
        _input(name, owner.inputs.get(name), given.get(name), used.get(name), context, at)
        for name in {**owner.inputs, **given}
    )


_UNDECLARED: Mapping[str, Any] = {
    "type": "",
    "default": None,
    "optional": False,
    "min": None,
    "max": None,
    "enum": (),
    "mode": "",
}


def _input(
    name: str, declared: Mapping[str, Any] | None, given: Any, used: str | None, context: Context, at: str
) -> Input:
    """Return an input of a graph. used: the type of the ports that it is bound to; None if unknown"""
    is_data = isinstance(given, Mapping)
    port = _UNDECLARED if declared is None else declared
    kind: str = port["type"] or (given["job_input_type"] if is_data else "")
    if kind == "integer" and used == "number":
        # A default of 1 does not exclude 0.5.
        kind = used
    if not kind:
        guessed = guessed_type(given)
        # azure-ai-ml sends a number that is not whole to an integer.
        kind = guessed if (used, guessed) == ("integer", "number") else used or guessed
    port = {**port, "type": kind}
    value = step_ports.data_value(given, kind, context)
    value = step_ports.resolved(value, kind, f"{context.path}{name}", f"key inputs.{context.path}{name}{at}", context)
    if value is None and port["default"] is not None:
        value = Literal(port["default"])
    on_azure = step_ports.LEFT_OUT if given == "" else ""
    return replace(step_ports.definition(name, port, value, given["mode"] if is_data else ""), on_azure=on_azure)


def types_by_use(nodes: Mapping[str, NodeRequest]) -> dict[str, str]:
    """Return the types of the ports that a graph's inputs are bound to, which are the types of unannotated inputs.

    Ports of an inline command do not count, because the SDK guesses their types.
    """
    types: dict[str, str] = {}
    for node in nodes.values():
        component = node.component
        if node.type not in ("command", "parallel", "pipeline") or not isinstance(component, ComponentRequest):
            continue
        if component.type in ("command", "parallel") and component.is_anonymous and not component.file:
            continue
        inner: dict[str, str] | None = None
        for port, given in (node.body.get("inputs") or {}).items():
            value = value_of(str(given.get("value") or ""))
            if not isinstance(value, GraphInput) or value.name in types or port not in component.inputs:
                continue
            if kind := component.inputs[port]["type"]:
                types[value.name] = kind
            elif node.type == "pipeline":
                inner = types_by_use(component.nodes) if inner is None else inner
                if port in inner:
                    types[value.name] = inner[port]
    return types


def in_order(nodes: Iterable[Node], needs: Callable[[Node], tuple[str, ...]]) -> tuple[Node, ...]:
    """Return the nodes in topological order, otherwise in the order of definition. Cycles and their dependents come
    last."""
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


def _outputs(
    owner: ComponentRequest, nodes: tuple[Node, ...], loops: Mapping[str, str], context: Context
) -> Iterator[GraphOutput]:
    ports = {(node.name, port.name): port.type for node in nodes for port in node.outputs}
    for name, source in _sources(owner, nodes, loops, context).items():
        output = owner.outputs[name]
        written = ports.get((source.node, source.name))
        # The SDK makes a uri_folder of an output that has only a mode, and the schema has no type for a value.
        is_guessed = written in PRIMITIVES and output["type"] == "uri_folder"
        kind = written if is_guessed else output["type"] or written or "uri_folder"
        path = step_ports.output_location(output["uri"], context) if output["uri"] else None
        yield GraphOutput(name, source, str(kind), path, step_ports.asset_of(output))


def _sources(
    owner: ComponentRequest, nodes: tuple[Node, ...], loops: Mapping[str, str], context: Context
) -> dict[str, NodeOutput]:
    """Return the sources of the graph's outputs. Nodes bind their outputs to them, in YAML and in the DSL."""
    sources: dict[str, NodeOutput] = {}
    names = {node.name for node in nodes}
    for name, node in owner.nodes.items():
        reader = loops.get(name, name)
        if reader not in names:
            continue
        for port, given in (node.body.get("outputs") or {}).items():
            # From a bound output with a mode in a REST body, the SDK creates an Output whose path is the binding.
            target = pipeline_output(str(given.get("value") or given.get("uri") or ""))
            if target is None:
                continue
            if target in owner.outputs:
                sources[target] = NodeOutput(reader, port)
            else:
                known = ", ".join(owner.outputs)
                expected = f"one of {known}" if known else "an output that the pipeline declares"
                where = context.place(name).key(f"outputs.{port}")
                context.problems.append(Problem(where, f"the pipeline has no output {target}", expected))
    for name, output in owner.outputs.items():
        bound = value_of(output["source"])
        if name not in sources and isinstance(bound, NodeOutput):
            sources[name] = replace(bound, node=loops.get(bound.node, bound.node))
    return {name: sources[name] for name in owner.outputs if name in sources}


def read_component(component: Any, spec: Path) -> Plan | None:
    """Return the plan of a component of the SDK: one step for a command component, the nodes for a pipeline component,
    except those that cannot be read here, such as a Spark node; None for other kinds."""

    def locate(path: str) -> Location | None:
        """Return the first line of a node in the file of a pipeline component."""
        keys = [key for name in path.split(".") for key in ("jobs", name)]
        return None if spec.suffix == ".py" else Location(shown(spec), line_of(spec, *keys))

    context = Context(spec.parent, None, {}, locate=locate)
    request = component_request(component, locate)
    if request.type in ("command", "parallel"):
        node = NodeRequest({"type": request.type}, request)
        step = read_node(str(request.spec["name"]), node, None, context)
        assert step is None or isinstance(step, Step)
        return None if step is None else Plan(step.name, Graph((step,)))
    if request.type == "pipeline":
        inputs = declared_inputs(request, {}, context)
        return Plan(str(request.spec["name"]), read_graph(request, inputs, context), source=str(spec))
    return None


def read_step(path: str, node: Any) -> Step | None:
    """Return the step of a node of the SDK, or of a trial of a sweep; None for other kinds, and if its component is not
    on this machine."""
    request = node_request(path, node)
    if request.type not in ("command", "parallel", "sweep"):
        return None
    read = read_node(path, request, None, Context(Path(), None, {}))
    step = read.body if isinstance(read, Sweep) else read
    return step if isinstance(step, Step) else None
