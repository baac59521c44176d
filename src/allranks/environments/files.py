"""Find the file of a component's environment, whose path the SDK does not keep after loading it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from allranks.environments.find import REGISTERED
from allranks.sdk import bounded_yaml, internals


def environment_file(component: Any) -> Path | None:
    """Return the file of a component's environment; None if that is inline or registered in Azure ML."""
    environment = getattr(component, "environment", None)
    if environment is None or isinstance(environment, str):
        return None
    source = Path(internals.source_path(environment)) if internals.source_path(environment) else None
    # The SDK gives an inline environment the component's own file.
    if source and source.name not in ("component.yaml", Path(internals.source_path(component)).name):
        return source
    beside = Path(environment.path) / REGISTERED if environment.path else None
    return beside if beside and beside.is_file() else None


def name_in(file: Path) -> str:
    """Return the name in an environment's file; "" if it has none or cannot be read."""
    try:
        content = bounded_yaml.load_file(file)
    except (OSError, ValueError, yaml.YAMLError):
        return ""  # `allranks environments check` reports it
    return str(content.get("name") or "") if isinstance(content, dict) else ""
