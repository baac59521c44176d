"""Check data: inputs exist, are readable, and match the type of the port; outputs can be written."""

import os
from collections.abc import Iterator, Mapping

from allranks.checks.plan.scope import Scope, of_plan
from allranks.contract.templating import used_placeholders
from allranks.errors import Level, Problem, Rule, finding
from allranks.plan import file_tree
from allranks.plan.assets import asset_id
from allranks.plan.assets.lookup import line_for
from allranks.plan.graph import DoWhile, Node, ParallelFor, Pipeline, Plan, Step, Sweep
from allranks.plan.literals import one_of
from allranks.plan.ports import FILE_TYPES, PRIMITIVES, GraphOutput, Input, NodeOutput, Output, Path
from allranks.plan.values import graph_output_paths, output_path_of, output_paths_of
from allranks.sdk import paths

_OF_FILES = {"uri_file", "custom_model", "path"}
_PLACEHOLDERS = ("name", "output_name", "default_datastore")


def input_path(scope: Scope, node: Node | None, port: Input) -> Iterator[Problem]:
    """Yield the problems of the path of an input. node: None for an input of the pipeline"""
    if isinstance(port.value, Path) and port.type not in PRIMITIVES:
        fix = "bind it to an input of the pipeline, which --set can change"
        fix = f"name another: --set {port.name}=PATH" if node is None else fix
        yield from wrong_path(scope.key(node, f"inputs.{port.name}"), port, port.value, scope.here, fix)


def output_path(scope: Scope, node: Node | None, output: Output | GraphOutput) -> Iterator[Problem]:
    """Yield the problems of the path of an output. node: None for an output of the graph"""
    if output.path is None:
        return
    where = scope.key(node, f"outputs.{output.name}")
    if paths.is_remote(output.path):
        if scope.here and not paths.is_downloadable(output.path):
            yield from _unmapped(where, output.path)
        return
    for name in used_placeholders(output.path):
        if name not in _PLACEHOLDERS:
            known = [f"${{{{{known}}}}}" for known in _PLACEHOLDERS]
            yield Problem(where, f"${{{{{name}}}}} is unknown in a path", one_of(known, ""))
    if used_placeholders(output.path):
        return
    is_file = output.type in FILE_TYPES
    if os.path.isdir(output.path) if is_file else os.path.isfile(output.path):
        found = f"{paths.shown(output.path)} is a {'folder' if is_file else 'file'}"
        yield Problem(where, found, f"a {'file' if is_file else 'folder'}, or nothing yet", "use another path")


def _unmapped(where: str, uri: str) -> Iterator[Problem]:
    try:
        asset = asset_id.parse(uri, asset_id.DATA)
    except ValueError:
        return
    line = line_for(asset)
    found = f"{asset.kind} {asset.name or asset.path} is not mapped, so the output stays in the run's folder"
    fix = f"add to allranks.yaml:\n{line.section}:\n  {line}"
    yield finding("unmapped-output", where, found, "a folder of this machine for it", fix)


def written_twice(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each output whose path on this machine is also the path of another output."""
    first: dict[str, str] = {}
    for where, path in _local_paths(of_plan(plan), {}, ""):
        place = os.path.normpath(path)
        if place in first:
            found = f"{paths.shown(path)} is also the path of {first[place]}"
            yield Problem(where, found, "a path of its own", "change the path of one of the two")
        first.setdefault(place, where)


def _local_paths(scope: Scope, outer: Mapping[str, str] | None, parallel: str) -> Iterator[tuple[str, str]]:
    """Yield (key, path) for each path on this machine that is set for an output of a step or a parallel_for loop.

    outer:    the paths that the enclosing node sets for the graph's outputs; None for the body of a parallel_for loop,
              whose outputs are in the run's folder
    parallel: the enclosing parallel_for loop
    """
    passed = {} if outer is None else graph_output_paths(scope.graph, outer)
    names = {port.source: port.name for port in reversed(scope.graph.outputs) if port.source in passed}
    for node in scope.graph.nodes:
        inner = node.body if isinstance(node, (DoWhile, ParallelFor, Sweep)) else node
        around = f"{scope.path}{node.name}" if isinstance(node, ParallelFor) else parallel
        if isinstance(node, ParallelFor) or isinstance(inner, Step):
            for output in node.outputs:
                path, name = output_path_of(node, output, passed), names.get(NodeOutput(node.name, output.name))
                where = scope.key(node if name is None else None, f"outputs.{name or output.name}")
                if path is not None and not paths.is_remote(path) and not used_placeholders(path):
                    if parallel:
                        yield f"the other iterations of {parallel}", path
                    yield where, path
        if isinstance(inner, Pipeline):
            inner_paths = None if isinstance(node, ParallelFor) else output_paths_of(node, passed)
            yield from _local_paths(scope.within(inner, f"{scope.path}{inner.name}"), inner_paths, around)


def _why_missing(path: str) -> str:
    """Return why a path cannot be read: it does not exist, is a dangling link, or is in an unreadable folder."""
    try:
        os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):
            return f"is a link to {os.readlink(path)}, which does not exist"
    except (OSError, ValueError) as error:
        return f"cannot be read: {getattr(error, 'strerror', error)}"
    return "does not exist"


def wrong_path(where: str, port: Input, value: Path, here: bool, fix: str) -> Iterator[Problem]:
    """Yield the problems of a path for a port. It may have the type of the port, or the type set with the path."""
    path, kinds = value.path, {port.type, value.type or port.type}
    if paths.is_remote(path):
        if not here or paths.is_downloadable(path):
            return
        found = f"{path} cannot be read on this machine"
        yield Problem(
            where, found, "a local path", f"get a copy, then {fix}", code="unresolved-name", level=Level.MACHINE
        )
    elif not os.path.exists(path):
        found = f"{paths.shown(path)} {_why_missing(path)}"
        yield Problem(where, found, f"a path that exists ({port.type})", fix, code="missing-data")
    elif not os.path.isfile(path) and not os.path.isdir(path):
        found = f"{paths.shown(path)} is a {file_tree.kind_of(path)}, which has no content to copy"
        yield Problem(where, found, f"a file or a folder ({port.type})", fix)
    elif kinds == {"uri_file"} if (is_folder := os.path.isdir(path)) else not kinds & _OF_FILES:
        found, expected = ("folder", "file") if is_folder else ("file", "folder")
        problem = Problem(where, f"{paths.shown(path)} is a {found}", f"a {expected} ({port.type})", fix)
        is_uploaded = value.is_relative and (value.type or port.type) in ("uri_file", "uri_folder")
        yield from Rule.named("file-for-folder").mark([problem]) if is_uploaded else [problem]
    elif not os.access(path, os.R_OK | (os.X_OK if is_folder else 0)):
        yield Problem(where, f"{paths.shown(path)} cannot be read: permission denied", "data that you may read", fix)
