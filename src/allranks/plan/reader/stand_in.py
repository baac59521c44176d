"""Read a node that does not run here: it needs Azure ML, or the user provides its outputs in a folder."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from allranks.errors import Problem, did_you_mean
from allranks.plan.assets.lookup import AssetLookup
from allranks.plan.graph import Node, StandIn
from allranks.plan.ports import FILE_TYPES, Input, NodeOutput, Output, references
from allranks.plan.reader import step_ports
from allranks.plan.reader.context import Context
from allranks.plan.reader.settings import STAND_IN
from allranks.sdk.paths import shown
from allranks.sdk.request import ComponentRequest, NodeRequest


def folder_of(name: str, context: Context) -> Path | None:
    """Return the folder that stands in for a node; None if there is none. Add a problem if it does not exist."""
    if context.lookup is None:
        return None
    with context.problems:
        return context.lookup.stand_in(f"{context.path}{name}")
    return None


def is_drawn(node: NodeRequest, context: Context) -> bool:
    """Return whether a node becomes a stand-in to be drawn, because this machine does not have its component."""
    return bool(node.registered) and context.lookup is not None and context.lookup.draws


def read(name: str, node: NodeRequest, folder: Path | None, context: Context, what: str) -> StandIn:
    """Return a node that does not run. `complete` sets the paths of its outputs.

    folder: the folder that stands in for it; None if there is none, so that the plan cannot run
    what:   the kind of node, for messages
    """
    place = context.place(name)
    component = node.component if isinstance(node.component, ComponentRequest) else None
    inputs: tuple[Input, ...] = ()
    if component is not None and folder is None:
        inputs = step_ports.inputs(node, component, place, context)
        step_ports.refuse_unknown(node, component, place, context)
    elif is_drawn(node, context):
        inputs = step_ports.undeclared(node, context)
    return StandIn(
        name,
        what,
        "" if folder is None else str(folder),
        component="" if component is not None else node.registered,
        display_name=str(node.body.get("display_name") or ""),
        inputs=inputs,
        outputs=step_ports.outputs(node, component, context),
        location=place.location,
    )


def complete(nodes: Iterable[Node], context: Context) -> list[Node]:
    """Return the nodes of a graph, with the paths of the outputs of stand-ins."""
    listed = list(nodes)
    return [_complete(node, listed, context) if isinstance(node, StandIn) else node for node in listed]


def _complete(node: StandIn, nodes: Iterable[Node], context: Context) -> StandIn:
    # A node whose component is not on this machine declares only some outputs.
    read_by_others = {name: Output(name, kind, "rw_mount") for name, kind in _uses(node, nodes)}
    outputs = tuple({**read_by_others, **{output.name: output for output in node.outputs}}.values())
    if not node.folder:
        return replace(node, outputs=outputs)
    folder = Path(node.folder)
    located = {output.name: _located(output, folder, is_only=len(outputs) == 1) for output in outputs}
    missing = [name for name, path in located.items() if path is None]
    is_there, names = os.path.exists(folder), ", ".join(missing)
    if missing or not is_there:
        found = f"{shown(folder)} {f'has no {names}' if is_there else 'does not exist'}"
        expected = f"a folder with an entry for each output: {', '.join(located)}" if located else "a folder"
        where = f"{STAND_IN}{context.path}{node.name}"
        context.problems.append(Problem(where, found, expected, "correct the folder, or add what is missing"))
    return replace(node, outputs=tuple(replace(output, path=str(located[output.name] or folder)) for output in outputs))


def _uses(node: StandIn, nodes: Iterable[Node]) -> Iterator[tuple[str, str]]:
    """Yield the outputs of a node that other nodes read, with the expected types."""
    for other in nodes:
        types = {id(port.value): port.type for port in other.inputs}
        for value in other.values():
            for reference in references(value):
                if isinstance(reference, NodeOutput) and reference.node == node.name:
                    yield reference.name, types.get(id(value), "uri_folder").partition(" or ")[0]


def _located(output: Output, folder: Path, *, is_only: bool) -> Path | None:
    """Return the path of an output: the entry of its name (a file may have a suffix), or the folder itself."""
    is_file = output.type in FILE_TYPES
    named = [folder / output.name, *(sorted(folder.glob(f"{output.name}.*")) if is_file else ())]
    is_itself = is_only and (os.path.isfile(folder) if is_file else os.path.isdir(folder))
    return next((path for path in named if os.path.exists(path)), folder if is_itself else None)


def unknown(lookup: AssetLookup) -> Iterator[Problem]:
    """Yield a problem for each step that the user names and the pipeline does not have."""
    for path in lookup.stand_ins:
        if path not in lookup.stood_in:
            known = sorted(lookup.stood_in)
            expected = f"one of {', '.join(known)}" if known else "a pipeline, not a single job"
            yield Problem(f"{STAND_IN}{path}", f"there is no step {path}", expected, did_you_mean(path, known))
