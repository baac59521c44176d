"""create_base_model: the texts that it reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from allranks.errors import InputError

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("finetuning")]
"""One process of pytest imports Transformers, for the fine-tunings too."""


def test_the_lines_of_jsonl_end_at_line_feeds_alone(code: Callable[[str, str], Any], tmp_path: Path) -> None:
    read = code("create_base_model", "create").read
    texts = ["one\u2028two", "three\x85four", "five"]
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    (tmp_path / "a.jsonl").write_text("\r\n".join(lines) + "\n\n", encoding="utf-8")
    assert read(tmp_path) == texts


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "input text: no text in"),
        (b'{"text": "a"}\n[]\n', r"input text, .*a\.jsonl:2: \[\]"),
        (b"\xff", r"input text, .*a\.jsonl: 'utf-8' codec"),
    ],
)
def test_texts_that_cannot_be_read(code: Callable[[str, str], Any], tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=said):
        code("create_base_model", "create").read(tmp_path)
