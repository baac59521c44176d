"""Store the secrets of an incomplete run in a file that only its user can read.

The stored plan does not contain them. A resumed run needs them; after completion the file is removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Container, Mapping
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.history.records import RunRecord
from allranks.secrets import MASK, is_secret_name, redact, secrets_in

NAME = "secrets.json"


def save(folder: Path, values: Mapping[str, str]) -> None:
    """Write the values, by their place in the plan, into a file in the run's folder, unless there are none."""
    if not values:
        return
    folder.mkdir(parents=True, exist_ok=True)
    remove(folder)
    descriptor = os.open(folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(dict(values), file)


def of_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets among the inputs that a user has set, by their place."""
    return {f"--set {name}": text for name, text in settings.items() if is_secret_name(name) or redact(text) != text}


def settings_of(run: RunRecord, given: Container[str] = ()) -> dict[str, str]:
    """Return the inputs that a user has set for a run, with their secrets.

    given: names of inputs that the user gives again, whose earlier values are not needed

    Raise InputError if a secret is gone.
    """
    values = load(Path(run.folder))
    settings = {name: values.get(f"--set {name}", text) for name, text in run.settings.items() if name not in given}
    found = "a secret, which is not stored"
    if gone := [name for name, text in settings.items() if MASK in text]:
        raise InputError.of(
            Problem(f"input {name} of run {run.id}", found, "", f"add: --set {name}=VALUE", code="secrets-gone")
            for name in gone
        )
    return settings


def load(folder: Path) -> dict[str, str]:
    """Return the values that `save` wrote; an empty mapping if the file is missing or cannot be read."""
    try:
        values = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(place): str(value) for place, value in values.items()} if isinstance(values, dict) else {}


def known(run: RunRecord) -> frozenset[str]:
    """Return the secrets of an incomplete run, to be masked wherever they occur."""
    values = load(Path(run.folder)).values()
    return frozenset(values).union(*(secrets_in(value) for value in values))


def remove(folder: Path) -> None:
    """Remove the file, if there is one."""
    (folder / NAME).unlink(missing_ok=True)
