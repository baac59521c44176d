"""The data of a parallel step: lists of files, and tables of rows that an MLTable describes."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

DEFAULT_BYTES = 1 << 20
PARTITION_FORMATS = ("extract_columns_from_partition_format", "extract_partition_format_into_columns")


class DataError(Exception):
    """The data cannot be divided; the message says why."""


class Data:
    """The inputs that are divided, as this instance sees them.

    settings: "inputs", for each a pair of its path and the transformations of its MLTable, or None
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._inputs: list[tuple[str, list[str] | None, list[tuple[str, Any]]]] = [
            (path, patterns, [_named(step) for step in steps]) for path, patterns, steps in settings["inputs"]
        ]
        self._keys: list[str] = settings["partition_keys"]
        self._size: int | None = settings["mini_batch_size"]
        self._table = functools.lru_cache(maxsize=None)(self._read_table)

    def of(self, items: Any) -> Any:
        """Return a mini-batch as the run function gets it: a list of paths, or rows as a DataFrame."""
        number, part = items
        if isinstance(part, dict):
            frame = self._table(number)
            rows = self._groups(number)[part["group"]][1] if "group" in part else slice(part["first"], part["end"])
            return frame.iloc[rows].reset_index(drop=True)
        path = self._inputs[number][0]
        return [os.path.join(path, name) if name else path for name in part]

    def split(self) -> Iterator[tuple[str, Any, dict[str, Any] | None]]:
        """Yield each mini-batch: a text that identifies it and its content, its items, and its partition.

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

    def _file_lists(self, number: int, files: Sequence[str]) -> Iterator[tuple[str, Any, dict[str, Any] | None]]:
        groups: list[tuple[dict[str, Any] | None, Sequence[str]]]
        if self._keys:
            found: dict[tuple[str, ...], list[str]] = {}
            for name in files:
                columns = self._partition(number, name)
                if missing := [key for key in self._keys if key not in columns]:
                    raise DataError(f"{name} has no value for the partition key {missing[0]}")
                found.setdefault(tuple(columns[key] for key in self._keys), []).append(name)
            groups = [(dict(zip(self._keys, values, strict=True)), names) for values, names in sorted(found.items())]
        else:
            size = self._size or 1
            groups = [(None, files[first : first + size]) for first in range(0, len(files), size)]
        for group, names in groups:
            yield " ".join(self._identity(number, name) for name in names), [number, names], group

    def _rows(self, number: int, files: Sequence[str]) -> Iterator[tuple[str, Any, dict[str, Any] | None]]:
        identity = " ".join(self._identity(number, name) for name in files)
        if self._keys:
            for place, (values, _) in enumerate(self._groups(number)):
                group = dict(zip(self._keys, values, strict=True))
                yield f"{identity} {values}", [number, {"group": place}], group
            return
        count = len(self._table(number))
        size = sum(os.path.getsize(self.of([number, [name]])[0]) for name in files)
        rows = max(1, round(count * (self._size or DEFAULT_BYTES) / max(1, size)))
        for first in range(0, count, rows):
            part = {"first": first, "end": min(first + rows, count)}
            yield f"{identity} {first}", [number, part], None

    @functools.cache  # noqa: B019 - the object lives as long as its process
    def _groups(self, number: int) -> list[tuple[tuple[Any, ...], Any]]:
        frame = self._table(number)
        if missing := [key for key in self._keys if key not in frame.columns]:
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
            import glob

            found = [
                name for pattern in patterns for name in sorted(glob.glob(os.path.join(path, pattern), recursive=True))
            ]
            nested = (_below(name) if os.path.isdir(name) else [name] for name in found)
            return [os.path.relpath(name, path) for names in nested for name in names]
        return [os.path.relpath(name, path) for name in _below(path)] if os.path.isdir(path) else [""]

    def _identity(self, number: int, name: str) -> str:
        status = os.stat(self.of([number, [name]])[0])
        return f"{number}:{name}:{status.st_size}:{status.st_mtime_ns}"

    def _partition(self, number: int, name: str) -> dict[str, str]:
        """Return the columns that an MLTable takes from the path of a file."""
        columns: dict[str, str] = {}
        for step, options in self._inputs[number][2]:
            if step in PARTITION_FORMATS:
                pattern = str(options["partition_format"])
                parts = re.split(r"\{(\w+)[^}]*\}", pattern.lstrip("/"))
                text = "".join(f"(?P<{part}>[^/]+?)" if odd % 2 else re.escape(part) for odd, part in enumerate(parts))
                match = re.search(f"(?:^|/){text.replace(re.escape('*'), '[^/]*')}$", name)
                if match is None:
                    raise DataError(f"{name} does not have the partition format {pattern}")
                columns |= match.groupdict()
        return columns

    def _read_table(self, number: int) -> Any:
        import pandas

        steps = self._inputs[number][2]
        frames = []
        reader, options = next(step for step in steps if step[0].startswith("read_"))
        for name in self._files(number):
            try:
                frame = _READERS[reader](pandas, self.of([number, [name]])[0], options)
            except Exception as error:  # the errors of pandas' readers have no common class
                raise DataError(f"{name} cannot be read: {type(error).__name__}: {error}") from error
            frames.append(frame.assign(**self._partition(number, name)))
        frame = pandas.concat(frames, ignore_index=True)
        for step, options in steps:
            if step in _CHANGES:
                frame = _CHANGES[step](frame, options)
        return frame


def _below(folder: str) -> list[str]:
    return sorted(os.path.join(at, name) for at, _, names in os.walk(folder, followlinks=True) for name in names)


def _plain(value: Any) -> Any:
    """Return a value of a column as JSON has it."""
    value = value.item() if hasattr(value, "item") else value
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def _named(step: Any) -> tuple[str, Any]:
    """Return the name and the options of a transformation: a text, or a mapping with one key."""
    name, options = (step, None) if isinstance(step, str) else next(iter(step.items()))
    return str(name), {} if options is None else options


def _delimited(pandas: Any, path: str, options: dict[str, Any]) -> Any:
    has_header = str(options.get("header", "all_files_same_headers")) not in ("no_header", "False")
    encoding = {"utf8": "utf-8", "iso88591": "latin-1", "latin1": "latin-1"}.get(str(options.get("encoding")), "utf-8")
    frame = pandas.read_csv(
        path,
        sep=options.get("delimiter", ","),
        header=0 if has_header else None,
        encoding=encoding,
        dtype=None if options.get("infer_column_types", True) else str,
    )
    return frame if has_header else frame.rename(columns=lambda place: f"Column{place + 1}")


_READERS: dict[str, Any] = {
    "read_delimited": _delimited,
    "read_parquet": lambda pandas, path, _: pandas.read_parquet(path),
    "read_json_lines": lambda pandas, path, _: pandas.read_json(path, lines=True),
}

_CHANGES: dict[str, Any] = {
    "keep_columns": lambda frame, names: frame[_columns(names)],
    "drop_columns": lambda frame, names: frame.drop(columns=_columns(names)),
    "take": lambda frame, count: frame.head(_count(count)),
    "skip": lambda frame, count: frame.iloc[_count(count) :],
}


def _columns(value: Any) -> list[Any]:
    value = value.get("columns", []) if isinstance(value, dict) else value
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _count(value: Any) -> int:
    return int(value["count"] if isinstance(value, dict) else value)
