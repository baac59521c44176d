"""Read text files and write the folder of prepared text."""

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from typing import Any

import corpus
import encoding
import numpy as np
import tokenizing
from corpus import HASHES, Corpus, Reader, hashed
from numpy.typing import NDArray
from shard_writer import ShardWriter
from tokenizers import Tokenizer

from allranks.runtime import arguments
from allranks_steps.messages import bad_input
from allranks_steps.text.prepared_text import DESCRIPTION, SPLITS, TOKENIZER, Description, write_description

LEARNED_FROM = 4_000_000
"""Number of characters to learn merges from: more text takes longer and changes few merges."""

PIECE_SHARE = LEARNED_FROM // 64
"""Maximum number of characters to learn from in one piece, so that a few long files do not dominate."""


def main() -> None:
    description = prepare(arguments())
    for split, documents in description.documents.items():
        tokens, size = description.tokens[split], description.bytes[split]
        print(f"{split}: {tokens:,} tokens of {size:,} bytes in {documents:,} documents")
    for why, count in description.skipped.items():
        print(f"left out: {count} files ({why})")
    print(f"perplexity of a unigram model on the validation tokens: {description.unigram_perplexity:.1f}")


def prepare(args: Namespace) -> Description:
    """Divide and tokenize the texts, and write them to the output. Raise InputError, and leave no files, if the texts
    cannot be used."""
    found = corpus.find(args.folder, args.pattern, args.text_field)
    limit = _limit(found, args)
    if args.tokenizer is not None:
        tokenizer = tokenizing.read(args.tokenizer)
    else:
        tokenizer = tokenizing.train(_sample(found, args.seed, limit), args.vocabulary_size)
    end = tokenizing.end_token(tokenizer, args.end_token)
    output, existed = args.text, args.text.is_dir()
    output.mkdir(parents=True, exist_ok=True)
    (output / DESCRIPTION).unlink(missing_ok=True)
    try:
        return _write(args, found, tokenizer, end, limit)
    except BaseException:
        for file in (output / TOKENIZER, *(file for split in SPLITS for file in output.glob(f"{split}-*.bin"))):
            file.unlink(missing_ok=True)
        if not existed:
            output.rmdir()
        raise


def _limit(found: Corpus, args: Namespace) -> int:
    """Return the hash below which documents are for validation. Raise InputError if there are fewer than two.

    It is the fraction of all hashes, except in a corpus of so few documents that one split would be empty.
    """
    limit = int(args.validation_fraction * HASHES)
    reader, lowest, highest, first = Reader(found.root, found.text_field), HASHES, -1, ""
    for document in (document for piece in found.pieces for document in reader.documents(piece)):
        place, first = hashed(document.key, args.seed), first or document.key
        lowest, highest = min(lowest, place), max(highest, place)
        if lowest < limit <= highest:
            return limit
    if highest < 0:
        raise corpus.no_text(found.root, args.pattern, f"{reader.skipped.total()} without text")
    if lowest == highest:
        fix = "give at least two: one is kept for validation"
        raise bad_input("input folder", f"{first} is the only text", fix=fix)
    return min(max(limit, lowest + 1), highest)


def _write(args: Namespace, found: Corpus, tokenizer: Tokenizer, end: int, limit: int) -> Description:
    size = tokenizing.vocabulary_size(tokenizer)
    dtype = "uint16" if size <= 1 << 16 else "uint32"
    writers = {split: ShardWriter(args.text, split, dtype, args.shard_tokens) for split in SPLITS}
    counts = {split: np.zeros(size, np.int64) for split in SPLITS}
    bytes_, documents, skipped = Counter[str](), Counter[str](), Counter[str]()
    task = encoding.Task(tokenizer.to_str(), end, args.seed, limit)
    for part in encoding.encoded(found, task, args.num_workers):
        for split, tokens in part.tokens.items():
            writers[split].append(tokens)
            counts[split] += np.bincount(tokens, minlength=size)
        bytes_ += part.bytes
        documents += part.documents
        skipped += part.skipped
    shards = {split: writer.close() for split, writer in writers.items()}
    (args.text / TOKENIZER).write_text(tokenizer.to_str(), encoding="utf-8")
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
        unigram_perplexity=unigram_perplexity(counts["train"], counts["validation"]),
    )
    write_description(args.text, description)
    return description


def _sample(found: Corpus, seed: int, limit: int) -> Iterator[str]:
    """Yield about LEARNED_FROM characters of training documents, from pieces that the seed chooses."""
    remaining, reader = LEARNED_FROM, Reader(found.root, found.text_field)
    for piece in sorted(found.pieces, key=lambda piece: hashed(f"{piece.path}@{piece.start}", seed)):
        share = min(PIECE_SHARE, remaining)
        for document in reader.documents(piece):
            if share > 0 and hashed(document.key, seed) >= limit:
                yield document.text[:share]
                share -= len(document.text)
                remaining -= len(document.text)
        if remaining <= 0:
            return


def unigram_perplexity(train: NDArray[Any], validation: NDArray[Any]) -> float:
    """Return the perplexity of the validation tokens for a model that knows the training frequencies only, with add-one
    smoothing.

    train, validation: how often each token occurs, (vocabulary_size,)
    """
    smoothed = train + 1
    surprise = -np.log(smoothed / smoothed.sum())
    return float(np.exp((surprise * validation).sum() / validation.sum()))


if __name__ == "__main__":
    main()
