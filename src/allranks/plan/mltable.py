"""Read the file MLTable, which says what the files of a folder mean."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.errors import InputError
from allranks.sdk import bounded_yaml

NAME = "MLTable"


@dataclass(frozen=True)
class MLTable:
    """paths: patterns of the files, relative to the folder. transformations: as in the file"""

    paths: tuple[str, ...]
    transformations: tuple[Any, ...]


def read(folder: Path) -> MLTable | None:
    """Return the MLTable of a folder; None if it has none. Raise OSError, with the reason, if it cannot be read."""
    file = folder / NAME
    if not os.path.isfile(file):
        return None
    try:
        tree = bounded_yaml.read_values(file)
    except InputError as error:
        raise OSError(f"{file}: {error.problems[0].found}") from None
    entries = tree.get("paths") if isinstance(tree, dict) else None
    if not isinstance(entries, list) or not entries:
        raise OSError(f"{file}: it has no list of paths")
    transformations = tree.get("transformations") or []
    if not isinstance(transformations, list):
        raise OSError(f"{file}: transformations is not a list")
    for step in transformations:
        if not isinstance(step, str) and not (isinstance(step, dict) and len(step) == 1):
            raise OSError(f"{file}: {step!r} is not a transformation")
        name = step if isinstance(step, str) else next(iter(step))
        if name not in SUPPORTED:
            raise OSError(f"{file}: the transformation {name} is not applied by the local engine")
    return MLTable(tuple(_pattern(entry, file) for entry in entries), tuple(transformations))


SUPPORTED = (
    *("read_delimited", "read_parquet", "read_json_lines", "keep_columns", "drop_columns", "take", "skip"),
    *("extract_columns_from_partition_format", "extract_partition_format_into_columns"),
)
"""The transformations that `allranks.local.parallel.tables` applies."""


def _pattern(entry: Any, file: Path) -> str:
    if isinstance(entry, dict) and len(entry) == 1:
        ((kind, path),) = entry.items()
        if kind in ("file", "folder", "pattern") and isinstance(path, str):
            if "://" in path or path.startswith("azureml:"):
                raise OSError(f"{file}: {path} is not on this machine")
            return path
    raise OSError(f"{file}: the path {entry!r} is not a file, a folder or a pattern")
