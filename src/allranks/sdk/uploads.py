"""What the SDK uploads: a component's code with its additional includes, an environment's build context."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.sdk import internals
from allranks.sdk.files import FileList, is_archive, list_merged, list_path
from allranks.sdk.paths import is_remote, located, shown
from allranks.sdk.runtime_copy import command_uses_runtime, with_runtime

CODE, CONTEXT = "code", "build context"


@dataclass(frozen=True)
class Upload:
    """A folder that is uploaded with a job.

    kind:  CODE or CONTEXT
    users: the steps that need it
    size:  of all its files, in bytes
    """

    kind: str
    users: tuple[str, ...]
    files: FileList
    size: int


def code_elsewhere(component: Any) -> str:
    """Return the id or the URL of a component's code that is not a path on this machine; "" if it is one, or there is
    no code."""
    code = internals.code_text(component) or ""
    # The SDK drops "azureml:" from ids.
    place = code if code.startswith("git+") or not code else located(code, Path(internals.code_base(component) or "."))
    return place if place.startswith("git+") or is_remote(place) else ""


@contextlib.contextmanager
def code_of(
    component: Any, where: str, includes_where: str = "", without: Collection[Path] = ()
) -> Iterator[FileList | None]:
    """Yield the files of a component's code; None if it has no local code.

    where:          the place that messages name
    includes_where: the place of the additional includes, if different
    without:        folders to omit: those that snapshots are written to

    Raise InputError if the files cannot be collected, or all of them are left out.
    """
    if code_elsewhere(component):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="allranks-") as scratch:
        yield merged(
            internals.includes(component), Path(scratch), where, includes_where or where, command_of(component), without
        )


def merged(
    includes: Any, scratch: Path, where: str, includes_where: str, command: str, without: Collection[Path] = ()
) -> FileList | None:
    """Return the files to upload of the SDK's AdditionalIncludes, see `list_merged`, with the runtime if they or the
    command use it; None if there is no code.

    scratch: a folder for archives
    """
    code, configs = includes.resolved_code_path, includes.origin_configs
    if code is None and not configs:
        return None
    base = Path(os.path.abspath(includes.base_path))
    paths = _included(includes, base, includes_where) if configs else []
    files = list_merged(code and Path(os.path.abspath(code)), paths, base, scratch, where, without)
    return with_runtime(_not_empty(files, where), command, where)


def command_of(owner: Any) -> str:
    """Return the command of a component, a job or a trial; "" if it has none."""
    command = getattr(owner, "command", None)
    return command if isinstance(command, str) else ""


def _included(includes: Any, base: Path, where: str) -> list[Path]:
    """Return the included paths. Raise InputError if one does not exist."""
    try:
        # This downloads artifacts of Azure DevOps.
        paths = internals.resolved_includes(includes)
    except (ValueError, RuntimeError, OSError) as error:
        found = " ".join(str(error).split())
        raise InputError(Problem(where, found, "code that can be read", "correct additional_includes")) from error
    local = [path if path.is_absolute() else (base / path).resolve() for path in paths]
    missing = [path for path in local if not os.path.exists(path) and not is_archive(path)]
    if missing:
        fix = "correct additional_includes"
        raise InputError.of(
            Problem(where, f"Unable to find additional include {shown(path)}", "a folder or a file", fix)
            for path in missing
        )
    return local


def code_at(path: Path, where: str, command: str, without: Collection[Path] = ()) -> FileList:
    """Return the files of code without additional includes, a folder or a file, with the runtime if they or the command
    use it. without: as for `code_of`. Raise InputError like `code_of`."""
    return with_runtime(_not_empty(list_path(path, where, without), where), command, where)


def context_of(folder: Path, where: str = "") -> FileList:
    """Return the files of an environment's build context. Raise InputError if a file cannot be read."""
    return list_path(folder, where or str(folder))


def uploads_of(job: Any) -> list[Upload]:
    """Return the uploads of the SDK's job, each once. Raise InputError if a file cannot be read."""
    uploads: dict[str, Upload] = {}
    users: dict[str, list[str]] = {}
    problems: list[Problem] = []
    for step, node in _nodes(job, ""):
        for kind, source, command in _sources(node, alone=not step):
            key = json.dumps([kind, *_identity(source), command_uses_runtime(command)], default=str)
            if key not in uploads:
                where = (
                    f"step {step}, key {'code' if kind == CODE else 'environment.build.path'}" if step else "the job"
                )
                uploads[key] = Upload(kind, (), FileList(), 0)
                try:
                    with contextlib.ExitStack() as stack:
                        if kind == CONTEXT:
                            files = context_of(source, where)
                        elif isinstance(source, Path):
                            files = code_at(source, where, command)
                        else:
                            includes = where.replace("key code", "key additional_includes")
                            files = stack.enter_context(code_of(source, where, includes)) or FileList()
                        uploads[key] = Upload(kind, (), files, files.size())
                except InputError as error:
                    problems += error.problems
            users.setdefault(key, []).append(step or "the job")
    if problems:
        raise InputError.of(problems)
    return [replace(upload, users=tuple(users[key])) for key, upload in uploads.items() if upload.files.files]


def _identity(source: Any) -> tuple[Any, ...]:
    """Return a key that identifies an uploaded folder before it is read."""
    if isinstance(source, Path):
        return (source,)
    return (internals.code_base(source), internals.code_text(source), internals.includes_configs(source))


def _not_empty(files: FileList, where: str) -> FileList:
    """Return the files. Raise InputError if all of them are left out."""
    if files.files or not files.left_out:
        return files
    examples = ", ".join(f"{entry.name} ({entry.reason})" for entry in files.left_out[:5])
    found = f"all of the code is left out: {examples}"
    raise InputError(Problem(where, found, "a file that may leave the machine", code="code-left-out"))


def _nodes(job: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each node with its address, including those of nested pipelines and loops; "" for a single job."""
    inner = _members(job)
    if inner is None:
        yield path, job
        return
    for name, node in inner.items():
        yield from _nodes(node, f"{path}.{name}".lstrip("."))


def _members(node: Any) -> dict[str, Any] | None:
    """Return the nodes of a pipeline or a loop; None for a step.

    A pipeline also lists the bodies of its loops; only the loops return them.
    """
    from azure.ai.ml.entities import PipelineComponent, PipelineJob

    if isinstance(node, PipelineJob):
        return _without_bodies(node.jobs)
    if isinstance(node, internals.LoopNode):
        return _members(node.body) or {"body": node.body}
    component = internals.component(node)
    return _without_bodies(component.jobs) if isinstance(component, PipelineComponent) else None


def _without_bodies(nodes: Mapping[str, Any]) -> dict[str, Any]:
    bodies = {id(node.body) for node in nodes.values() if isinstance(node, internals.LoopNode)}
    return {name: node for name, node in nodes.items() if id(node) not in bodies}


def _sources(node: Any, *, alone: bool) -> Iterator[tuple[str, Any, str]]:
    """Yield what a node uploads: a component or a local path as its code, with its command, and a local build context.

    alone: whether it is a single job, whose own environment is sent; for a step the SDK sends its component's
    """
    from azure.ai.ml.entities import Environment

    component = internals.component(node) or vars(node).get("trial")
    if isinstance(component, internals.ComponentCodeMixin):
        yield CODE, component, command_of(component)
    else:
        code = getattr(component, "code", None) if component else vars(node).get("code")
        if isinstance(code, (str, os.PathLike)) and not is_remote(str(code)) and not str(code).startswith("git+"):
            path = Path(os.path.abspath(os.path.join(str(node.base_path), code)))
            yield CODE, path, command_of(component or node)
    own = vars(node).get("environment") if alone else None
    environment = own or getattr(component, "environment", None)
    if isinstance(environment, Environment) and environment.path:
        yield CONTEXT, Path(environment.path), ""
