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
    """Texts by their relative path, sorted; and the number of skipped files by reason."""

    source: str
    texts: dict[str, str]
    skipped: dict[str, int]


def read(folder: Path | None, pattern: str) -> Corpus:
    """Read the text files of a folder that match a glob; of Python's standard library if the folder is None.

    Hidden files are ignored. A file that is empty, has a zero byte or is not UTF-8 is skipped and counted. Raise
    BadData if there is no folder, no file or no text.
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
    """Return the texts of each split. The split of a file depends on the seed and the paths, not on the reading order.

    Raise BadData if there are fewer than two texts.
    """
    if len(texts) < 2:
        raise BadData(f"{next(iter(texts))} is the only text. Give at least two files: one is kept for validation.")
    shuffled = sorted(texts, key=lambda path: hashlib.sha256(f"{seed} {path}".encode()).digest())
    count = min(max(1, round(validation_fraction * len(shuffled))), len(shuffled) - 1)
    validation = set(shuffled[:count])
    return {
        "train": [text for path, text in texts.items() if path not in validation],
        "validation": [text for path, text in texts.items() if path in validation],
    }


def _files(root: Path, pattern: str, *, sources_only: bool) -> Iterator[Path]:
    try:
        files = sorted(root.glob(pattern))
    except (ValueError, NotImplementedError) as error:
        raise BadData(f"pattern {pattern!r} is not a glob ({error}). Give one such as **/*.txt.") from None
    for file in files:
        parts = file.relative_to(root).parts
        if any(part.startswith(".") for part in parts) or not file.is_file():
            continue
        if sources_only and (file.suffix != ".py" or not _NOT_SOURCES.isdisjoint(parts)):
            continue
        yield file


def _text(file: Path) -> str | None:
    """Return the text of a file, None if it is not a text file."""
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
