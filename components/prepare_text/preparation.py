"""Read text files and write the folder of prepared text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import corpus
import tokenizing
import unigram
from prepared_text import END, Description, write


@dataclass(frozen=True)
class Request:
    """The component's inputs, which component.py describes."""

    folder: Path | None
    pattern: str
    vocabulary_size: int
    validation_fraction: float
    seed: int


def prepare(request: Request, output: Path) -> Description:
    """Read, divide and tokenize the texts, and write them to the output. Raise BadData before anything is written."""
    raw = corpus.read(request.folder, request.pattern)
    texts = corpus.divide(raw.texts, request.validation_fraction, request.seed)
    tokenizer = tokenizing.train(texts["train"], request.vocabulary_size)
    tokens = {split: tokenizing.encode(tokenizer, part) for split, part in texts.items()}
    description = Description(
        source=raw.source,
        vocabulary_size=request.vocabulary_size,
        end=tokenizer.token_to_id(END),
        files={split: len(part) for split, part in texts.items()},
        bytes={split: sum(len(text.encode()) for text in part) for split, part in texts.items()},
        tokens={split: len(values) for split, values in tokens.items()},
        skipped=raw.skipped,
        unigram_perplexity=unigram.perplexity(tokens["train"], tokens["validation"], request.vocabulary_size),
    )
    write(output, description, tokenizer.to_str(), tokens)
    return description
