"""The modules of the fine-tunings, and the folders that finetune_language_model takes."""

from collections.abc import Callable
from typing import Any

import pytest
from component_processes import COMPONENTS, folder_of

STEPS = COMPONENTS / "shared/allranks_steps"
RECIPE = "finetune_language_model"
PLACES = ("base_model", "data", "model", "adapter", "checkpoints", "history")


def importer(code: Callable[[str, str], Any], component: str) -> Callable[[str], Any]:
    """Return a function that imports a module of a component, or of allranks_steps.finetuning or .text."""
    folders = {"": folder_of(component)} | {f"allranks_steps.{name}.": STEPS / name for name in ("finetuning", "text")}
    names = {file.stem: f"{package}{file.stem}" for package, folder in folders.items() for file in folder.glob("*.py")}
    return lambda name: code(component, names[name])


@pytest.fixture
def recipe(code: Callable[[str, str], Any]) -> Callable[[str], Any]:
    """Imports a module of finetune_language_model."""
    return importer(code, RECIPE)
