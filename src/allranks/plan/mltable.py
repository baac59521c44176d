"""Read the file MLTable, which describes the data of a folder."""

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.errors import InputError
from allranks.plan.literals import suggestion
from allranks.sdk import bounded_yaml

NAME = "MLTable"


@dataclass(frozen=True)
class MLTable:
    """The content of an MLTable file. paths: patterns of files, relative to the folder"""

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
    if problem := _problem({**tree, "transformations": transformations}):
        raise OSError(f"{file}: {problem}")
    return MLTable(tuple(_pattern(entry, file) for entry in entries), tuple(transformations))


def _problem(tree: dict[str, Any]) -> str:
    """Return a message about a part of an MLTable that the local engine does not support; "" if it supports all."""
    import jsonschema  # takes 0.3 s, and only tables need it

    if isinstance(steps := tree["transformations"], list):
        steps = [{step: None} if isinstance(step, str) else step for step in steps]
        tree = {**tree, "transformations": steps}
    for error in jsonschema.Draft7Validator(_schema()).iter_errors(tree):
        place = "".join(f"{key}: " for key in error.absolute_path if isinstance(key, str) and key != "transformations")
        if error.validator == "pattern":
            applied = 'comparisons such as col("n") > 2 and col("shop") == "x"'
            return f"{place}{error.instance} is not applied by the local engine; it applies {applied}"
        if error.validator != "additionalProperties":
            return f"{place}{error.message}"
        known = error.schema["properties"]
        for key in error.instance.keys() - known:
            fix = suggestion(str(key), known) or f"it applies {', '.join(known)}"
            return f"{place}{key} is not applied by the local engine; {fix}"
    names = [next(iter(step)) for step in steps]
    readers = [place for place, name in enumerate(names) if name.startswith("read_")] or [len(names)]
    early = [name for name in names[: readers[0]] if "partition_format" not in name]
    early += [names[place] for place in readers[1:]]
    if early:
        return (
            f"{early[0]} is not applied by the local engine here; it applies one read_ transformation, then the others"
        )
    return ""


@functools.cache
def _schema() -> Any:
    return _closed(bounded_yaml.read_values(Path(__file__).with_suffix(".yaml")))


def _closed(schema: Any) -> Any:
    """Return a schema that forbids additional keys of mappings."""
    if not isinstance(schema, dict):
        return [_closed(each) for each in schema] if isinstance(schema, list) else schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict):
        closed |= {"type": "object" if "required" in schema else ["object", "null"], "additionalProperties": False}
    return closed


def _pattern(entry: Any, file: Path) -> str:
    if isinstance(entry, dict) and len(entry) == 1:
        ((kind, path),) = entry.items()
        if kind in ("file", "folder", "pattern") and isinstance(path, str):
            if "://" in path or path.startswith("azureml:"):
                raise OSError(f"{file}: {path} is not on this machine")
            return path
    raise OSError(f"{file}: the path {entry!r} is not a file, a folder or a pattern")
