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
    """Raises BadInput where a file is missing, or one does not belong to the others."""
    if not (files.model / "MLmodel").is_file():
        raise BadInput(f"{files.model} holds no file MLmodel. Give a model in MLflow's format.")
    scores = (metric, "baseline", "split", "count")
    metrics = document(files.metrics / "metrics.json", "metrics` of an evaluation with a baseline", scores)
    baseline = metrics["baseline"]
    about = document(files.champion / "champion.json", "champion` of get_champion", ("version",))
    needed = ("new", "held_out", "data_version", "held_out_version", "trained_on")
    selection = document(files.selection / "selection.json", "selection` of select_new_data", needed)
    if (baseline is None) != (about["version"] is None):
        raise BadInput("metrics and champion do not belong together: only one of them says that there is a champion.")
    if (metrics["split"], metrics["count"]) != ("test", selection["held_out"]):
        raise BadInput(
            f"{metrics['count']} images of {metrics['split']} were scored, and {selection['held_out']} are held out. "
            "Give the metrics of the test split of the same selection."
        )
    champion = None if baseline is None else float(baseline[metric])
    return Compared(float(metrics[metric]), champion, about["version"], selection, code_of(files.model))


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
