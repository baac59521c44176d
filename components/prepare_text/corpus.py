"""The texts of a folder, and which of them are for validation."""

from __future__ import annotations

import hashlib
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prepared_text import BadData

STDLIB = "stdlib"
_NOT_SOURCES = frozenset({"test", "tests", "idle_test", "site-packages", "dist-packages"})


@dataclass(frozen=True)
class Corpus:
    """Texts by the path of their file within the folder, in order; and how many files were left out, by the reason."""

    source: str
    texts: dict[str, str]
    skipped: dict[str, int]


def read(folder: Path | None, pattern: str) -> Corpus:
    """The text files of a folder that match a glob; of Python's standard library where the folder is None.

    Hidden files are passed over. A file with a zero byte, or that is not UTF-8, is left out and counted, and so is an
    empty one. Raises BadData where no folder, no file or no text is there.
    """
    root = Path(sysconfig.get_path("stdlib")) if folder is None else folder
    if not root.is_dir():
        raise BadData(f"{root} is not a folder. Give a folder with text files.")
    texts: dict[str, str] = {}
    skipped: Counter[str] = Counter()
    for file in _files(root, pattern, sources_only=folder is None):
        text = _text(file)
        if text:
            texts[file.relative_to(root).as_posix()] = text
        else:
            skipped["binary" if text is None else "empty"] += 1
    if not texts:
        found = f"{skipped.total()} without text" if skipped else "none"
        raise BadData(f"{root}: of the files that match {pattern!r}, {found}. Give text files in UTF-8.")
    return Corpus(STDLIB if folder is None else folder.name, texts, dict(skipped))


def divide(texts: dict[str, str], validation_fraction: float, seed: int) -> dict[str, list[str]]:
    """The texts of each split, whole files. Which is decided by the seed and the paths, not by the order of reading.

    Raises BadData where there are fewer than two.
    """
    if len(texts) < 2:
        raise BadData(f"{next(iter(texts))} is the only text. Give at least two files: one is kept for validation.")
    drawn = sorted(texts, key=lambda path: hashlib.sha256(f"{seed} {path}".encode()).digest())
    count = min(max(1, round(validation_fraction * len(drawn))), len(drawn) - 1)
    kept = set(drawn[:count])
    return {
        "train": [text for path, text in texts.items() if path not in kept],
        "validation": [text for path, text in texts.items() if path in kept],
    }


def _files(root: Path, pattern: str, *, sources_only: bool) -> Iterator[Path]:
    try:
        found = sorted(root.glob(pattern))
    except (ValueError, NotImplementedError) as error:
        raise BadData(f"pattern {pattern!r} is not a glob ({error}). Give one such as **/*.txt.") from None
    for file in found:
        parts = file.relative_to(root).parts
        if any(part.startswith(".") for part in parts) or not file.is_file():
            continue
        if sources_only and (file.suffix != ".py" or not _NOT_SOURCES.isdisjoint(parts)):
            continue
        yield file


def _text(file: Path) -> str | None:
    """The text of a file; None where it holds none."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise BadData(f"{file} cannot be read ({error.strerror}). Make it readable, or leave it out.") from None
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None
