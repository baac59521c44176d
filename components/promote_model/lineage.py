"""Read a challenger's lineage from the input files, and make the tags of its version."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class BadInput(Exception):
    """An input cannot be used. The message says which, and what to give; the registry is unchanged."""


@dataclass(frozen=True)
class Files:
    """The component's input folders."""

    model: Path
    metrics: Path
    champion: Path
    selection: Path


@dataclass(frozen=True)
class Compared:
    """The content of the files.

    champion:         its metric, None if there is none
    champion_version: None if there is none
    selection:        the content of selection.json
    code:             the digest of the training code, "" if the model has none
    """

    challenger: float
    champion: float | None
    champion_version: str | None
    selection: dict[str, Any]
    code: str


def read(files: Files, metric: str) -> Compared:
    """Read the files. Raise BadInput if one is missing or they do not belong together."""
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
    """Read a JSON file with at least these keys. Raise BadInput."""
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        missing = [key for key in keys if key not in content]
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(f"{file} cannot be used ({error}). Give the output `{expected}.") from None
    if missing:
        raise BadInput(f"{file} lacks {', '.join(missing)}. Give the output `{expected}.")
    return content


def code_of(model: Path) -> str:
    """Return the digest of the code that trained the model, from MLmodel's metadata. Raise BadInput."""
    import yaml

    file = model / "MLmodel"
    try:
        described = yaml.safe_load(file.read_text(encoding="utf-8"))
        return str((described.get("metadata") or {}).get("code", ""))
    except (OSError, ValueError, AttributeError, yaml.YAMLError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise BadInput(f"{file} describes no model ({reason}). Give a model in MLflow's format.") from None


def tags(compared: Compared, metric: str, run: str, given: dict[str, str | None]) -> dict[str, str]:
    """Return the tags of the version: strings, whose names have no colon (mlflow#8008).

    given: the user's tags; those without a value are omitted
    """
    selection = compared.selection
    lineage = {
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
        lineage["champion_version"] = str(compared.champion_version)
        lineage[f"champion_{metric}"] = f"{compared.champion:.4f}"
    return {name: value for name, value in (lineage | given).items() if value}
