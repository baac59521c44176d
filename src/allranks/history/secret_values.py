"""Store the secrets of an incomplete run in a file that only its user can read.

The stored plan does not contain them. A resumed run needs them. The file is removed when the run completes.
"""

import json
from collections.abc import Container, Mapping
from pathlib import Path

from allranks.errors import Problem, raise_any
from allranks.history.records import RunRecord
from allranks.secrets import MASK, is_secret_name, redact, secrets_in
from allranks.workspace import write_file

NAME = "secrets.json"


def save(folder: Path, values: Mapping[str, str]) -> None:
    """Write the values, by their place in the plan, into a file in the run's folder, if there are any."""
    if values:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / NAME, json.dumps(dict(values)), 0o600)


def of_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets among the inputs that a user has set, by their place."""
    return {f"--set {name}": text for name, text in settings.items() if is_secret_name(name) or redact(text) != text}


def settings_of(run: RunRecord, given: Container[str] = ()) -> dict[str, str]:
    """Return the inputs that a user has set for a run, with their secrets.

    given: names of inputs that have new values

    Raise InputError if a secret is gone.
    """
    values = load(Path(run.folder))
    settings = {name: values.get(f"--set {name}", text) for name, text in run.settings.items() if name not in given}
    found = "a secret, which is not stored"
    raise_any(
        Problem(f"input {name} of run {run.id}", found, "", f"add: --set {name}=VALUE", code="secrets-gone")
        for name, text in settings.items()
        if MASK in text
    )
    return settings


def load(folder: Path) -> dict[str, str]:
    """Return the values that `save` wrote; nothing if the file is missing or cannot be read."""
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
    (folder / NAME).unlink(missing_ok=True)
