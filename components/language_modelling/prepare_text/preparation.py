"""Read text files and write the folder of prepared text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import corpus
import encoding
import numpy as np
import tokenizing
import unigram
from corpus import HASHES, Corpus, Reader, hashed
from shard_writer import ShardWriter
from tokenizers import Tokenizer

from allranks_steps.text.prepared_text import DESCRIPTION, SPLITS, TOKENIZER, BadData, Description, write_description

LEARNED_FROM = 4_000_000
"""Number of characters to learn merges from: more text takes longer and changes few merges."""

PIECE_SHARE = LEARNED_FROM // 64
"""Maximum number of characters to learn from in one piece, so that a few long files do not decide."""


@dataclass(frozen=True)
class Request:
    """The component's inputs, which component.py describes."""

    folder: Path | None = None
    pattern: str = "**/*"
    text_field: str = "text"
    tokenizer: Path | None = None
    end_token: str = ""
    vocabulary_size: int = 2048
    validation_fraction: float = 0.02
    shard_tokens: int = 1 << 27
    num_workers: int = 0
    seed: int = 0


def prepare(request: Request, output: Path) -> Description:
    """Divide and tokenize the texts, and write them to the output. Raise BadData, and leave no files, if they cannot be
    used."""
    found = corpus.find(request.folder, request.pattern, request.text_field)
    limit = _limit(found, request)
    if request.tokenizer is not None:
        tokenizer = tokenizing.read(request.tokenizer)
    else:
        tokenizer = tokenizing.train(_sample(found, request.seed, limit), request.vocabulary_size)
    end = tokenizing.end_token(tokenizer, request.end_token)
    existed = output.is_dir()
    output.mkdir(parents=True, exist_ok=True)
    (output / DESCRIPTION).unlink(missing_ok=True)
    try:
        return _write(request, found, tokenizer, end, limit, output)
    except BaseException:
        for file in (output / TOKENIZER, *(file for split in SPLITS for file in output.glob(f"{split}-*.bin"))):
            file.unlink(missing_ok=True)
        if not existed:
            output.rmdir()
        raise


def _limit(found: Corpus, request: Request) -> int:
    """Return the hash below which documents are for validation. Raise BadData if there are fewer than two.

    It is the fraction of all hashes, except in a corpus of so few documents that one split would be empty.
    """
    limit = int(request.validation_fraction * HASHES)
    reader, lowest, highest, first = Reader(found), HASHES, -1, ""
    for document in (document for piece in found.pieces for document in reader.documents(piece)):
        place, first = hashed(document.key, request.seed), first or document.key
        lowest, highest = min(lowest, place), max(highest, place)
        if lowest < limit <= highest:
            return limit
    if highest < 0:
        raise BadData(
            f"{found.root}: of the files that match {request.pattern!r}, {reader.skipped.total()} without text. Give "
            f"text files in UTF-8."
        )
    if lowest == highest:
        raise BadData(f"{first} is the only text. Give at least two: one is kept for validation.")
    return min(max(limit, lowest + 1), highest)


def _write(request: Request, found: Corpus, tokenizer: Tokenizer, end: int, limit: int, output: Path) -> Description:
    size = tokenizing.vocabulary_size(tokenizer)
    dtype = "uint16" if size <= 1 << 16 else "uint32"
    writers = {split: ShardWriter(output, split, dtype, request.shard_tokens) for split in SPLITS}
    counts = {split: np.zeros(size, np.int64) for split in SPLITS}
    bytes_, documents, skipped = Counter[str](), Counter[str](), Counter[str]()
    task = encoding.Task(found, tokenizer.to_str(), end, request.seed, limit)
    for part in encoding.encoded(task, request.num_workers):
        for split, tokens in part.tokens.items():
            writers[split].append(tokens)
            counts[split] += np.bincount(tokens, minlength=size)
        bytes_ += part.bytes
        documents += part.documents
        skipped += part.skipped
    shards = {split: writer.close() for split, writer in writers.items()}
    (output / TOKENIZER).write_text(tokenizer.to_str(), encoding="utf-8")
    description = Description(
        source=found.source,
        vocabulary_size=size,
        end=end,
        dtype=dtype,
        documents={split: documents[split] for split in SPLITS},
        bytes={split: bytes_[split] for split in SPLITS},
        tokens={split: sum(shard.tokens for shard in shards[split]) for split in SPLITS},
        shards=shards,
        skipped=dict(skipped),
        unigram_perplexity=unigram.perplexity(counts["train"], counts["validation"]),
    )
    write_description(output, description)
    return description


def _sample(found: Corpus, seed: int, limit: int) -> Iterator[str]:
    """Yield about LEARNED_FROM characters of training documents, from pieces that the seed chooses."""
    remaining, reader = LEARNED_FROM, Reader(found)
    for piece in sorted(found.pieces, key=lambda piece: hashed(f"{piece.path}@{piece.start}", seed)):
        share = min(PIECE_SHARE, remaining)
        for document in reader.documents(piece):
            if share > 0 and hashed(document.key, seed) >= limit:
                yield document.text[:share]
                share -= len(document.text)
                remaining -= len(document.text)
        if remaining <= 0:
            return
