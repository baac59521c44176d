"""Select which steps of a plan run: ``--from``, ``--only`` and ``--until``."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from allranks.errors import InputError, Problem, raise_any
from allranks.plan.graph import Graph, Node, Pipeline


class Mode(Enum):
    """The treatment of a node in a run.

    RUN:      run it, or reuse an earlier result
    FRESH:    run it, even if a result could be reused
    REUSE:    reuse an earlier result; without one, the node fails
    EXCLUDED: skip it; the node stays NotStarted
    """

    RUN = "run"
    FRESH = "fresh"
    REUSE = "reuse"
    EXCLUDED = "excluded"


@dataclass(frozen=True)
class Selection:
    """The steps that a user selected, by their paths in the plan, such as ``train`` or ``tune.train``.

    start: run these and all steps after them, reuse the steps that they need, and leave the others unchanged
    only:  run these, and reuse the steps that they need; run no other step
    until: run these and the steps that they need; run no other step
    """

    start: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    until: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.start or self.only or self.until)


ALL = Selection()
"""The selection of a run that runs everything."""


@dataclass(frozen=True)
class Modes:
    """The mode of each node of a run. A node without one has that of the node that contains it."""

    by_path: Mapping[str, Mode] = field(default_factory=dict)

    def at(self, path: str) -> Mode:
        """Return the mode of the node at a path, which may be in an iteration of a loop."""
        while self.by_path:
            if (mode := self.by_path.get(path)) is not None:
                return mode
            path, separator, _ = path.rpartition("[" if path.endswith("]") else ".")
            if not separator:
                break
        return Mode.RUN


def modes_of(graph: Graph, selection: Selection) -> Modes:
    """Return the mode of each node for a selection.

    Raise InputError for a path that is not a node of the plan, and for `only` together with another option.
    """
    if selection.only and (selection.start or selection.until):
        found = "--from or --until is given too"
        raise InputError(Problem("--only", found, "--only alone", "remove one of the options"))
    options = (("--from", selection.start), ("--only", selection.only), ("--until", selection.until))
    raise_any(problem for option, paths in options for path in paths for problem in _unknown(graph, option, path))
    modes: dict[str, Mode] = {}
    _select(graph, selection, "", modes)
    return Modes(modes)


def _select(graph: Graph, selection: Selection, path: str, modes: dict[str, Mode]) -> None:
    """Set the modes of a graph's nodes. selection: with paths in this graph. path: the path of the graph, with a dot"""

    def needed_by(names: Iterable[str]) -> set[str]:
        return _reachable(names, lambda name: graph.needs(graph.by_name[name]))

    chosen = dict.fromkeys(graph.by_name, Mode.RUN)
    selected = selection.only or selection.start
    heads = _heads(selected)
    if selection.only:
        chosen |= {name: Mode.EXCLUDED for name in chosen if name not in heads}
    chosen |= dict.fromkeys(needed_by(heads) - set(heads), Mode.REUSE)

    def followers(name: str) -> list[str]:
        return [node.name for node in graph.followers.get(name, ())]

    first = {name for head in heads for name in followers(head)} if selection.start else set()
    fresh = _reachable(first, followers) | (chosen.keys() & set(selected))
    chosen |= dict.fromkeys(fresh, Mode.FRESH)
    if selection.until:
        chosen |= dict.fromkeys(chosen.keys() - needed_by(_heads(selection.until)), Mode.EXCLUDED)
    for node in graph.nodes:
        modes[f"{path}{node.name}"] = chosen[node.name]
        inner = _within(selection, graph, node)
        if isinstance(node, Pipeline) and inner and chosen[node.name] is Mode.RUN:
            _select(node.graph, inner, f"{path}{node.name}.", modes)


def _within(selection: Selection, graph: Graph, node: Node) -> Selection:
    """Return the part of the selection that is inside a node, with paths in the node's graph."""

    def inner(paths: Iterable[str]) -> tuple[str, ...]:
        prefix = f"{node.name}."
        return tuple(path.removeprefix(prefix) for path in paths if path.startswith(prefix))

    # A node that another selected node needs runs as a whole.
    others = [head for head in _heads(selection.until) if head != node.name]
    is_needed = node.name in _reachable(others, lambda name: graph.needs(graph.by_name[name]))
    until = () if is_needed or node.name in selection.until else inner(selection.until)
    return Selection(inner(selection.start), inner(selection.only), until)


def _heads(paths: Iterable[str]) -> list[str]:
    """Return the nodes of the graph that are at the paths or contain them."""
    return [path.partition(".")[0] for path in paths]


def _reachable(names: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(following(name))
    return reached


def _unknown(graph: Graph, option: str, path: str) -> list[Problem]:
    """Return the problem of a path that is not a node of the plan."""
    inner = graph
    parts = [part for part in re.split(r"[.\[\]]+", path) if part]
    for depth, part in enumerate(parts):
        node = inner.by_name.get(part)
        before = ".".join(parts[:depth])
        if node is None:
            similar = difflib.get_close_matches(part, list(inner.by_name), n=1)
            suggestion = ".".join([*parts[:depth], *similar])
            return [
                Problem(
                    f"{option} {path}",
                    f"{before or 'the pipeline'} has no step {part}",
                    f"one of: {', '.join(inner.by_name)}",
                    f"did you mean {option} {suggestion}?" if similar else "",
                )
            ]
        if isinstance(node, Pipeline):
            inner = node.graph
        elif depth + 1 < len(parts):
            whole = ".".join(parts[: depth + 1])
            found = f"{whole} contains no step that can be selected"
            fix = f"select it as a whole: {option} {whole}"
            return [Problem(f"{option} {path}", found, "a step, or a pipeline component and a step in it", fix)]
    return [] if parts else [Problem(f"{option} {path}", "it names no step", f"one of: {', '.join(graph.by_name)}")]
