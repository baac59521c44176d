"""The file of a component's environment, which the SDK forgets when it has read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from allranks.environments.find import REGISTERED


def environment_file(component: Any) -> Path | None:
    """Return the file of the environment that a component names; None where it names one of Azure's, or has it within
    it."""
    found = getattr(component, "environment", None)
    if found is None or isinstance(found, str):
        return None
    source = Path(found._source_path) if found._source_path else None
    # The SDK gives an inline environment the component's own file.
    if source and source.name not in ("component.yaml", Path(str(component._source_path)).name):
        return source
    beside = Path(found.path) / REGISTERED if found.path else None
    return beside if beside and beside.is_file() else None


def name_in(file: Path) -> str:
    """Return the name that an environment's file gives it; "" where it gives none, or cannot be read."""
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return ""  # `allranks environments check` says what is wrong with it
    return str(found.get("name") or "") if isinstance(found, dict) else ""
