"""What the SDK uploads: of a component its code with what it includes, of an environment its build context."""

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
from allranks.sdk.files import FileList, is_archive, list_merged, list_path
from allranks.sdk.paths import is_remote, shown

CODE, CONTEXT = "code", "build context"


@dataclass(frozen=True)
class Upload:
    """One folder that goes along with a job.

    kind:  CODE or CONTEXT
    users: the steps that need it
    size:  of all its files, in bytes
    """

    kind: str
    users: tuple[str, ...]
    files: FileList
    size: int


@contextlib.contextmanager
def code_of(
    component: Any, where: str, includes_where: str = "", without: Collection[Path] = ()
) -> Iterator[FileList | None]:
    """Give the files of a component's code; None where it has no local code.

    where:          the place that messages name
    includes_where: that of the additional includes, where it is another
    without:        folders that are left out: those that snapshots are written to

    Raise InputError if they cannot be put together, or all of them have to stay.
    """
    code = component._get_origin_code_in_str()
    if code is not None and (is_remote(code) or code.startswith("git+")):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="allranks-") as scratch:
        yield merged(_includes_of(component), Path(scratch), where, includes_where or where, without)


def merged(
    includes: Any, scratch: Path, where: str, includes_where: str, without: Collection[Path] = ()
) -> FileList | None:
    """Return what the SDK would upload of its AdditionalIncludes, less what may not leave; None where there is no code.

    scratch: a folder for archives
    """
    code, configs = includes.resolved_code_path, includes.origin_configs
    if code is None and not configs:
        return None
    base = Path(os.path.abspath(includes.base_path))
    paths = _included(includes, base, includes_where) if configs else []
    return _not_empty(list_merged(code and Path(os.path.abspath(code)), paths, base, scratch, where, without), where)


def _included(includes: Any, base: Path, where: str) -> list[Path]:
    """Return the paths that are included. Raise InputError if one is not there."""
    try:
        # Those that are artifacts of Azure DevOps are downloaded.
        paths = [Path(path) for path in includes._get_resolved_additional_include_configs()]
    except (ValueError, RuntimeError, OSError) as error:
        found = " ".join(str(error).split())
        raise InputError(Problem(where, found, "code that can be read", "correct additional_includes")) from error
    local = [path if path.is_absolute() else (base / path).resolve() for path in paths]
    missing = [path for path in local if not path.exists() and not is_archive(path)]
    if missing:
        fix = "correct additional_includes"
        raise InputError.of(
            Problem(where, f"Unable to find additional include {shown(path)}", "a folder or a file", fix)
            for path in missing
        )
    return local


def code_at(path: Path, where: str) -> FileList:
    """Return the files of code that no component includes more in: a folder or a file. Raise InputError as above."""
    return _not_empty(list_path(path, where), where)


def context_of(folder: Path, where: str = "") -> FileList:
    """Return the files of an environment's build context. Raise InputError if something cannot be read."""
    return list_path(folder, where or str(folder))


def uploads_of(job: Any) -> list[Upload]:
    """Return what goes along with the SDK's job, each once. Raise InputError if something cannot be read."""
    found: dict[str, Upload] = {}
    users: dict[str, list[str]] = {}
    problems: list[Problem] = []
    for step, node in _nodes(job, ""):
        for kind, source in _sources(node, alone=not step):
            key = json.dumps([kind, *_identity(source)], default=str)
            if key not in found:
                where = (
                    f"step {step}, key {'code' if kind == CODE else 'environment.build.path'}" if step else "the job"
                )
                found[key] = Upload(kind, (), FileList(), 0)
                try:
                    with _files_of(kind, source, where) as files:
                        found[key] = Upload(kind, (), files or FileList(), files.size() if files else 0)
                except InputError as error:
                    problems += error.problems
            users.setdefault(key, []).append(step or "the job")
    if problems:
        raise InputError.of(problems)
    return [replace(one, users=tuple(users[key])) for key, one in found.items() if one.files.files]


def _identity(source: Any) -> tuple[Any, ...]:
    """Return what tells one folder that is sent from another before it is read."""
    if isinstance(source, Path):
        return (source,)
    includes: Any = getattr(source, "_get_all_additional_includes_configs", list)()
    return (source._get_base_path_for_code(), source._get_origin_code_in_str(), includes)


@contextlib.contextmanager
def _files_of(kind: str, source: Any, where: str) -> Iterator[FileList | None]:
    if kind == CONTEXT:
        yield context_of(source, where)
    elif isinstance(source, Path):
        yield code_at(source, where)
    else:
        includes_where = where.replace("key code", "key additional_includes")
        with code_of(source, where, includes_where) as files:
            yield files


def _not_empty(files: FileList, where: str) -> FileList:
    """Return the files; raises InputError where there are none because each has to stay."""
    if files.files or not files.left_out:
        return files
    left = ", ".join(f"{one.name} ({one.reason})" for one in files.left_out[:5])
    raise InputError(Problem(where, f"all of the code is left out: {left}", "a file that may leave the machine"))


def _includes_of(component: Any) -> Any:
    if hasattr(component, "_generate_additional_includes_obj"):
        return component._generate_additional_includes_obj()
    from azure.ai.ml.entities._component._additional_includes import AdditionalIncludes

    # A parallel component has code and includes nothing.
    code, base = component._get_origin_code_in_str(), component._get_base_path_for_code()
    return AdditionalIncludes(origin_code_value=code, base_path=base, configs=[])


def _nodes(job: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each node with its address, those of pipelines in pipelines and of loops too; "" for a job by itself."""
    inner = _members(job)
    if inner is None:
        yield path, job
        return
    for name, node in inner.items():
        yield from _nodes(node, f"{path}.{name}".lstrip("."))


def _members(node: Any) -> dict[str, Any] | None:
    """Return the nodes of a pipeline or of a loop; None of what is a step by itself.

    A pipeline has the bodies of its loops beside them: they are left to the loops.
    """
    from azure.ai.ml.entities import PipelineJob
    from azure.ai.ml.entities._builders.control_flow_node import LoopNode
    from azure.ai.ml.entities._component.pipeline_component import PipelineComponent

    if isinstance(node, PipelineJob):
        return _without_bodies(node.jobs)
    if isinstance(node, LoopNode):
        return _members(node.body) or {"body": node.body}
    component = vars(node).get("_component")
    return _without_bodies(component.jobs) if isinstance(component, PipelineComponent) else None


def _without_bodies(nodes: Mapping[str, Any]) -> dict[str, Any]:
    from azure.ai.ml.entities._builders.control_flow_node import LoopNode

    bodies = {id(node.body) for node in nodes.values() if isinstance(node, LoopNode)}
    return {name: node for name, node in nodes.items() if id(node) not in bodies}


def _sources(node: Any, *, alone: bool) -> Iterator[tuple[str, Any]]:
    """Yield what a node takes along: a component or a local path as its code, and a local build context.

    alone: whether it is a job by itself, whose own environment is sent; of a step the SDK sends its component's
    """
    from azure.ai.ml.entities import Environment
    from azure.ai.ml.entities._component.code import ComponentCodeMixin

    component = vars(node).get("_component") or vars(node).get("trial")
    if isinstance(component, ComponentCodeMixin):
        yield CODE, component
    else:
        code = getattr(component, "code", None) if component else vars(node).get("code")
        if isinstance(code, (str, os.PathLike)) and not is_remote(str(code)) and not str(code).startswith("git+"):
            yield CODE, Path(os.path.abspath(os.path.join(str(node.base_path), code)))
    own = vars(node).get("environment") if alone else None
    environment = own or getattr(component, "environment", None)
    if isinstance(environment, Environment) and environment.path:
        yield CONTEXT, Path(environment.path)
