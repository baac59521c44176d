"""Pipeline files as sides of a comparison, of which the graphs are compared."""

import os
from pathlib import Path

from allranks.contract.templating import wire
from allranks.differences import Side
from allranks.errors import InputError, Problem
from allranks.history import registered
from allranks.history.nested import in_every_iteration
from allranks.history.node_records import node_record
from allranks.history.records import RunRecord, StepRecord
from allranks.plan import walk
from allranks.plan.graph import Graph, Step
from allranks.plan.ports import GraphInput, Literal, NodeOutput, Text, Value
from allranks.plan.reader import read_plan
from allranks.workspace import Workspace

IN_FOLDERS = ("pipeline.py", "pipeline.yml", "job.yml")
"""The files of a folder that describe its pipeline, the first of them that exists."""


def side_of_file(target: str, snapshots: Path, workspace: Workspace) -> Side:
    """Return the pipeline of a file, or of a folder with one, as a run that has not started.

    snapshots: the folder to which its code is copied

    Raise InputError if it cannot be read.
    """
    file = target
    if Path(target).is_dir():
        found = [str(path) for name in IN_FOLDERS if (path := Path(target, name)).is_file()]
        if not found:
            expected = f"one of {', '.join(IN_FOLDERS)}"
            raise InputError(Problem(target, "the folder has no pipeline", expected, "name the pipeline's file"))
        file = found[0]
    plan = read_plan(file, {}, snapshots, registered.of(workspace))
    records: list[StepRecord] = []
    for where, node, graph in walk.walk(plan.graph):
        record = node_record(node, where, (), snapshots)
        if isinstance(node, Step):
            scope = graph if graph is plan.graph else None
            record.inputs = {port.name: _bound(port.value, scope, Path(plan.source).parent) for port in node.inputs}
        records.append(record)
    run = RunRecord(target, plan.name, plan.display_name, plan.source, "", folder=str(snapshots), steps=records)
    return Side(run, plan, {}, {in_every_iteration(path): step for path, step in walk.steps(plan.graph)})


def _bound(value: Value | None, scope: Graph | None, folder: Path) -> str:
    """Return what an input is bound to.

    scope:  the pipeline's graph, whose inputs have values; None for a graph within it
    folder: that of the file, to which local paths are relative
    """
    if isinstance(value, GraphInput):
        given = scope.input_by_name[value.name].value if scope and value.name in scope.input_by_name else None
        return f"input {value.name}" if given is None else f"{_bound(given, None, folder)} (input {value.name})"
    if isinstance(value, NodeOutput):
        return f"{value.name} of {value.node}"
    if isinstance(value, Text):
        return "".join(part if isinstance(part, str) else _bound(part, scope, folder) for part in value.parts)
    if isinstance(value, Literal):
        return wire(value.value)
    return "" if value is None else os.path.relpath(value.path, folder) if value.path[:1] == "/" else value.path
