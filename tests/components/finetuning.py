"""The modules of finetune_language_model, and the folders that it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RECIPE = "finetune_language_model"
PLACES = ("base_model", "data", "model", "adapter", "checkpoints", "history")


@pytest.fixture
def recipe(code: Callable[[str, str], Any]) -> Callable[[str], Any]:
    """Imports a module of the recipe."""
    return lambda name: code(RECIPE, name)
