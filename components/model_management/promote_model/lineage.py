"""Read a challenger's lineage from the input files, and make the tags of its version."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks_steps.models.metric import baseline_of, read_metrics, value_of
from allranks_steps.models.mlmodel import read_mlmodel


class BadInput(Exception):
    """An input cannot be used. The message says which, and what to give; the registry is unchanged."""


@dataclass(frozen=True)
class Files:
    """The component's input folders. selection: None if the data was not selected by select_new_data."""

    model: Path
    metrics: Path
    champion: Path
    selection: Path | None = None


@dataclass(frozen=True)
class Compared:
    """The content of the files.

    champion:         its metric, None if there is none
    champion_version: None if there is none
    source:           the data that was scored, "" if the evaluation does not say
    selection:        the content of selection.json, None without it
    code:             the digest of the training code, "" if the model has none
    """

    challenger: float
    champion: float | None
    champion_version: str | None
    source: str
    selection: dict[str, Any] | None
    code: str


def read(files: Files, metric: str) -> Compared:
    """Read the files. Raise BadInput, BadMetrics or BadModel if one is missing or they do not belong together."""
    described = read_mlmodel(files.model)
    metrics = read_metrics(files.metrics)
    if "baseline" not in metrics:
        raise BadInput(f"{files.metrics / 'metrics.json'} lacks baseline. Give the champion to the evaluation as well.")
    champion = baseline_of(metrics, metric, files.metrics)
    about = document(files.champion / "champion.json", "champion` of get_champion", ("version",))
    if (champion is None) != (about["version"] is None):
        raise BadInput("metrics and champion do not belong together: only one of them says that there is a champion.")
    return Compared(
        challenger=value_of(metrics, metric, files.metrics),
        champion=champion,
        champion_version=about["version"],
        source=str(metrics.get("source", "")),
        selection=None if files.selection is None else selection_of(files.selection, metrics),
        code=str((described.get("metadata") or {}).get("code", "")),
    )


def selection_of(folder: Path, metrics: dict[str, Any]) -> dict[str, Any]:
    """Return the content of selection.json. Raise BadInput if other data was scored than it holds out."""
    needed = ("new", "held_out", "data_version", "held_out_version", "trained_on")
    selection = document(folder / "selection.json", "selection` of select_new_data", needed)
    split, count = metrics.get("split"), metrics.get("count")
    if (split, count) != ("test", selection["held_out"]):
        raise BadInput(
            f"{count} images of {split} were scored, and {selection['held_out']} are held out. "
            "Give the metrics of the test split of the same selection."
        )
    return selection


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


def tags(compared: Compared, metric: str, given: dict[str, str | None]) -> dict[str, str]:
    """Return the tags of the version: strings, whose names have no colon (mlflow#8008).

    given: the user's tags; those without a value are omitted
    """
    lineage = {
        metric: f"{compared.challenger:.4f}",
        "data": compared.source,
        "code": compared.code,
        "parent_run": os.environ.get("AZUREML_ROOT_RUN_ID", ""),
    }
    if selection := compared.selection:
        lineage |= {
            "data": str(selection.get("source", "")),
            "data_version": str(selection["data_version"]),
            "held_out_version": str(selection["held_out_version"]),
            "new_images": str(selection["new"]),
            "trained_on_images": str(selection["trained_on"]),
            "held_out_images": str(selection["held_out"]),
        }
    if compared.champion is not None:
        lineage["champion_version"] = str(compared.champion_version)
        lineage[f"champion_{metric}"] = f"{compared.champion:.4f}"
    return {name: value for name, value in (lineage | given).items() if value}
