"""Make azure-ai-ml upload exactly the files that `allranks.sdk.files` lists, by replacing folders.

A folder of links replaces the code or the build context. The SDK hashes and uploads the targets under the names of the
links, so an asset's hash still depends on names and bytes. The folder has the name of the original, which is part of
the names in the upload."""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from allranks.sdk import internals
from allranks.sdk.files import FileList, copy_links
from allranks.sdk.paths import is_remote, shown
from allranks.sdk.uploads import code_at, context_of, merged

_MERGED = "code_with_additional_includes"
"""The SDK's name of a merged folder."""

_command: ContextVar[str] = ContextVar("command", default="")
"""The command of the component or job whose code the SDK builds. Each thread of the SDK builds another one."""


@contextlib.contextmanager
def exact_uploads(folder: Path, *, client: bool) -> Iterator[None]:
    """Make the SDK upload exactly the listed files inside of the block.

    folder: for the links
    client: whether the block may upload; otherwise it may only create the folders that would be uploaded

    The SDK processes local folders in three places: it merges a component's code with its additional includes, creates
    a Code of any folder, and hashes and uploads a build context. The first two do not know the command that the code is
    for, so two more places are replaced, where the SDK begins to build the code of a component and of a job.
    """
    stage = _Stage(folder)
    with _exact_code(stage), _exact_operations(stage) if client else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def _exact_code(stage: _Stage) -> Iterator[None]:
    """Replace what the SDK's entities do with folders."""
    code_class, environments, mixin = internals.Code, internals.environments, internals.ComponentCodeMixin
    includes_class = internals.AdditionalIncludes
    if includes_class.merge_local_code_and_additional_includes.__module__ == __name__:
        # This session is nested in another one, whose links exist longer.
        yield
        return
    make, object_hash, build = code_class.__init__, environments.get_object_hash, vars(mixin)[internals.BUILD_CODE]

    @contextlib.contextmanager
    def build_code(component: Any) -> Iterator[Any]:
        with _building(component), build(component) as code:
            yield code

    @contextlib.contextmanager
    def merged_code(includes: Any) -> Iterator[Path | None]:
        yield stage.code(includes)

    def make_code(code: Any, *, path: Any = None, ignore_file: Any = None, **more: Any) -> None:
        if path and not is_remote(str(path)) and not str(path).startswith("git+"):
            # As in Artifact.path of the SDK.
            path = path if os.path.isabs(path) else Path(more.get("base_path") or "./", path).resolve()
            path, ignore_file = stage.path(Path(path)), internals.IgnoreFile()
        make(code, path=path, ignore_file=ignore_file, **more)

    def context_hash(path: Any, ignore_file: Any) -> str:  # noqa: ARG001
        return str(object_hash(stage.context(Path(path)), internals.IgnoreFile()))

    with (
        internals.replaced(includes_class, "merge_local_code_and_additional_includes", merged_code),
        internals.replaced(code_class, "__init__", make_code),
        internals.replaced(environments, "get_object_hash", context_hash),
        internals.replaced(mixin, internals.BUILD_CODE, build_code),
    ):
        yield


@contextlib.contextmanager
def _exact_operations(stage: _Stage) -> Iterator[None]:
    """Replace what the operations of the SDK's client do with folders."""
    importlib.import_module(internals.PARTS["client"])  # first, because the modules below import each other
    utilities = internals.artifacts
    upload = vars(utilities)[internals.UPLOAD]
    if upload.__module__ == __name__:
        yield
        return
    of_command, of_sweep = (
        vars(internals.JobOperations)[name] for name in (internals.RESOLVE_COMMAND, internals.RESOLVE_SWEEP)
    )

    def resolve_command_job(operations: Any, job: Any, resolver: Any) -> Any:
        with _building(job):
            return of_command(operations, job, resolver)

    def resolve_sweep_job(operations: Any, job: Any, resolver: Any) -> Any:
        with _building(job.trial):
            return of_sweep(operations, job, resolver)

    def upload_to_datastore(
        operation_scope: Any, datastore_operation: Any, path: Any, artifact_type: str, *values: Any, **more: Any
    ) -> Any:
        if artifact_type == internals.ErrorTarget.ENVIRONMENT:
            path, more["ignore_file"] = stage.context(Path(path)), internals.IgnoreFile()
        return upload(operation_scope, datastore_operation, path, artifact_type, *values, **more)

    with (
        internals.replaced(utilities, internals.UPLOAD, upload_to_datastore),
        internals.replaced(internals.JobOperations, internals.RESOLVE_COMMAND, resolve_command_job),
        internals.replaced(internals.JobOperations, internals.RESOLVE_SWEEP, resolve_sweep_job),
    ):
        yield


@contextlib.contextmanager
def _building(owner: Any) -> Iterator[None]:
    """Set the command of a component, a job or a trial inside of the block."""
    command = getattr(owner, "command", None)
    token = _command.set(command if isinstance(command, str) else "")
    try:
        yield
    finally:
        _command.reset(token)


class _Stage:
    """The folder that contains the folders of links."""

    def __init__(self, folder: Path) -> None:
        self._folder = Path(os.path.realpath(folder)) / "uploads"
        self._folder.mkdir()

    def code(self, includes: Any) -> Path | None:
        """Return the folder, or the single file, that replaces a component's code; None if there is none."""
        code = includes.resolved_code_path
        if not includes.with_includes:
            return code and self.path(Path(code).absolute())
        where = shown(code or includes.base_path)
        files = merged(includes, where, where, _command.get())
        return None if files is None else self._links(files, _MERGED)

    def path(self, path: Path) -> Path:
        """Return the folder that replaces any code folder. A single file and a missing path are returned unchanged."""
        if path.is_relative_to(self._folder) or not os.path.exists(path):
            return path
        files = code_at(path, shown(path), _command.get())
        if os.path.isdir(path):
            return self._links(files, path.name)
        return path if len(files.files) == 1 else self._links(files, _MERGED)

    def context(self, path: Path) -> Path:
        """Return the folder that replaces a build context."""
        if path.is_relative_to(self._folder) or not os.path.isdir(path):
            return path
        return self._links(context_of(path), path.name)

    def _links(self, files: FileList, name: str) -> Path:
        """Return a new folder of that name with links to the files."""
        # The readings of the studio are forks, which share the session's folder.
        folder = Path(tempfile.mkdtemp(dir=self._folder)) / name
        copy_links(files.files, folder)
        return folder
