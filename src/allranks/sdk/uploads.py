"""What the SDK would upload: of a component its code with what it includes, of an environment its build context."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem


@contextlib.contextmanager
def code_of(component: Any, spec: Path) -> Iterator[dict[str, Path]]:
    """The files of a component's code by the names that they have there; none where it has no local code.

    Raises InputError where the SDK cannot put them together.
    """
    with contextlib.ExitStack() as stack:
        try:
            code = stack.enter_context(component._build_code())
        except (ValueError, RuntimeError, OSError) as error:
            fix = "correct code or additional_includes"
            raise InputError(Problem(str(spec), " ".join(str(error).split()), "code that can be read", fix)) from error
        local = code is not None and code.path and "://" not in str(code.path)
        yield _files(Path(code.path), code._ignore_file) if local else {}


def context_of(folder: Path) -> dict[str, Path]:
    """The files of an environment's build context by name."""
    from azure.ai.ml._utils._asset_utils import get_ignore_file

    return _files(folder, get_ignore_file(folder))


def _files(path: Path, ignored: Any) -> dict[str, Path]:
    from azure.ai.ml._utils._asset_utils import IgnoreFile, get_upload_files_from_folder

    if path.is_file():
        return {path.name: path}
    found = get_upload_files_from_folder(path, ignore_file=ignored or IgnoreFile())
    return {name.lstrip("/"): Path(file) for file, name in found}
