"""The modules of the fine-tunings, and the folders that finetune_language_model takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from component_processes import folder_of

RECIPE = "finetune_language_model"
PLACES = ("base_model", "data", "model", "adapter", "checkpoints", "history")


def importer(code: Callable[[str, str], Any], component: str) -> Callable[[str], Any]:
    """Return a function that imports a module of a component, or of allranks_steps.finetuning."""
    own = [file.stem for file in folder_of(component).glob("*.py")]
    return lambda name: code(component, name if name in own else f"allranks_steps.finetuning.{name}")


@pytest.fixture
def recipe(code: Callable[[str, str], Any]) -> Callable[[str], Any]:
    """Imports a module of finetune_language_model."""
    return importer(code, RECIPE)
