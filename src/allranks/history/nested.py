"""Arrange the steps of a run as a tree: ``tune.train`` is in ``tune``, ``loop[2].train`` is in ``loop[2]``.

A step's name is its path in the graph. The tree depends on the names and their order only. The trials of a sweep also
have the values of their parameters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from allranks.errors import InputError, Problem, did_you_mean
from allranks.history.records import RunRecord, Status, StepRecord

_Nested = TypeVar("_Nested", bound=Any)
_INDEX = re.compile(r"(?<=\S)\[([^\[\]\s]+)\](?=$|[.\[])")
_MOST_NAMES = 20

# A group without a record has the first of these states that one of its steps has.
_DECIDING = (Status.FAILED, Status.RUNNING, Status.PREPARING, Status.INTERRUPTED, Status.CANCELED)


@dataclass
class Node:
    """A step, or a group of steps: a nested pipeline, a condition, a loop, or one of its iterations.

    path:     the name of its record
    name:     the last part of the path, shown below its parent: ``train``, ``loop[2]``
    record:   its own; for a loop or an iteration without one, a record derived from those of its steps
    children: in the order of their records; empty for a step
    """

    path: str
    name: str
    record: StepRecord
    children: list[Node] = field(default_factory=list)

    @property
    def is_iteration(self) -> bool:
        return self.path.endswith("]")

    @property
    def status(self) -> Status:
        return self.record.status


def nested(steps: Iterable[StepRecord]) -> list[Node]:
    """Return the roots of the tree of the steps. Siblings are in the order of their names' first occurrence.

    Names of steps may contain dots: a dot separates parts of a name only if there is a step with the name before the
    dot. An index in brackets always separates: a loop and its iterations need no record.
    """
    records = {step.name: step for step in steps}
    nodes: dict[str, Node] = {}
    for step in records.values():
        # The trials of a sweep are its children.
        trials = step.name.rpartition("[")[0] if step.is_trial else ""
        for path in (*_loops(step.name), step.name):
            if path not in nodes and path != trials:
                kind = "iteration" if path.endswith("]") else "loop"
                nodes[path] = Node(path, path, records.get(path) or StepRecord(path, path, "", "none", 1, 1, kind=kind))
    roots = []
    for path, node in nodes.items():
        parent = _parent(path, nodes)
        if parent is None:
            roots.append(node)
            continue
        rest = path[len(parent.path) :]
        node.name = rest[1:] if rest[0] == "." else parent.name.rpartition(".")[2] + rest
        parent.children.append(node)
    for path in nodes.keys() - records.keys():
        _derive(nodes[path].record, steps_of(nodes[path]))
    return roots


def _derive(group: StepRecord, steps: Sequence[StepRecord]) -> None:
    """Set the status, the start and the end of a group without a record of its own to those of its steps."""
    states = {step.status for step in steps}
    mixed = Status.RUNNING if Status.NOT_STARTED in states else Status.COMPLETED
    group.status = next(
        (status for status in _DECIDING if status in states), states.pop() if len(states) == 1 else mixed
    )
    group.started = min((step.started for step in steps if step.started), default=None)
    if group.status.ended:
        group.ended = max((step.ended for step in steps if step.ended), default=None)


def walk(nodes: Sequence[_Nested]) -> Iterator[_Nested]:
    """Yield the nodes and their descendants, each group before its nodes. They may be of any class with children."""
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))


def steps_of(node: Node) -> list[StepRecord]:
    """Return the records of the steps in a node, without those of groups. For a step, return its own."""
    return [inner.record for inner in walk([node]) if not inner.children]


def count_steps(steps: Iterable[StepRecord]) -> int:
    """Return how many of the records are steps that run a command."""
    return sum(step.kind == "command" for step in steps)


def node_at(run: RunRecord, path: str) -> Node:
    """Return the node of a run at a path.

    path: the name of a step, or with dots instead of brackets, which a shell would expand: ``loop.2.train``

    Raise InputError if the run has no such node.
    """
    nodes = list(walk(nested(run.steps)))
    same = [node for node in nodes if node.path == path]
    if found := same or [node for node in nodes if _dotted(node.path) == _dotted(path)]:
        return found[0]
    paths = [node.path for node in nodes]
    expected = "one of: " + ", ".join(paths[:_MOST_NAMES])
    if (more := len(paths) - _MOST_NAMES) > 0:
        expected += f", and {more:,} more"
    fix = did_you_mean(path, paths)
    raise InputError(Problem(f"run {run.id}, step {path}", "there is no such step", expected, fix))


def records_at(run: RunRecord, path: str) -> list[StepRecord]:
    """Return the records of a node and its descendants, in the run's order. Raise InputError as `node_at`."""
    below = {node.path for node in walk([node_at(run, path)])}
    return [step for step in run.steps if step.name in below]


def in_every_iteration(path: str) -> str:
    """Return the path with a star for each index: ``loop[*].train``, the same for all iterations of a loop."""
    return _INDEX.sub("[*]", path)


def _loops(name: str) -> Iterator[str]:
    for index in _INDEX.finditer(name):
        yield name[: index.start()]
        yield name[: index.end()]


def _parent(path: str, nodes: dict[str, Node]) -> Node | None:
    """Return the node with the longest path that is a prefix of this one and ends before a dot or an index."""
    for end in range(len(path) - 1, 0, -1):
        if path[end] in ".[" and (node := nodes.get(path[:end])):
            return node
    return None


def _dotted(path: str) -> str:
    return _INDEX.sub(r".\1", path)


OBJECTIVE = "objective"
"""The input of a sweep's record with its goal and its primary metric: ``maximize accuracy``."""

SPACE = "search_space."
"""How the inputs of a sweep's record begin that describe its parameters: ``search_space.lr``."""


class Trial(NamedTuple):
    """A trial. values: of the parameters. value: the best of the primary metric; None if it logged none"""

    number: int
    record: StepRecord
    values: tuple[str, ...]
    value: float | None


class SweepTrials(NamedTuple):
    """A sweep. trials: in the order of their numbers"""

    record: StepRecord
    metric: str
    maximize: bool
    parameters: tuple[str, ...]
    trials: tuple[Trial, ...]

    @property
    def ranking(self) -> list[Trial]:
        """The trials, the best first, those without a value last."""
        sign = -1 if self.maximize else 1
        return sorted(self.trials, key=lambda each: math.inf if each.value is None else sign * each.value)


def sweeps(steps: Iterable[StepRecord]) -> list[SweepTrials]:
    """Return the sweeps among the steps of a run, in their order."""
    steps = list(steps)
    trials: dict[str, list[StepRecord]] = {}
    for step in steps:
        if step.is_trial:
            trials.setdefault(step.name.rpartition(".trial[")[0], []).append(step)
    return [_sweep(step, trials.get(step.name, [])) for step in steps if step.kind == "sweep"]


def _sweep(record: StepRecord, trials: list[StepRecord]) -> SweepTrials:
    goal, _, metric = record.inputs.get(OBJECTIVE, "").partition(" ")
    names = tuple(name.removeprefix(SPACE) for name in record.inputs if name.startswith(SPACE))
    best = max if goal == "maximize" else min

    def of(trial: StepRecord) -> Trial:
        finite = [point.value for point in tuple(trial.metrics.get(metric, ())) if math.isfinite(point.value)]
        values = tuple(trial.inputs.get(name, "") for name in names)
        return Trial(int(trial.name.rpartition("[")[2].rstrip("]")), trial, values, best(finite, default=None))

    return SweepTrials(record, metric, goal == "maximize", names, tuple(map(of, trials)))
