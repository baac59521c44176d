"""Write the documentation as data for fine-tuning: texts, conversations, preferences, labelled texts."""

import json
import random
from collections.abc import Sequence
from typing import Any

from docstrings import Documented, read

from allranks.runtime import arguments

Record = dict[str, Any]


def main() -> None:
    """Write the records of a kind. The same seed holds out the same names for every kind."""
    args = arguments()
    names = read([name for name in map(str.strip, args.packages.split(",")) if name])
    random.Random(args.seed).shuffle(names)
    held_out = max(1, round(args.validation_fraction * len(names)))
    for folder, split, members in (
        (args.train, "train", names[held_out:]),
        (args.validation, "validation", names[:held_out]),
    ):
        found = records(args.kind, members)
        folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in found)
        (folder / f"{split}.jsonl").write_text(lines, encoding="utf-8")
        print(f"{split}: {len(found):,} records")


def records(kind: str, names: Sequence[Documented]) -> list[Record]:
    """Return the records of a kind."""
    if kind == "text":
        return [{"text": as_text(name)} for name in names]
    if kind == "chat":
        return [chat for name in names for chat in conversations(name)]
    if kind == "preferences":
        return [preference(name, names[index - 1]) for index, name in enumerate(names)]
    return [{"text": name.summary, "label": name.package} for name in names]


def as_text(name: Documented) -> str:
    """Return a line of documentation."""
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
    """Return a question with the right answer, and an evasive answer about another name as the rejected one."""
    question = {"role": "user", "content": f"What does {name.name} do?"}
    chosen = {"role": "assistant", "content": f"{name.name} is a {name.kind}. {name.summary}"}
    rejected = {"role": "assistant", "content": f"I do not know. Perhaps: {other.summary}"}
    return {"prompt": [question], "chosen": [chosen], "rejected": [rejected]}


def _messages(question: str, answer: str) -> Record:
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


if __name__ == "__main__":
    main()
