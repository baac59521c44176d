"""The folder that `prepare_text` writes and that training and evaluation read.

    description.json                      description of the text and its files: `Description`; written last
    tokenizer.json                        the tokenizer, in the format of the library `tokenizers`
    train-00000.bin, train-00001.bin ...  the tokens of a split in order, unsigned little-endian integers, no header
    validation-00000.bin ...

The documents of a split follow each other, each ending with the end token. The files are only mapped into memory, so
the ranks and loader workers of an instance share their pages, and a corpus may be larger than the memory.
"""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from allranks.errors import InputError
from allranks_steps.json_files import write_json
from allranks_steps.messages import bad_input

SPLITS = ("train", "validation")
DESCRIPTION = "description.json"
TOKENIZER = "tokenizer.json"
DTYPES = ("uint16", "uint32")
READ_THREADS = 8
"""Files whose checksums are computed in parallel by one process."""


@dataclass(frozen=True)
class Shard:
    """A file with tokens. sha256: of the file's content, as hexadecimal text."""

    file: str
    tokens: int
    sha256: str


@dataclass(frozen=True)
class Description:
    """The content of `description.json`.

    source:             the folder's name, or "stdlib"
    vocabulary_size:    one more than the highest id of the tokenizer
    end:                the id of the token that ends a document
    dtype:              of a token: "uint16" or "uint32"
    documents, bytes, tokens: of each split; the bytes are those of the text in UTF-8
    shards:             the files of each split, in order
    skipped:            number of skipped files, by reason
    unigram_perplexity: of the validation tokens under the frequencies of the training tokens
    """

    source: str
    vocabulary_size: int
    end: int
    dtype: str
    documents: Mapping[str, int]
    bytes: Mapping[str, int]
    tokens: Mapping[str, int]
    shards: Mapping[str, Sequence[Shard]]
    skipped: Mapping[str, int]
    unigram_perplexity: float


class Tokens:
    """The tokens of a split as one sequence over several files. A slice is read when it is used.

    len(tokens)          number of tokens
    tokens[start:stop]   a NumPy array of at most stop - start tokens, of the files' dtype
    """

    def __init__(self, files: Sequence[Path], counts: Sequence[int], dtype: str) -> None:
        self._ends = list(accumulate(counts))
        self._shards = [np.memmap(file, np.dtype(dtype).newbyteorder("<"), "r") for file in files]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, span: slice) -> NDArray[Any]:
        start, stop, _ = span.indices(len(self))
        parts: list[NDArray[Any]] = []
        while start < stop:
            shard = bisect_right(self._ends, start)
            first = self._ends[shard] - len(self._shards[shard])
            last = min(stop, self._ends[shard])
            parts.append(self._shards[shard][start - first : last - first])
            start = last
        return np.concatenate(parts) if len(parts) > 1 else np.asarray(parts[0] if parts else [])


def read_description(folder: Path) -> Description:
    """Read `description.json` in the folder. Raise InputError if the folder was not written by prepare_text."""
    file = folder / DESCRIPTION
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        shards = {split: [Shard(**shard) for shard in content["shards"][split]] for split in SPLITS}
        description = Description(**content | {"shards": shards})
    except FileNotFoundError:
        raise _unusable(f"{folder} holds no {DESCRIPTION}", "give the output `text` of prepare_text") from None
    except (ValueError, TypeError, KeyError) as error:
        raise _unusable(f"{file} is damaged ({error!r})") from None
    if description.dtype not in DTYPES:
        raise _unusable(f"{file}: the dtype is {description.dtype!r}, not {' or '.join(DTYPES)}")
    return description


def read_tokenizer(folder: Path) -> Tokenizer:
    """Return the tokenizer. Raise InputError if it is missing or damaged."""
    try:
        return Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # `tokenizers` raises nothing more specific
        raise _unusable(f"{folder / TOKENIZER} cannot be read: {error}") from None


def write_description(folder: Path, description: Description) -> None:
    """Write `description.json`."""
    write_json(folder / DESCRIPTION, asdict(description))


def read_tokens(folder: Path, description: Description, split: str) -> Tokens:
    """Map the tokens of one of the SPLITS. Raise InputError if a file is missing or has another size."""
    shards = description.shards[split]
    item = np.dtype(description.dtype).itemsize
    for shard in shards:
        file, expected = folder / shard.file, shard.tokens * item
        try:
            size = file.stat().st_size
        except OSError as error:
            raise _unusable(f"{file}: {error.strerror}") from None
        if size != expected:
            raise _unusable(f"{file} has {size:,} bytes, not the {expected:,} of {shard.tokens:,} tokens")
    return Tokens([folder / shard.file for shard in shards], [shard.tokens for shard in shards], description.dtype)


def verify(folder: Path, shards: Iterable[Shard]) -> None:
    """Compare the checksums of these files with their content. Raise InputError for the first one that differs."""
    with ThreadPoolExecutor(READ_THREADS) as pool:
        for shard, found in pool.map(lambda shard: (shard, _checksum(folder / shard.file)), shards):
            if found != shard.sha256:
                raise _unusable(f"{folder / shard.file}: the content does not match its checksum")


def _checksum(file: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal text. Raise InputError if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with file.open("rb") as content:
            while block := content.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise _unusable(str(error)) from None
    return digest.hexdigest()


def _unusable(found: str, fix: str = "run prepare_text again") -> InputError:
    return bad_input("input data", found, fix=fix)
