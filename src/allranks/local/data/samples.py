"""Samples of data, so that a first try takes seconds: files of a folder and rows of tables, evenly spaced.

Sampling is deterministic. A folder keeps at least one file of each suffix. A single table, and tables that are too few
to choose from, are sampled by row and keep their header.
"""

import csv
import hashlib
import json
import math
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import IO

from allranks.errors import InputError, Problem
from allranks.plan import file_tree
from allranks.text import count

_WITH_HEADER, _LINES, _PARQUET = (".csv", ".tsv"), (".jsonl", ".ndjson", ".txt"), ".parquet"
_TABLES = frozenset((*_WITH_HEADER, *_LINES, _PARQUET))


@dataclass(frozen=True)
class Sample:
    """The amount of data to keep. text: as the user wrote it. share: of the files or rows. most: their maximum"""

    text: str
    share: float = 1.0
    most: float = math.inf

    def size(self, amount: int) -> int:
        """Return the number of items to keep of `amount`, at least one."""
        return min(amount, max(1, int(min(math.ceil(amount * self.share), self.most))))

    def by_suffix(self, suffixes: Mapping[str, int]) -> dict[str, int]:
        """Return the number of files to keep in a folder, by suffix. Keep all tables that are sampled by row."""
        total = sum(suffixes.values())
        share = min(self.share, self.most / total if total else 1.0)
        kept = {suffix: min(amount, max(1, math.ceil(amount * share))) for suffix, amount in suffixes.items()}
        return kept | {suffix: suffixes[suffix] for suffix in _TABLES & kept.keys() if suffixes[suffix] * share < 1}


def parse(text: str) -> Sample | None:
    """Return the sample of ``1%`` or ``1000``; None for "". Raise InputError for another text."""
    if not text:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    if match and match[2] and 0 < float(match[1]) <= 100:
        return Sample(text, share=float(match[1]) / 100)
    if match and not match[2] and match[1].isdecimal() and int(match[1]):
        return Sample(text, most=int(match[1]))
    expected = "a percentage, such as 1%, or a number of files or rows, such as 1000"
    raise InputError(Problem("--sample", repr(text), expected))


def suffixes_of(names: Iterable[str]) -> Counter[str]:
    """Return the number of names by suffix."""
    return Counter(PurePosixPath(name).suffix.lower() for name in names)


def choose(names: Sequence[str], sample: Sample) -> list[str]:
    """Choose the files of a folder to keep. names: the names of all its files"""
    suffixes = suffixes_of(names)
    kept = sample.by_suffix(suffixes)
    seen: Counter[str] = Counter()
    result = []
    for name in sorted(names):
        suffix = PurePosixPath(name).suffix.lower()
        if _is_kept(seen[suffix], suffixes[suffix], kept[suffix]):
            result.append(name)
        seen[suffix] += 1
    return result


def make(source: Path, sample: Sample, folder: Path, before: Mapping[str, int] | None = None) -> tuple[Path, str]:
    """Make a sample of a file or folder. Return its path and a description.

    folder: the folder for samples
    before: the number of files of the folder by suffix, if some have been chosen already

    Raise OSError if something cannot be read or written.
    """
    if source.is_file():
        names, suffixes = [source.name], suffixes_of([source.name])
        kept, root = names, source.parent
        tables = [name for name in names if suffixes_of([name]).keys() & _TABLES]
    else:
        names = [entry.name for entry in file_tree.entries(source) if entry.kind == file_tree.FILE]
        suffixes, root = Counter(before or suffixes_of(names)), source
        kept = names if before else choose(names, sample)
        whole = {suffix for suffix, number in sample.by_suffix(suffixes).items() if number == suffixes[suffix]}
        tables = [name for name in kept if suffixes_of([name]).keys() & _TABLES & whole]
    if find_spec("pyarrow") is None:
        tables = [name for name in tables if not name.lower().endswith(_PARQUET)]
    files = f"{len(kept)} of {count(suffixes.total(), 'file')}"
    what = f"sample {sample.text}: {f'rows of {tables[0]}' if source.is_file() and tables else files}"
    if not tables and len(kept) == len(names):
        return source, what
    stats = [(name, (status := os.stat(root / name)).st_size, status.st_mtime_ns) for name in names]
    digest = hashlib.sha256(json.dumps([str(source), sample.text, stats]).encode()).hexdigest()[:16]
    target = folder / digest
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as new:
            for name in kept:
                path = Path(new, "data", name)
                path.parent.mkdir(parents=True, exist_ok=True)
                (_sample_table if name in tables else _copy)(root / name, path, sample)
            Path(new, "data").rename(target)
    return (target / source.name if source.is_file() else target), what


def _is_kept(index: int, total: int, number: int) -> bool:
    """Return whether an item is among `number` of `total` that are evenly spaced, the first one included."""
    return index * number % total < number


def _copy(source: Path, target: Path, sample: Sample) -> None:  # noqa: ARG001
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copyfile(source, target)


def _sample_table(source: Path, target: Path, sample: Sample) -> None:
    if source.suffix.lower() == _PARQUET:
        _sample_parquet(source, target, sample)
        return
    has_header = source.suffix.lower() in _WITH_HEADER
    with _open(source) as file:
        total = sum(1 for _ in _rows(file, has_header)) - has_header
    number = sample.size(total)
    with _open(source) as file, target.open("w", encoding="latin-1", newline="") as sink:
        for index, row in enumerate(_rows(file, has_header), -has_header):
            if index < 0 or _is_kept(index, total, number):
                sink.write(row)


def _open(path: Path) -> IO[str]:
    return path.open(encoding="latin-1", newline="")  # each byte is a character, whatever the encoding is


def _rows(file: IO[str], is_csv: bool) -> Iterator[str]:
    """Yield the rows as they are. In CSV, text in quotation marks may contain line ends."""
    if not is_csv:
        yield from file
        return
    lines: list[str] = []
    csv.field_size_limit(1 << 30)
    for _ in csv.reader(lines.append(line) or line for line in file):  # type: ignore[func-returns-value]
        yield "".join(lines)
        lines.clear()


def _sample_parquet(source: Path, target: Path, sample: Sample) -> None:
    import pyarrow.parquet  # 0.2 s

    with pyarrow.parquet.ParquetFile(source) as table:
        total, start = table.metadata.num_rows, 0
        number = sample.size(total)
        with pyarrow.parquet.ParquetWriter(target, table.schema_arrow) as writer:
            for batch in table.iter_batches():
                writer.write_batch(
                    batch.take([row for row in range(len(batch)) if _is_kept(start + row, total, number)])
                )
                start += len(batch)
