"""List the uploads of the SDK: a component's code with its additional includes, an environment's build context.

A Dockerfile has no instruction to include another file. In files with Dockerfile in their name, a line
``# allranks: include PATH`` is therefore replaced by the file at PATH, which is relative to the file with the line.
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem, Problems, raise_any
from allranks.sdk import internals
from allranks.sdk.files import FileList, is_archive, list_merged, list_path
from allranks.sdk.paths import cache_folder, is_remote, located, shown
from allranks.sdk.request import CodeRequest, ComponentRequest, EnvironmentRequest, JobRequest, NodeRequest
from allranks.sdk.runtime_copy import command_uses_runtime, with_runtime
from allranks.workspace import write_file

CODE, CONTEXT = "code", "build context"


@dataclass(frozen=True)
class Upload:
    """A folder that is uploaded with a job.

    kind:  CODE or CONTEXT
    users: the steps that need it
    """

    kind: str
    users: tuple[str, ...]
    files: FileList


def code_elsewhere(code: CodeRequest) -> str:
    """Return the id or the URL of a component's code; "" if the code is a path on this machine."""
    path = code.path or ""
    # The SDK drops "azureml:" from ids.
    place = path if path.startswith("git+") or not path else located(path, code.base)
    return place if place.startswith("git+") or is_remote(place) else ""


def code_of(
    code: CodeRequest, command: str, where: str, includes_where: str = "", without: Collection[Path] = ()
) -> FileList | None:
    """Return the files of a component's code; None if it has no local code.

    where:          the place, for messages
    includes_where: the place of the additional includes, if different
    without:        folders of snapshots, which are omitted

    Raise InputError if the files cannot be collected, or all of them are excluded.
    """
    if code_elsewhere(code):
        return None
    return merged(internals.includes(code), where, includes_where or where, command, without)


def merged(
    includes: Any, where: str, includes_where: str, command: str, without: Collection[Path] = ()
) -> FileList | None:
    """Return the files to upload for the SDK's AdditionalIncludes (see `list_merged`), with the runtime if they or the
    command use it; None if there is no code."""
    code, configs = includes.resolved_code_path, includes.origin_configs
    if code is None and not configs:
        return None
    base = Path(os.path.abspath(includes.base_path))
    paths = _included(includes, base, includes_where) if configs else []
    files = list_merged(code and Path(os.path.abspath(code)), paths, base, where, without)
    return with_runtime(_not_empty(files, where), command, where)


def _included(includes: Any, base: Path, where: str) -> list[Path]:
    """Return the included paths. Raise InputError if one does not exist."""
    try:
        # It downloads artifacts of Azure DevOps.
        paths = internals.resolved_includes(includes)
    except (ValueError, RuntimeError, OSError) as error:
        found = " ".join(str(error).split())
        raise InputError(Problem(where, found, "code that can be read", "correct additional_includes")) from error
    local = [path if path.is_absolute() else (base / path).resolve() for path in paths]
    expected, fix = "a folder or a file", "correct additional_includes"
    raise_any(
        Problem(where, f"Unable to find additional include {shown(path)}", expected, fix)
        for path in local
        if not os.path.exists(path) and not is_archive(path)
    )
    return local


def code_at(path: Path, where: str, command: str, without: Collection[Path] = ()) -> FileList:
    """Return the files of code without additional includes, with the runtime if they or the command use it.

    path, without: as for `code_of`

    Raise InputError as `code_of` does.
    """
    return with_runtime(_not_empty(list_path(path, where, without), where), command, where)


def uploads_of(job: JobRequest) -> list[Upload]:
    """Return the uploads of a job, each once. Raise InputError if a file cannot be read."""
    uploads: dict[str, Upload] = {}
    problems = Problems()
    alone = [("", job.root)] if isinstance(job.root, NodeRequest) else []
    for step, node in _below(job.root, "") if isinstance(job.root, ComponentRequest) else alone:
        for kind, source, command in _sources(node, alone=not step):
            key, user = repr((kind, source, command_uses_runtime(command))), step or "the job"
            if key in uploads:
                uploads[key] = replace(uploads[key], users=(*uploads[key].users, user))
                continue
            uploads[key] = Upload(kind, (user,), FileList())
            where = f"step {step}, key {'code' if kind == CODE else 'environment.build.path'}" if step else user
            with problems:
                if isinstance(source, Path):
                    files = context_of(source, where)
                else:
                    includes_where = where.replace("key code", "key additional_includes")
                    files = code_of(source, command, where, includes_where) or FileList()
                uploads[key] = Upload(kind, (user,), files)
    raise_any(problems)
    return [upload for upload in uploads.values() if upload.files.files]


def _not_empty(files: FileList, where: str) -> FileList:
    """Return the files. Raise InputError if all of them are excluded."""
    if files.files or not files.left_out:
        return files
    examples = ", ".join(f"{name} ({reason})" for name, reason in [*files.left_out.items()][:5])
    found = f"all of the code is left out: {examples}"
    raise InputError(Problem(where, found, "a file that may leave the machine", code="code-left-out"))


def _below(pipeline: ComponentRequest, path: str) -> Iterator[tuple[str, NodeRequest]]:
    """Yield each node of a pipeline with its path, including those of nested pipelines."""
    for name, node in pipeline.nodes.items():
        yield f"{path}{name}", node
        if isinstance(node.component, ComponentRequest):
            yield from _below(node.component, f"{path}{name}.")


def _sources(node: NodeRequest, *, alone: bool) -> Iterator[tuple[str, CodeRequest | Path, str]]:
    """Yield the uploads of a node: its component's code, with the command, and a local build context.

    alone: whether it is a standalone job, whose environment is sent; for a step, the SDK sends that of the component
    """
    component = node.component
    if not isinstance(component, ComponentRequest):
        return
    if component.code is not None:
        yield CODE, component.code, component.command
    environment = (node.environment if alone else None) or component.environment
    if isinstance(environment, EnvironmentRequest) and (folder := environment.folder):
        yield CONTEXT, folder, ""


DOCKERFILE = "Dockerfile"
_INCLUDE = re.compile(r"^# allranks: include (\S+)$", re.MULTILINE)
_DEEPEST = 8


def context_of(folder: Path, where: str = "") -> FileList:
    """Return the files of a build context. where: the place, for messages; by default the folder

    Raise InputError if one of them, or a file that a Dockerfile includes, cannot be read.
    """
    listed = list_path(folder, where or str(folder))
    written = {name: _written(path) for name, path in listed.files.items() if DOCKERFILE in path.name}
    return replace(listed, files={**listed.files, **written})


def _written(dockerfile: Path) -> Path:
    """Return the file with the text of a Dockerfile: itself, or one in the user's cache if it includes others."""
    if b"# allranks: include " not in dockerfile.read_bytes():
        return dockerfile
    text = dockerfile_text(dockerfile)
    file = cache_folder("dockerfiles") / hashlib.sha256(text.encode()).hexdigest()[:24] / dockerfile.name
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text)
    return file


def dockerfile_text(file: Path, included_from: tuple[str, ...] = ()) -> str:
    """Return the text of a Dockerfile with the files that it includes. Raise InputError if one cannot be read.

    included_from: the lines that led to the file
    """
    try:
        if len(included_from) > _DEEPEST:
            raise ValueError("it includes itself")
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        where = included_from[-1] if included_from else shown(file)
        found = f"{shown(file)}: {getattr(error, 'strerror', None) or error}"
        raise InputError(Problem(where, found, "a Dockerfile, or a part of one", "correct the path")) from None

    def included(match: re.Match[str]) -> str:
        line = f"{shown(file)}:{text.count(chr(10), 0, match.start()) + 1}"
        return dockerfile_text(file.parent / match[1], (*included_from, line)).rstrip("\n")

    return _INCLUDE.sub(included, text)
