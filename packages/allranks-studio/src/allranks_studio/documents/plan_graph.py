"""The graph that the designer draws, of a plan and azure-ai-ml's job."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from allranks.errors import Location, Problem
from allranks.hardware import sizes
from allranks.plan import graph as plans
from allranks.plan import ports
from allranks.plan.reader.context import value_of
from allranks.sdk import internals
from allranks.sdk.entity_ports import plain
from allranks_studio.documents.canvas import Graph, InputPort, Layout, Node, OutputPort, Port
from allranks_studio.documents.edits import Expression, FromInput, FromOutput, Literal, Value

Entities = Mapping[str, Any]


def graph_of(plan: plans.Plan, job: Any, file: str) -> Graph:
    """Return the graph of a plan. job: azure-ai-ml's, from which it was read; file: whose lines nodes have"""
    jobs = getattr(job, "jobs", None)
    entities = jobs if isinstance(jobs, dict) else {node.name: job for node in plan.graph.nodes}
    return _Reader(file).graph(plan.graph, entities, getattr(job, "component", None), "")


def compute_of(job: Any) -> str:
    """Return the default compute of a pipeline, or the compute of another job."""
    settings = getattr(job, "settings", None)
    return _compute(getattr(settings, "default_compute", None) or getattr(job, "compute", None))


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file

    def graph(self, graph: plans.Graph, entities: Entities, owner: Any, prefix: str) -> Graph:
        """Return a graph of a plan. owner: the SDK's component; prefix: of the paths of its nodes"""
        bodies = {node.name: node.body.name for node in graph.nodes if isinstance(node, plans.DoWhile)}
        nodes = []
        for node in graph.nodes:
            gates = tuple(name for name, _ in graph.conditions.get(node.name, ()))
            after = tuple(bodies.get(name, name) for name in dict.fromkeys((*node.after, *gates)))
            if isinstance(node, (plans.DoWhile, plans.ParallelFor)):
                # As in the file, the body is a node of its own, which others read after a do_while loop.
                nodes += [self.node(node.body, entities, bodies, prefix, after), self.loop(node, prefix)]
            else:
                nodes.append(self.node(node, entities, bodies, prefix, after))
        outputs = (
            OutputPort(
                each.name, each.type, FromOutput(bodies.get(each.source.node, each.source.node), each.source.name)
            )
            for each in graph.outputs
        )
        return Graph(tuple(_inputs(graph.inputs, owner, bodies)), tuple(outputs), tuple(nodes))

    def node(
        self, node: plans.Node, entities: Entities, bodies: Mapping[str, str], prefix: str, after: tuple[str, ...]
    ) -> Node:
        entity = entities.get(node.name)
        step = node.body if isinstance(node, plans.Sweep) else node
        component = internals.component(entity) if entity is not None else None
        inner = getattr(component, "jobs", None)
        line = self.line(node.location)
        return Node(
            path=f"{prefix}{node.name}",
            name=node.name,
            kind="parallel" if isinstance(step, plans.Step) and step.parallel else node.kind,
            component=node.component,
            version=getattr(step, "version", ""),
            display_name=node.display_name,
            description=getattr(step, "description", ""),
            inputs=tuple(_inputs(step.inputs, component, bodies)),
            outputs=tuple(_outputs(node.outputs, component)),
            layout=_layout(step, entity) if isinstance(step, plans.Step) else None,
            compute=_compute(vars(entity).get("_compute") or getattr(entity, "compute", None)) if entity else "",
            environment=step.environment.name if isinstance(step, plans.Step) else "",
            note=_note(node, bodies),
            first=line,
            last=line,
            graph=self.graph(node.graph, inner if isinstance(inner, dict) else {}, component, f"{prefix}{node.name}.")
            if isinstance(node, plans.Pipeline)
            else None,
            after=after,
        )

    def loop(self, node: plans.DoWhile | plans.ParallelFor, prefix: str) -> Node:
        """Return the node of a loop, which waits for its body."""
        line = self.line(node.location)
        return Node(
            path=f"{prefix}{node.name}",
            name=node.name,
            kind=node.kind,
            outputs=tuple(_outputs(node.outputs, None)) if isinstance(node, plans.ParallelFor) else (),
            note=_note(node, {}),
            first=line,
            last=line,
            after=(node.body.name,),
        )

    def line(self, location: Location | None) -> int:
        return location.line if location is not None and location.file == self.file else 0


def _value(value: ports.Value | str | None, bodies: Mapping[str, str]) -> Value | None:
    match value:
        case ports.Literal():
            return None if value.value is None else Literal(value.value)
        case ports.Path():
            return Literal(value.source or value.path)
        case ports.GraphInput():
            return FromInput(value.name)
        case ports.NodeOutput():
            return FromOutput(bodies.get(value.node, value.node), value.name)
        case ports.Text():
            return Expression("".join(part if isinstance(part, str) else f"${{{{{part}}}}}" for part in value.parts))
    return None if value is None else Literal(value)


def _inputs(inputs: tuple[ports.Input, ...], component: Any, bodies: Mapping[str, str]) -> Iterator[InputPort]:
    described = _descriptions(component, "inputs")
    for port in inputs:
        yield InputPort(
            name=port.name,
            type=port.type,
            optional=port.optional,
            description=described.get(port.name, ""),
            default=port.default,
            minimum=port.minimum,
            maximum=port.maximum,
            enum=tuple(port.enum),
            # The SDK sets an input that has no value to its default.
            value=None if _is_default(port) else _value(port.value, bodies),
        )


def _is_default(port: ports.Input) -> bool:
    return port.default is not None and port.value == ports.Literal(port.default)


def _outputs(outputs: tuple[ports.Output, ...], component: Any) -> Iterator[Port]:
    described = _descriptions(component, "outputs")
    yield from (Port(port.name, port.type, description=described.get(port.name, "")) for port in outputs)


def _descriptions(component: Any, side: str) -> dict[str, str]:
    declared = getattr(component, side, None)
    return {
        name: " ".join(str(getattr(port, "description", None) or "").split())
        for name, port in (declared.items() if isinstance(declared, dict) else ())
    }


def _layout(step: plans.Step, entity: Any) -> Layout:
    """Return the layout of a step, in which a count may be an input of the graph."""
    own = entity.trial if isinstance(entity, internals.Sweep) else entity
    component = internals.component(own, own)

    def setting(section: str, key: str) -> Any:
        # A property, as `resources` of a node, falls back to the component's value, that of a sweep's trial does not.
        given = getattr(own, section, None) or getattr(component, section, None)
        return given.get(key) if isinstance(given, dict) else getattr(given, key, None)

    processes = getattr(step.distribution, "process_count_per_instance", None)
    size = sizes.known(step.instance_type) if step.instance_type else None
    return Layout(
        distribution=step.distribution.type,
        instances=_count(setting("resources", "instance_count"), step.instance_count),
        processes=_count(setting("distribution", "process_count_per_instance"), processes or 1),
        size=step.instance_type,
        gpus=size.gpus if size is not None else 0,
    )


def _count(given: Any, known: int) -> Value:
    bound = value_of(str(plain(given))) if internals.is_binding(given) else None
    return FromInput(bound.name) if isinstance(bound, ports.GraphInput) else Literal(known)


def _compute(given: Any) -> str:
    return "" if given is None or internals.is_binding(given) else str(plain(given)).removeprefix("azureml:")


def _note(node: plans.Node, bodies: Mapping[str, str]) -> str:
    """Return what a control node does, in one line."""
    match node:
        case plans.Condition():
            branches = [("", node.then), ("else ", node.otherwise)]
            written = "; ".join(f"{word}{', '.join(names)}" for word, names in branches if names)
            return f"if {_text(node.condition, bodies)}: {written}"
        case plans.DoWhile():
            condition = f" while {node.condition}" if node.condition else ""
            return f"repeat {node.body.name}{condition}, at most {node.limit} times"
        case plans.ParallelFor():
            items = f"{len(node.items)} items" if isinstance(node.items, tuple) else _text(node.items, bodies)
            return f"{node.body.name} for each of {items}"
        case plans.Sweep():
            space = ", ".join(f"{each.name}: {each}" for each in node.search_space)
            return f"{'maximize' if node.maximize else 'minimize'} {node.metric} over {space}"
        case plans.StandIn():
            return node.what
        case plans.Step() if node.parallel:
            return str(node.parallel)
    return ""


def _text(value: ports.Value, bodies: Mapping[str, str]) -> str:
    match _value(value, bodies):
        case FromInput(name):
            return name
        case FromOutput(node, port):
            return f"{node}.{port}"
        case Literal(literal):
            return str(literal).lower()
        case other:
            return other.text if isinstance(other, Expression) else ""


def finding_of(problem: Problem, file: str) -> dict[str, Any]:
    """Return a finding as `Finding` of api.ts. file: whose lines are given"""
    step = re.match(r"step ([\w.\[\]-]+)(?:, key ([\w.-]+))?", problem.where)
    own = re.match(r"(?:key inputs\.|input )([\w.-]+)", problem.where)
    key = step[2] or "" if step else ""
    port = key.partition(".")[2] if key.startswith(("inputs.", "outputs.")) else ""
    location = Location.named_in(re.sub(r"^step .*? \((?=.*\)$)", "(", problem.where).strip("()"))
    location = location or Location.named_in(problem.where)
    return {
        "level": problem.level.value,
        "where": problem.where,
        "found": problem.found,
        "expected": problem.expected,
        "fix": problem.fix,
        "rule": problem.rule,
        "node": re.sub(r"\[[^\]]*\]", "", step[1]) if step else "",
        "port": port or (own[1] if own else ""),
        "line": location.line if location is not None and location.file == file else 0,
        "edits": [],
    }
