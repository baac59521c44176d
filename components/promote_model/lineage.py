"""What a challenger comes from, as the files that are given tell it, and as tags of the version that it becomes."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class BadInput(Exception):
    """An input cannot be used. The message says which, and what to give; the registry is as it was."""


@dataclass(frozen=True)
class Files:
    """The folders that the component is given."""

    model: Path
    metrics: Path
    champion_metrics: Path
    champion: Path
    selection: Path


@dataclass(frozen=True)
class Compared:
    """What the files say.

    champion:         its metric, None where there is none
    champion_version: None where there is none
    selection:        what selection.json says
    code:             the digest of the training code, "" where the model does not say
    """

    challenger: float
    champion: float | None
    champion_version: str | None
    selection: dict[str, Any]
    code: str


def read(files: Files, metric: str) -> Compared:
    """Raises BadInput where a file is missing, or the two were not scored on the same data."""
    if not (files.model / "MLmodel").is_file():
        raise BadInput(f"{files.model} holds no file MLmodel. Give a model in MLflow's format.")
    challenger = scored(files.metrics, metric)
    champion = scored(files.champion_metrics, metric)
    about = document(files.champion / "champion.json", "champion` of get_champion", ("version",))
    needed = ("new", "held_out", "data_version", "held_out_version", "trained_on")
    selection = document(files.selection / "selection.json", "selection` of select_new_data", needed)
    if challenger["value"] is None:
        raise BadInput(f"{files.metrics} gives no {metric}. Give the metrics of the challenger.")
    if (champion["value"] is None) != (about["version"] is None):
        raise BadInput("champion and champion_metrics do not belong together: only one of them says that there is one.")
    if champion["value"] is not None and champion["on"] != challenger["on"]:
        raise BadInput(
            f"the challenger was scored on {challenger['on']} and the champion on {champion['on']}. "
            "Give the metrics of both on the same data."
        )
    return Compared(challenger["value"], champion["value"], about["version"], selection, code_of(files.model))


def scored(folder: Path, metric: str) -> dict[str, Any]:
    """The metric's value, None where there was no model, and what it was measured on."""
    found = document(folder / "metrics.json", "metrics` of an evaluation", (metric, "split", "count"))
    value = found[metric]
    return {"value": None if value is None else float(value), "on": f"{found['count']} images of {found['split']}"}


def document(file: Path, expected: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """A JSON file with at least these keys."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        missing = [key for key in keys if key not in found]
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(f"{file} cannot be used ({error}). Give the output `{expected}.") from None
    if missing:
        raise BadInput(f"{file} lacks {', '.join(missing)}. Give the output `{expected}.")
    return found


def code_of(model: Path) -> str:
    """The digest of the code that trained the model, as MLmodel's metadata has it."""
    import yaml

    described = yaml.safe_load((model / "MLmodel").read_text(encoding="utf-8"))
    return str((described.get("metadata") or {}).get("code", ""))


def tags(compared: Compared, metric: str, run: str, given: dict[str, str | None]) -> dict[str, str]:
    """The tags of the version: texts, whose names have no colon (mlflow#8008).

    given: tags that the user gives; those without a value are left out
    """
    selection = compared.selection
    found = {
        metric: f"{compared.challenger:.4f}",
        "data": str(selection.get("source", "")),
        "data_version": str(selection["data_version"]),
        "held_out_version": str(selection["held_out_version"]),
        "new_images": str(selection["new"]),
        "trained_on_images": str(selection["trained_on"]),
        "held_out_images": str(selection["held_out"]),
        "code": compared.code,
        "run": run,
        "parent_run": os.environ.get("AZUREML_ROOT_RUN_ID", ""),
    }
    if compared.champion is not None:
        found |= {"champion_version": str(compared.champion_version), f"champion_{metric}": f"{compared.champion:.4f}"}
    return {name: value for name, value in (found | given).items() if value}
