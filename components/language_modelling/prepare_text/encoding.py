"""Encode the pieces of a corpus, in this process or in several."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tokenizing
from corpus import Corpus, Piece, Reader, hashed
from numpy.typing import NDArray
from tokenizers import Tokenizer

from allranks_steps.text.prepared_text import SPLITS

POOLED_FROM = 64 << 20
"""Size of a corpus from which several processes are worth their start: the library tokenizers has threads, too."""


@dataclass(frozen=True)
class Task:
    """What is encoded.

    tokenizer: as JSON
    end:       the id of the token after each document
    limit:     documents whose hash is below it are for validation
    """

    corpus: Corpus
    tokenizer: str
    end: int
    seed: int
    limit: int


@dataclass
class Encoded:
    """The tokens of some pieces by split, (count,) uint32, and what they were made from.

    bytes, documents: by split
    """

    tokens: dict[str, NDArray[Any]]
    bytes: Counter[str] = field(default_factory=Counter)
    documents: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)


def encoded(task: Task, num_workers: int) -> Iterator[Encoded]:
    """Encode the corpus, and yield its parts in order.

    num_workers: number of processes; 0: one for each core, or only this one for a small corpus
    """
    units = task.corpus.units()
    if num_workers == 0:
        num_workers = len(os.sched_getaffinity(0)) if task.corpus.bytes >= POOLED_FROM else 1
    num_workers = min(num_workers, len(units))
    if num_workers <= 1:
        encoder = _Encoder(task)
        yield from map(encoder.encode, units)
        return
    pool = ProcessPoolExecutor(num_workers, multiprocessing.get_context("spawn"), _start_worker, (task,))
    try:
        pending: deque[Future[Encoded]] = deque()
        for unit in units:
            pending.append(pool.submit(_encode, unit))
            if len(pending) > 2 * num_workers:  # bounds what waits to be written
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


class _Encoder:
    def __init__(self, task: Task) -> None:
        self._task = task
        self._tokenizer = Tokenizer.from_str(task.tokenizer)

    def encode(self, unit: Sequence[Piece]) -> Encoded:
        task, reader = self._task, Reader(self._task.corpus)
        documents = [document for piece in unit for document in reader.documents(piece)]
        result = Encoded({}, skipped=reader.skipped)
        parts: dict[str, list[NDArray[Any]]] = {split: [np.empty(0, np.uint32)] for split in SPLITS}
        ids = tokenizing.encode(self._tokenizer, [document.text for document in documents])
        for document, tokens in zip(documents, ids, strict=True):
            split = "validation" if hashed(document.key, task.seed) < task.limit else "train"
            parts[split] += [tokens, np.array([task.end] * document.ends, np.uint32)]
            result.bytes[split] += len(document.text.encode())
            result.documents[split] += document.ends
        result.tokens = {split: np.concatenate(arrays) for split, arrays in parts.items()}
        return result


_encoder: _Encoder


def _start_worker(task: Task) -> None:
    global _encoder
    # One thread per worker: there are as many workers as cores.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _encoder = _Encoder(task)


def _encode(unit: Sequence[Piece]) -> Encoded:
    return _encoder.encode(unit)
