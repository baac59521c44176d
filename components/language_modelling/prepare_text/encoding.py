"""Encode the pieces of a corpus, in this process or in several."""

import functools
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tokenizing
from corpus import Corpus, Piece, Reader, hashed
from joblib import Parallel, delayed
from numpy.typing import NDArray
from tokenizers import Tokenizer

from allranks_steps.text.prepared_text import SPLITS

POOLED_FROM = 64 << 20
"""Size of a corpus from which starting several processes pays off. The library tokenizers also uses threads."""


@dataclass(frozen=True)
class Task:
    """How documents are encoded.

    tokenizer: as JSON
    end:       the id of the token after each document
    limit:     documents whose hash is below it are for validation
    """

    tokenizer: str
    end: int
    seed: int
    limit: int


@dataclass
class Encoded:
    """The tokens of some pieces by split, (count,) uint32, and counts of the text.

    bytes, documents: by split
    """

    tokens: dict[str, NDArray[Any]]
    bytes: Counter[str] = field(default_factory=Counter)
    documents: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)


def encoded(corpus: Corpus, task: Task, num_workers: int) -> Iterator[Encoded]:
    """Encode the corpus, and yield its parts in order.

    num_workers: number of processes; 0: one for each core, or only this one for a small corpus
    """
    units = corpus.units()
    if num_workers == 0:
        num_workers = len(os.sched_getaffinity(0)) if corpus.bytes >= POOLED_FROM else 1
    num_workers = max(1, min(num_workers, len(units)))
    if num_workers > 1:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # there are as many processes as cores
    # As many parts are encoded ahead as the processes need to stay busy.
    parallel = Parallel(num_workers, return_as="generator", pre_dispatch="2*n_jobs", batch_size=1)
    yield from parallel(delayed(_encode)(task, Reader(corpus.root, corpus.text_field), unit) for unit in units)


def _encode(task: Task, reader: Reader, unit: Sequence[Piece]) -> Encoded:
    documents = [document for piece in unit for document in reader.documents(piece)]
    result = Encoded({}, skipped=reader.skipped)
    parts: dict[str, list[NDArray[Any]]] = {split: [np.empty(0, np.uint32)] for split in SPLITS}
    ids = tokenizing.encode(_tokenizer(task.tokenizer), [document.text for document in documents])
    for document, tokens in zip(documents, ids, strict=True):
        split = "validation" if hashed(document.key, task.seed) < task.limit else "train"
        parts[split] += [tokens, np.array([task.end] * document.ends, np.uint32)]
        result.bytes[split] += len(document.text.encode())
        result.documents[split] += document.ends
    result.tokens = {split: np.concatenate(arrays) for split, arrays in parts.items()}
    return result


@functools.cache
def _tokenizer(text: str) -> Tokenizer:
    return Tokenizer.from_str(text)
