"""Read a data transfer as a step whose command copies files: a copy, a merge, or an import from a file system.

azure-ai-ml refuses an export to a file system. A URI is read through fsspec.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

from allranks.errors import Level, Problem
from allranks.plan.graph import StandIn, Step
from allranks.plan.ports import Input, Output, Path
from allranks.plan.reader import registered_component, stand_in, step_ports
from allranks.plan.reader.command_step import identity
from allranks.plan.reader.context import Context, Place
from allranks.sdk.paths import is_remote

_FAIL_IF_CONFLICT = "fail_if_conflict"
_GLOB = re.compile(r"([*?]+)")
_FSSPEC = (
    'python -c "import fsspec, sys; fs, path = fsspec.core.url_to_fs(sys.argv[1]); '
    'fs.get(path, sys.argv[2], recursive=True)" {} {}'
)


def copy(name: str, entity: Any, context: Context) -> Step | None:
    """Return the step of a copy, or of a merge of several inputs."""
    place = context.place(name)
    if not registered_component.attach(entity, place, context):
        return None
    inputs, outputs = step_ports.inputs(entity, place, context), step_ports.outputs(entity, context)
    fails = len(inputs) > 1 and entity.component.data_copy_mode == _FAIL_IF_CONFLICT
    command = " && ".join(line for port in inputs for line in _copied(port, outputs[0], fails)) if outputs else ""
    return _step(name, entity, place, command, inputs, outputs)


def from_files(name: str, entity: Any, context: Context) -> Step | StandIn | None:
    """Return the step of an import from a file system; a node that does not run for an import from a database."""
    place, outputs = context.place(name), step_ports.outputs(entity, context)
    path = _path(entity.source, place.key("source"), context)
    if path is None:
        return stand_in.read(name, entity, None, context, stand_in.what_is(entity))
    if is_remote(path):
        return _step(name, entity, place, _FSSPEC.format(shlex.quote(path), "${{outputs.sink}}/"), (), outputs)
    # The part with a * is expanded by the step's shell, below an input with the rest.
    parts = FilePath(path).parts
    depth = next((place for place, part in enumerate(parts) if _GLOB.search(part)), len(parts))
    folder, pattern = FilePath(*parts[:depth]), "/".join(parts[depth:])
    source = Input("source", "uri_file" if folder.is_file() else "uri_folder", Path(str(folder)), "ro_mount")
    command = next(_copied(source, outputs[0], False))
    if pattern:
        command = f"cp -r ${{{{inputs.source}}}}/{_quoted(pattern)} ${{{{outputs.sink}}}}/"
    return _step(name, entity, place, command, (source,), outputs)


def _copied(port: Input, output: Output, fails: bool) -> Iterator[str]:
    source, to = f"${{{{inputs.{port.name}}}}}", f"${{{{outputs.{output.name}}}}}"
    if port.type == "uri_file":
        if fails:
            yield f"! test -e {to}/$(basename {source})"
        yield f"cp {source} {to}{'' if output.type == 'uri_file' else '/'}"
        return
    if fails:
        exists = f'if [ -e {to}/"$file" ]; then echo "$file is in two inputs" >&2; exit 1; fi'
        yield f"(cd {source} && find . -type f) | while read -r file; do {exists}; done"
    yield f"cp -r {source}/. {to}/"


def _path(files: Any, where: str, context: Context) -> str | None:
    """Return the path or URI of the source; None for a database. A connection is mapped like a datastore.

    Add a problem for a connection that ``allranks.yaml`` does not map.
    """
    if files.type != "file_system":
        return None
    path = str(files.path or "")
    if is_remote(path):
        return path
    connection = str(files.connection).removeprefix("azureml:")
    uri = f"azureml://datastores/{connection}/paths/{path}"
    mapped = context.lookup.output(uri) if context.lookup else None
    if mapped is None and context.lookup is not None:
        found, fix = f"this machine has no folder for the connection {connection}", "add to allranks.yaml:\n"
        fix += f"datastores:\n  {connection}: path/to/folder"
        context.problems.append(
            Problem(where, found, "a folder, or a URI as the path", fix, code="unresolved-name", level=Level.MACHINE)
        )
    return uri if mapped is None else str(mapped)


def _quoted(path: str) -> str:
    """Return a path for a shell, which expands its * and ?."""
    return "".join(part if _GLOB.fullmatch(part) else shlex.quote(part) for part in _GLOB.split(path) if part)


def _step(
    name: str,
    entity: Any,
    place: Place,
    command: str,
    inputs: tuple[Input, ...],
    outputs: tuple[Output, ...],
) -> Step:
    component, version = ("", "") if isinstance(entity.component, str) else identity(entity.component)
    return Step(
        name,
        command,
        component,
        version,
        str(entity.display_name or ""),
        str(entity.description or ""),
        inputs=inputs,
        outputs=outputs,
        location=place.location,
    )
