"""Silence the SDK's output during uploads."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def quiet_uploads() -> Iterator[None]:
    """Drop what is printed inside of the block. The SDK ends each upload with coloured empty lines."""
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield
