"""Write the documentation as data for fine-tuning: texts, conversations, preferences, labelled texts."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docstrings import Documented

SPLITS = ("train", "validation")

Record = dict[str, Any]


@dataclass(frozen=True)
class Folders:
    """The folder of each kind of data."""

    text: Path
    chat: Path
    preferences: Path
    labelled: Path


def prepare(names: Sequence[Documented], validation_fraction: float, seed: int, folders: Folders) -> dict[str, int]:
    """Write train.jsonl and validation.jsonl to each folder, and return the number of names in each split."""
    shuffled = list(names)
    random.Random(seed).shuffle(shuffled)
    held_out = max(1, round(validation_fraction * len(shuffled)))
    splits = {"train": shuffled[held_out:], "validation": shuffled[:held_out]}
    for split, members in splits.items():
        _write(folders.text / f"{split}.jsonl", [{"text": as_text(name)} for name in members])
        _write(folders.chat / f"{split}.jsonl", [chat for name in members for chat in conversations(name)])
        pairs = [preference(name, members[index - 1]) for index, name in enumerate(members)]
        _write(folders.preferences / f"{split}.jsonl", pairs)
        _write(folders.labelled / f"{split}.jsonl", [{"text": name.summary, "label": name.package} for name in members])
    return {split: len(members) for split, members in splits.items()}


def as_text(name: Documented) -> str:
    """Return a line as documentation has it."""
    arguments = "" if name.kind == "class" else f"({', '.join(name.arguments)})"
    return f"{name.kind} {name.name}{arguments}: {name.summary}"


def conversations(name: Documented) -> list[Record]:
    """Return questions about a name, with their answers."""
    result = [_messages(f"What does {name.name} do?", f"{name.name} is a {name.kind}. {name.summary}")]
    if name.arguments:
        count = f"{len(name.arguments)} argument{'s' * (len(name.arguments) > 1)}"
        answer = f"{name.name} takes {count}: {', '.join(name.arguments)}."
        result.append(_messages(f"Which arguments does {name.name} take?", answer))
    return result


def preference(name: Documented, other: Documented) -> Record:
    """Return a question with the right answer, and as the worse one an evasion that names another documentation."""
    question = {"role": "user", "content": f"What does {name.name} do?"}
    chosen = {"role": "assistant", "content": f"{name.name} is a {name.kind}. {name.summary}"}
    rejected = {"role": "assistant", "content": f"I do not know. Perhaps: {other.summary}"}
    return {"prompt": [question], "chosen": [chosen], "rejected": [rejected]}


def _messages(question: str, answer: str) -> Record:
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


def _write(file: Path, lines: Sequence[Record]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
