"""Write the tokens of a split to files of a fixed number of tokens."""

import hashlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from allranks_steps.text.prepared_text import Shard


class ShardWriter:
    """Append tokens, and begin a new file whenever the current one is full.

    dtype:        "uint16" or "uint32"
    shard_tokens: number of tokens per file; the last one may have fewer
    """

    def __init__(self, folder: Path, split: str, dtype: str, shard_tokens: int) -> None:
        self._folder, self._split, self._shard_tokens = folder, split, shard_tokens
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._shards: list[Shard] = []
        self._file: IO[bytes] | None = None

    def append(self, tokens: NDArray[Any]) -> None:
        """Append tokens."""
        while len(tokens):
            if self._file is None:
                self._file = (self._folder / self._name).open("wb")
                self._count, self._digest = 0, hashlib.sha256()
            part = tokens[: self._shard_tokens - self._count]
            content = part.astype(self._dtype).tobytes()
            self._file.write(content)
            self._digest.update(content)
            self._count += len(part)
            tokens = tokens[len(part) :]
            if self._count == self._shard_tokens:
                self._close_file()

    def close(self) -> list[Shard]:
        """Close the last file, and return all files."""
        self._close_file()
        return self._shards

    @property
    def _name(self) -> str:
        return f"{self._split}-{len(self._shards):05}.bin"

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._shards.append(Shard(self._name, self._count, self._digest.hexdigest()))
