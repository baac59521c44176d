"""The texts that a model is fine-tuned on, and their labels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem


@dataclass(frozen=True)
class Texts:
    """Texts, and a label for each text if they are labelled."""

    texts: tuple[str, ...]
    labels: tuple[str, ...] | None = None


def read(source: Path) -> Texts:
    """Read the texts of a file, or of all .txt and .jsonl files in a folder and its sub-folders.

    A .txt file is one text. A line of a .jsonl file is one text, as {"text": ..., "label": ...}; all lines may omit the
    label. Raise InputError if there is no text, a line is invalid, or only some texts have labels.
    """
    files = (
        sorted(file for file in source.rglob("*") if file.suffix in (".txt", ".jsonl")) if source.is_dir() else [source]
    )
    texts: list[str] = []
    labels: list[str] = []
    for file in files:
        if file.suffix == ".jsonl":
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
                if line.strip():
                    text, label = _line(file, number, line)
                    texts.append(text)
                    labels += [] if label is None else [label]
        elif text := file.read_text(encoding="utf-8", errors="replace").strip():
            texts.append(text)
    if not texts:
        raise InputError(Problem(f"input data ({source})", "no text", ".txt or .jsonl files", "look at the folder"))
    if labels and len(labels) != len(texts):
        found = f"{len(labels)} labels for {len(texts)} texts"
        raise InputError(
            Problem(f"input data ({source})", found, "a label for every text, or none", "complete the labels")
        )
    return Texts(tuple(texts), tuple(labels) or None)


def _line(file: Path, number: int, line: str) -> tuple[str, str | None]:
    try:
        record = json.loads(line)
        label = record.get("label")
        return str(record["text"]), None if label is None else str(label)
    except (ValueError, KeyError, AttributeError):
        expected = '{"text": "...", "label": "..."}, the label being optional'
        raise InputError(Problem(f"{file}:{number}", "not a text", expected, "correct the line")) from None
