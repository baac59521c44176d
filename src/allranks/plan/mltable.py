"""Read the file MLTable, which says what the files of a folder mean."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.errors import InputError
from allranks.plan.literals import meant
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
    if not isinstance(tree, dict):
        raise OSError(f"{file}: it has no list of paths")
    entries, transformations = tree.get("paths"), tree.get("transformations") or []
    if problem := _problem({**tree, "transformations": transformations}):
        raise OSError(f"{file}: {problem}")
    if not isinstance(entries, list) or not entries:
        raise OSError(f"{file}: it has no list of paths")
    return MLTable(tuple(_pattern(entry, file) for entry in entries), tuple(transformations))


def _problem(tree: dict[str, Any]) -> str:
    """Return what the local engine does not apply in an MLTable; "" if it applies all."""
    import jsonschema  # only tables need it

    checker = jsonschema.FormatChecker(())
    checker.checks("filter")(_is_applied)
    if isinstance(steps := tree["transformations"], list):
        steps = [{step: None} if isinstance(step, str) else step for step in steps]
        tree = {**tree, "transformations": steps}
    for error in jsonschema.Draft7Validator(_SCHEMA, format_checker=checker).iter_errors(tree):
        place = "".join(f"{key}: " for key in error.absolute_path if isinstance(key, str) and key != "transformations")
        if error.validator == "format":
            applied = 'comparisons such as col("n") > 2 and col("shop") == "x"'
            return f"{place}{error.instance} is not applied by the local engine; it applies {applied}"
        if error.validator != "additionalProperties":
            return f"{place}{error.message}"
        known = error.schema["properties"]
        for key in error.instance.keys() - known:
            fix = meant(str(key), known) or f"it applies {', '.join(known)}"
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


def _is_applied(expression: object) -> bool:
    """Return whether a filter consists of comparisons of ``col("NAME")``, joined by and, or and not."""
    try:
        nodes = list(ast.walk(ast.parse(str(expression).strip(), mode="eval")))
    except (SyntaxError, ValueError):
        return False
    calls = [getattr(node.func, "id", "") for node in nodes if isinstance(node, ast.Call)]
    is_chain = any(isinstance(node, ast.Compare) and len(node.ops) > 1 for node in nodes)
    return (
        "col" in calls
        and {*calls} <= {"col", "datetime"}
        and not is_chain
        and all(map(_NODES.__contains__, map(type, nodes)))
    )


_NODES = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.Call, ast.Name),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Constant, ast.Load),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div),
)


def _object(required: tuple[str, ...] = (), only: int = 0, /, **properties: Any) -> dict[str, Any]:
    """Return the schema of a mapping, which may be missing if no key is required. only: how many keys it has"""
    count = {"minProperties": only, "maxProperties": only} if only else {}
    kind = "object" if required or only else ["object", "null"]
    return {"type": kind, "properties": properties, "additionalProperties": False, "required": required, **count}


_BOOL, _INT, _TEXT = {"type": "boolean"}, {"type": "integer"}, {"type": "string"}
_TEXTS = {"type": ["string", "array"], "items": _TEXT}
_OF_TEXT = _object(
    true_values=_TEXTS, false_values=_TEXTS, mismatch_as={"enum": ["true", "false", "error", True, False]}
)
_TYPE = {
    "if": _TEXT,
    "then": {"enum": ["int", "float", "string", "boolean"]},
    "else": _object((), 1, boolean=_OF_TEXT, datetime=_object(("formats",), formats=_TEXTS)),
}
_CONVERSIONS = {
    "type": "array",
    "items": _object(("columns", "column_type"), columns=_TEXTS, column_type=_TYPE),
}
_READ = {"include_path_column": _BOOL, "path_column": {"const": "Path"}}
_ENCODINGS = [
    *("utf8", "utf-8", "utf8bom", "utf8 bom", "utf16", "utf-16", "utf32", "ascii", "latin1", "latin-1", "iso88591"),
    *("iso-8859-1", "windows1252", "windows-1252"),
]
_READ_TEXT = {
    **_READ,
    "encoding": {"enum": _ENCODINGS},
    "partition_size": _INT,  # the service reads parts of this size; the rows are the same
}
_HEADERS = ["no_header", "from_first_file", "all_files_different_headers", "all_files_same_headers", True, False]
_INFERRED = {"if": _BOOL, "else": _object(sample_size=_INT, column_type_overrides=_CONVERSIONS)}
_FORMAT = _object(("partition_format",), partition_format=_TEXT)
_CHANCE = {"type": "number", "minimum": 0, "maximum": 1}
_TRANSFORMATION = _object(
    (),
    1,
    read_delimited=_object(
        **_READ_TEXT,
        delimiter={**_TEXT, "minLength": 1},
        header={"enum": _HEADERS},
        support_multi_line=_BOOL,
        empty_as_string=_BOOL,
        infer_column_types=_INFERRED,
    ),
    read_parquet=_object(**_READ),
    read_json_lines=_object(**_READ_TEXT, invalid_lines={"enum": ["error", "drop"]}),
    keep_columns=_TEXTS,
    drop_columns=_TEXTS,
    convert_column_types=_CONVERSIONS,
    filter={**_TEXT, "format": "filter"},
    take=_INT,
    skip=_INT,
    take_random_sample=_object(("probability",), probability=_CHANCE, seed=_INT),
    extract_columns_from_partition_format=_FORMAT,
    extract_partition_format_into_columns=_FORMAT,
)
_SCHEMA = _object(
    **{"$schema": _TEXT},
    type={"const": "mltable"},
    paths={},
    transformations={"type": "array", "items": _TRANSFORMATION},
    # For people and other programs: the rows are the same.
    metadata={},
    traits={},
)
"""What `allranks.local.parallel.tables` applies of the schema that the package mltable has."""


def _pattern(entry: Any, file: Path) -> str:
    if isinstance(entry, dict) and len(entry) == 1:
        ((kind, path),) = entry.items()
        if kind in ("file", "folder", "pattern") and isinstance(path, str):
            if "://" in path or path.startswith("azureml:"):
                raise OSError(f"{file}: {path} is not on this machine")
            return path
    raise OSError(f"{file}: the path {entry!r} is not a file, a folder or a pattern")
