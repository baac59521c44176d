"""Make azure-ai-ml upload exactly the list of `allranks.sdk.files`, by giving it folders that contain nothing else.

A folder of links replaces the code or the build context. The SDK hashes and uploads the links' targets under the links'
names, so an asset's hash still depends on names and bytes. The folder has the name of the original, since the SDK
uploads below that name.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from allranks.sdk.files import copy_links
from allranks.sdk.paths import is_remote, shown
from allranks.sdk.uploads import code_at, command_of, context_of, merged

_MERGED = "code_with_additional_includes"
"""The SDK's own name of a merged folder."""

_command: ContextVar[str] = ContextVar("command", default="")
"""The command of the component or job whose code the SDK builds. The SDK's threads each build the code of another."""


@contextlib.contextmanager
def exact_uploads(folder: Path, *, client: bool) -> Iterator[None]:
    """Make the SDK upload exactly the listed files inside of the block.

    folder: for the links
    client: whether the block may upload; without that, it may only create the folders that would be uploaded

    The SDK turns local folders into uploads in three places: it merges a component's code with its additional includes,
    creates a Code of any folder, and hashes and uploads a build context. In the first two it does not say which command
    the code is for: two more places, where it begins to build the code of a component and of a job, tell.
    """
    stage = _Stage(folder)
    with _exact_code(stage), _exact_operations(stage) if client else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def _exact_code(stage: _Stage) -> Iterator[None]:
    """Replace what the SDK's entities do with folders."""
    from azure.ai.ml._utils._asset_utils import IgnoreFile
    from azure.ai.ml.entities._assets import environment as environments
    from azure.ai.ml.entities._assets._artifacts.code import Code
    from azure.ai.ml.entities._component._additional_includes import AdditionalIncludes
    from azure.ai.ml.entities._component.code import ComponentCodeMixin

    if AdditionalIncludes.merge_local_code_and_additional_includes.__module__ == __name__:
        # Nested in another session, whose links exist longer.
        yield
        return
    merge, make = AdditionalIncludes.merge_local_code_and_additional_includes, Code.__init__
    object_hash, build = environments.get_object_hash, ComponentCodeMixin._build_code

    @contextlib.contextmanager
    def build_code(component: Any) -> Iterator[Any]:
        with _building(component), build(component) as code:
            yield code

    @contextlib.contextmanager
    def merged_code(includes: Any) -> Iterator[Path | None]:
        yield stage.code(includes)

    def make_code(code: Any, *, path: Any = None, ignore_file: Any = None, **more: Any) -> None:
        if path and not is_remote(str(path)) and not str(path).startswith("git+"):
            # The SDK's own rule, of Artifact.path.
            path = path if os.path.isabs(path) else Path(more.get("base_path") or "./", path).resolve()
            path, ignore_file = stage.path(Path(path)), IgnoreFile()
        make(code, path=path, ignore_file=ignore_file, **more)

    def context_hash(path: Any, ignore_file: Any) -> str:  # noqa: ARG001
        return str(object_hash(stage.context(Path(path)), IgnoreFile()))

    AdditionalIncludes.merge_local_code_and_additional_includes = merged_code
    Code.__init__ = make_code
    environments.get_object_hash, ComponentCodeMixin._build_code = context_hash, build_code
    try:
        yield
    finally:
        AdditionalIncludes.merge_local_code_and_additional_includes = merge
        Code.__init__ = make
        environments.get_object_hash, ComponentCodeMixin._build_code = object_hash, build


@contextlib.contextmanager
def _exact_operations(stage: _Stage) -> Iterator[None]:
    """Replace what the operations of the SDK's client do with folders."""
    import azure.ai.ml._ml_client  # noqa: F401  # first: the modules below import each other, in this order only
    from azure.ai.ml._artifacts import _artifact_utilities as utilities
    from azure.ai.ml._utils._asset_utils import IgnoreFile
    from azure.ai.ml.exceptions import ErrorTarget
    from azure.ai.ml.operations import JobOperations

    if utilities._upload_to_datastore.__module__ == __name__:
        yield
        return
    upload, of_command, of_sweep = (
        utilities._upload_to_datastore,
        JobOperations._resolve_arm_id_for_command_job,
        JobOperations._resolve_arm_id_for_sweep_job,
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
        if artifact_type == ErrorTarget.ENVIRONMENT:
            path, more["ignore_file"] = stage.context(Path(path)), IgnoreFile()
        return upload(operation_scope, datastore_operation, path, artifact_type, *values, **more)

    utilities._upload_to_datastore = upload_to_datastore
    JobOperations._resolve_arm_id_for_command_job = resolve_command_job
    JobOperations._resolve_arm_id_for_sweep_job = resolve_sweep_job
    try:
        yield
    finally:
        utilities._upload_to_datastore = upload
        JobOperations._resolve_arm_id_for_command_job = of_command
        JobOperations._resolve_arm_id_for_sweep_job = of_sweep


@contextlib.contextmanager
def _building(owner: Any) -> Iterator[None]:
    """Set the command of a component, a job or a trial inside of the block."""
    token = _command.set(command_of(owner))
    try:
        yield
    finally:
        _command.reset(token)


class _Stage:
    """The folder that contains the folders of links."""

    def __init__(self, folder: Path) -> None:
        self._folder = Path(os.path.realpath(folder)) / "uploads"
        self._folder.mkdir()
        self._count = itertools.count()

    def code(self, includes: Any) -> Path | None:
        """Return the folder, or the single file, that replaces a component's code; None if it has none."""
        code = includes.resolved_code_path
        scratch = self._new()
        scratch.mkdir()
        where = shown(code or includes.base_path)
        files = merged(includes, scratch, where, where, _command.get())
        if files is None:
            return None
        alone = not includes.with_includes and not code.is_dir()
        if alone and len(files.files) == 1:
            return Path(code).absolute()
        target = self._new() / (_MERGED if includes.with_includes or alone else code.name)
        copy_links(files.files, target)
        return target

    def path(self, path: Path) -> Path:
        """Return the folder that replaces any code folder. A single file and a missing path are returned unchanged."""
        if path.is_relative_to(self._folder) or not path.exists():
            return path
        files = code_at(path, shown(path), _command.get()).files
        alone = not path.is_dir()
        if alone and len(files) == 1:
            return path
        target = self._new() / (_MERGED if alone else path.name)
        copy_links(files, target)
        return target

    def context(self, path: Path) -> Path:
        """Return the folder that replaces a build context."""
        if path.is_relative_to(self._folder) or not path.is_dir():
            return path
        target = self._new() / path.name
        copy_links(context_of(path).files, target)
        return target

    def _new(self) -> Path:
        return self._folder / str(next(self._count))
