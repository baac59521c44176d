"""Read a data transfer as a step whose command copies files: a copy, a merge, or an import from a file system.

azure-ai-ml refuses an export to a file system. A URI is read through fsspec.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path as FilePath
from typing import Any

from allranks.plan.graph import StandIn, Step
from allranks.plan.ports import Input, Output, Path
from allranks.plan.reader import registered_component, stand_in, step_ports
from allranks.plan.reader.context import Context, settled
from allranks.sdk.paths import is_remote

_GLOB = re.compile(r"([*?]+)")
_FSSPEC = "import fsspec, sys; fs, path = fsspec.core.url_to_fs(sys.argv[1]); fs.get(path, sys.argv[2], recursive=True)"


def copy(name: str, entity: Any, context: Context) -> Step | None:
    """Return the step of a copy, or of a merge of several inputs."""
    place = context.place(name)
    if not registered_component.attach(entity, place, context):
        return None
    inputs, outputs = step_ports.inputs(entity, place, context), step_ports.outputs(entity, context)
    fails = entity.component.data_copy_mode == "fail_if_conflict"
    command = " && ".join(_copied(port, output, fails) for output in outputs for port in inputs)
    return Step(name, command, inputs=inputs, outputs=outputs, location=place.location)


def from_files(name: str, entity: Any, context: Context) -> Step | StandIn:
    """Return the step of an import from a file system; a node that does not run for an import from a database.

    The connection is looked up like a datastore.
    """
    place, outputs, files = context.place(name), step_ports.outputs(entity, context), entity.source
    if files.type != "file_system":
        return stand_in.read(name, entity, None, context, stand_in.what_is(entity))
    path, connection = (
        context.with_datastore(str(settled(getattr(files, key), f"source.{key}", place, context) or ""))
        for key in ("path", "connection")
    )
    sink = "${{outputs.sink}}/"
    if is_remote(path):
        command = f"python -c {shlex.quote(_FSSPEC)} {shlex.quote(path)} {sink}"
        return Step(name, command, outputs=outputs, location=place.location)
    # The step's shell expands the part with a *, below an input with the rest.
    parts = FilePath(path).parts
    depth = next((place for place, part in enumerate(parts) if _GLOB.search(part)), len(parts))
    uri = f"azureml://datastores/{connection.removeprefix('azureml:')}/paths/{'/'.join(parts[:depth])}"
    value = step_ports.resolved(Path(uri), "uri_folder", f"{place.step}.source", place.key("source"), context)
    is_file = isinstance(value, Path) and os.path.isfile(FilePath(value.path))
    source = Input("source", "uri_file" if is_file else "uri_folder", value, "ro_mount")
    texts = _GLOB.split("/".join(parts[depth:]))
    pattern = "".join(text if _GLOB.fullmatch(text) else shlex.quote(text) for text in texts if text)
    command = f"cp -r ${{{{inputs.source}}}}/{pattern} {sink}" if pattern else _copied(source, outputs[0], False)
    return Step(name, command, inputs=(source,), outputs=outputs, location=place.location)


def _copied(port: Input, output: Output, fails: bool) -> str:
    """Return the command that copies an input. fails: whether a file of another input must not be replaced"""
    source, to = f"${{{{inputs.{port.name}}}}}", f"${{{{outputs.{output.name}}}}}"
    if port.type == "uri_file":
        return f"cp {source} {to}{'' if output.type == 'uri_file' else '/'}"
    conflicts = f"same=$(cd {source} && find . -type f -exec test -e {to}/{{}} \\; -print)"
    refuse = '[ -z "$same" ] || { echo "in two inputs: $same" >&2; exit 1; }'
    return f"{f'{conflicts} && {refuse} && ' if fails else ''}cp -r {source}/. {to}/"
