"""The data of a parallel step: lists of files, and tables of rows that an MLTable describes."""

from __future__ import annotations

import datetime
import functools
import json
import os
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, Dict, Optional, Tuple

DEFAULT_BYTES = 1 << 20
PARTITION_FORMATS = ("extract_columns_from_partition_format", "extract_partition_format_into_columns")


MiniBatch = Tuple[Any, Optional[Dict[str, Any]]]
"""The items of a mini-batch as JSON values, and the keys and values of its partition."""


class DataError(Exception):
    """The data cannot be divided. The message is the reason."""


class Data:
    """The inputs to divide, as this instance sees them.

    settings: with the path of each input, and the files and transformations of its MLTable, if it is one
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._inputs: list[tuple[str, list[str] | None, list[tuple[str, Any]]]] = [
            (path, patterns, [_parse_step(step) for step in steps]) for path, patterns, steps in settings["inputs"]
        ]
        self._keys: list[str] = settings["partition_keys"]
        self._size: int | None = settings["mini_batch_size"]
        self._table = functools.lru_cache(maxsize=None)(self._read_table)

    def mini_batch(self, items: Any) -> Any:
        """Return a mini-batch in the form for the run function: a list of paths, or rows as a DataFrame."""
        number, part = items
        if isinstance(part, dict):
            frame = self._table(number)
            rows = self._groups(number)[part["group"]][1] if "group" in part else slice(part["first"], part["end"])
            return frame.iloc[rows].reset_index(drop=True)
        path = self._inputs[number][0]
        return [os.path.join(path, name) if name else path for name in part]

    def split(self) -> Iterator[MiniBatch]:
        """Yield each mini-batch.

        Raise DataError if there is nothing to divide, or it cannot be read.
        """
        for number, (path, _, steps) in enumerate(self._inputs):
            files = self._files(number)
            if not files:
                raise DataError(f"{path} has no files")
            if any(name.startswith("read_") for name, _ in steps):
                yield from self._rows(number, files)
            else:
                yield from self._file_lists(number, files)

    def _file_lists(self, number: int, files: Sequence[str]) -> Iterator[MiniBatch]:
        groups: list[tuple[dict[str, Any] | None, Sequence[str]]]
        if self._keys:
            found: dict[tuple[Any, ...], list[str]] = {}
            for name in files:
                columns = self._partition(number, name)
                missing = [key for key in self._keys if key not in columns]
                if missing:
                    raise DataError(f"{name} has no value for the partition key {missing[0]}")
                found.setdefault(tuple(columns[key] for key in self._keys), []).append(name)
            groups = [(dict(zip(self._keys, map(_plain, values))), names) for values, names in sorted(found.items())]
        else:
            size = self._size or 1
            groups = [(None, files[first : first + size]) for first in range(0, len(files), size)]
        for group, names in groups:
            yield [number, names], group

    def _rows(self, number: int, files: Sequence[str]) -> Iterator[MiniBatch]:
        if self._keys:
            for place, (values, _) in enumerate(self._groups(number)):
                yield [number, {"group": place}], dict(zip(self._keys, values))
            return
        count = len(self._table(number))
        size = sum(os.path.getsize(self.mini_batch([number, [name]])[0]) for name in files)
        rows = max(1, round(count * (self._size or DEFAULT_BYTES) / max(1, size)))
        for first in range(0, count, rows):
            yield [number, {"first": first, "end": min(first + rows, count)}], None

    @functools.lru_cache(maxsize=None)  # noqa: B019 - the object lives as long as its process
    def _groups(self, number: int) -> list[tuple[tuple[Any, ...], Any]]:
        frame = self._table(number)
        missing = [key for key in self._keys if key not in frame.columns]
        if missing:
            columns = ", ".join(map(str, frame.columns))
            raise DataError(f"partition key {missing[0]} is not a column; the columns are {columns}")
        groups = frame.groupby(self._keys, sort=True).indices
        return [
            (tuple(map(_plain, values if isinstance(values, tuple) else (values,))), rows)
            for values, rows in groups.items()
        ]

    def _files(self, number: int) -> list[str]:
        """Return the files of an input relative to it, in order; [""] if it is a file itself."""
        path, patterns, _ = self._inputs[number]
        if patterns is not None:
            import glob  # only a pattern needs it

            found = [
                name for pattern in patterns for name in sorted(glob.glob(os.path.join(path, pattern), recursive=True))
            ]
            nested = (_below(name) if os.path.isdir(name) else [name] for name in found)
            return [os.path.relpath(name, path) for names in nested for name in names]
        return [os.path.relpath(name, path) for name in _below(path)] if os.path.isdir(path) else [""]

    def _partition(self, number: int, name: str) -> dict[str, Any]:
        """Return the columns that an MLTable reads from the path of a file: texts, or times for {day:yyyy/MM/dd}."""
        columns: dict[str, Any] = {}
        for step, options in self._inputs[number][2]:
            if step in PARTITION_FORMATS:
                pattern = str(options["partition_format"])
                parts = re.split(r"\{(\w+)(?::([^}]*))?\}", pattern.lstrip("/"))
                text, times = re.escape(parts[0]), dict(zip(parts[1::3], parts[2::3]))
                for part, time, after in zip(parts[1::3], parts[2::3], parts[3::3]):
                    value = re.sub("[yMdHms]", r"\\d", re.escape(time)) if time else "[^/]+?"
                    text += f"(?P<{part}>{value}){re.escape(after)}"
                match = re.search(f"(?:^|/){text.replace(re.escape('*'), '[^/]*')}$", name)
                if match is None:
                    raise DataError(f"{name} does not have the partition format {pattern}")
                for part, value in match.groupdict().items():
                    columns[part] = _time(value, times[part]) if times[part] else value
        return columns

    def _read_table(self, number: int) -> Any:
        import pandas  # 0.4 s

        steps = self._inputs[number][2]
        reader, options = next(step for step in steps if step[0].startswith("read_"))
        frames, first = [], None
        for name in self._files(number):
            path = self.mini_batch([number, [name]])[0]
            try:
                frame = _READERS[reader](pandas, path, options, first)
            except Exception as error:  # the errors of pandas' readers have no common class
                raise DataError(f"{name} cannot be read: {type(error).__name__}: {error}") from error
            first = first or list(frame.columns)
            if options.get("include_path_column"):
                frame.insert(0, "Path", path)
            frames.append(frame.assign(**self._partition(number, name)))
        frame = pandas.concat(frames, ignore_index=True)
        for step, options in steps:
            if step in _CHANGES:
                try:
                    frame = _CHANGES[step](pandas, frame, options)
                except Exception as error:  # of pandas, as above
                    raise DataError(f"{step} fails: {type(error).__name__}: {error}") from error
        return frame


def _below(folder: str) -> list[str]:
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder, followlinks=True) for name in names)


def _plain(value: Any) -> Any:
    """Convert a value of a column to a JSON value."""
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def _time(text: str, pattern: str) -> datetime.datetime:
    for letters, code in (("yyyy", "%Y"), ("MM", "%m"), ("dd", "%d"), ("HH", "%H"), ("mm", "%M"), ("ss", "%S")):
        pattern = pattern.replace(letters, code)
    return datetime.datetime.strptime(text, pattern)


def _parse_step(step: Any) -> tuple[str, Any]:
    """Return the name and the options of a transformation: a text, or a mapping with one key."""
    name, options = (step, None) if isinstance(step, str) else next(iter(step.items()))
    return str(name), {} if options is None else options


_ENCODINGS = {"utf8": "utf-8-sig", "utf8bom": "utf-8-sig", "iso88591": "latin-1", "windows1252": "cp1252"}
"""Python's names of encodings, where the schema of MLTable has others."""


def _encoding(options: dict[str, Any]) -> str:
    name = re.sub("[ -]", "", str(options.get("encoding", "utf8")))
    return _ENCODINGS.get(name, name)


def _read_delimited(pandas: Any, path: str, options: dict[str, Any], first: list[str] | None) -> Any:
    """Return the rows of a file. first: the names of the first file's columns"""
    header, delimiter = str(options.get("header", "all_files_same_headers")), options.get("delimiter", ",")
    has_names = header not in ("no_header", "False") and not (header == "from_first_file" and first is not None)
    frame = pandas.read_csv(
        path,
        sep=delimiter if len(delimiter) == 1 else re.escape(delimiter),
        engine="c" if len(delimiter) == 1 else "python",
        encoding=_encoding(options),
        header=0 if has_names else None,
        dtype=None if options.get("infer_column_types", True) else object,
        keep_default_na=False,
        na_values=[] if options.get("empty_as_string") else [""],
    )
    if header in ("no_header", "False"):
        frame.columns = [f"Column{number}" for number in range(1, frame.shape[1] + 1)]
    elif first is not None and header != "all_files_different_headers":
        frame.columns = first
    return frame


def _read_json_lines(pandas: Any, path: str, options: dict[str, Any], _: object) -> Any:
    records = []
    with open(path, encoding=_encoding(options)) as file:
        for line in filter(str.strip, file):
            try:
                records.append(json.loads(line))
            except ValueError:
                if options.get("invalid_lines") != "drop":
                    raise
    return pandas.DataFrame(records)


_READERS: dict[str, Any] = {
    "read_delimited": _read_delimited,
    "read_parquet": lambda pandas, path, _, __: pandas.read_parquet(path),
    "read_json_lines": _read_json_lines,
}


def _convert(pandas: Any, frame: Any, conversions: list[dict[str, Any]]) -> Any:
    for each in conversions:
        for name in _as_list(each["columns"]):
            if name in frame.columns:
                frame[name] = _convert_column(pandas, frame[name], each["column_type"])
    return frame


def _convert_column(pandas: Any, column: Any, kind: Any) -> Any:
    """Convert a column to another type. A value that cannot be converted is missing."""
    kind, options = _parse_step(kind)
    if kind in ("int", "float"):
        numbers = pandas.to_numeric(column, errors="coerce")
        return numbers.astype(float) if kind == "float" else numbers.map(int, na_action="ignore")
    if kind == "datetime":
        formats = options["formats"] if isinstance(options["formats"], list) else [options["formats"]]
        tries = [pandas.to_datetime(column, format=each, errors="coerce") for each in formats]
        return functools.reduce(lambda first, second: first.fillna(second), tries)
    texts = [str(value) if known else None for value, known in zip(column, column.notna())]
    if kind == "string":
        return pandas.Series(texts, index=column.index, dtype=object)
    values = {text.lower(): True for text in _as_list(options.get("true_values", "true"))}
    values.update((text.lower(), False) for text in _as_list(options.get("false_values", "false")))
    other = {"true": True, "false": False}.get(str(options.get("mismatch_as")).lower())
    found = [None if text is None else values.get(text.lower(), other) for text in texts]
    return pandas.Series(found, index=column.index, dtype=object if None in found else bool)


def _filter(pandas: Any, frame: Any, expression: str) -> Any:
    """Return the rows for which an expression such as ``col("n") > 2 and col("shop") == "x"`` is true, and known."""
    text = re.sub(r'col\("([^"]*)"\)', r"`\1`", expression.strip()).replace("datetime(", "@datetime(")
    with pandas.option_context("mode.string_storage", "python"):
        found = frame.convert_dtypes().eval(text, engine="python", local_dict={"datetime": datetime.datetime})
    return frame[found.fillna(False).astype(bool)]


def _sample(_: object, frame: Any, options: dict[str, Any]) -> Any:
    chance = random.Random(options.get("seed", 0))  # each process reads the table, and must have the same rows
    return frame[[chance.random() < options["probability"] for _ in range(len(frame))]]


_CHANGES: dict[str, Any] = {
    "convert_column_types": _convert,
    "drop_columns": lambda _, frame, names: frame.drop(columns=_as_list(names), errors="ignore"),
    "filter": _filter,
    "keep_columns": lambda _, frame, names: frame[[name for name in frame.columns if name in _as_list(names)]],
    "skip": lambda _, frame, count: frame.iloc[count:],
    "take": lambda _, frame, count: frame.head(count),
    "take_random_sample": _sample,
}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
