"""evaluate_language_model: every token counts once on any number of ranks, and what does not fit is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from allranks.errors import InputError

Importer = Callable[[str, str], Any]


@pytest.mark.parametrize(
    ("vocabulary", "said"), [(None, "holds no artifacts/language_model/config.json"), (300, "300 tokens, and 257")]
)
def test_a_model_that_does_not_fit(
    code: Importer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vocabulary: int | None, said: str
) -> None:
    code("prepare_text", "prepared_text")
    code("train_language_model", "language_model")
    evaluate = code("evaluate_language_model", "evaluate")
    if vocabulary is not None:
        shape = SimpleNamespace(vocabulary_size=vocabulary)
        monkeypatch.setattr(evaluate, "read", lambda _: SimpleNamespace(shape=shape))
    with pytest.raises(InputError, match=said):
        evaluate.load(tmp_path, SimpleNamespace(vocabulary_size=257))
