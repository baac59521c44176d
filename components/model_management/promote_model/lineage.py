"""Read a challenger's lineage from the input files, and create the tags of its version."""

import json
import os
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks_steps.messages import bad_input
from allranks_steps.models.metric import baseline_value, metric_value, read_metrics
from allranks_steps.models.mlmodel import read_mlmodel


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


def read(args: Namespace) -> Compared:
    """Read the input files. Raise InputError if one is missing or they do not belong together."""
    described = read_mlmodel(args.model)
    metrics = read_metrics(args.metrics)
    if "baseline" not in metrics:
        found = f"{args.metrics / 'metrics.json'} lacks baseline"
        raise bad_input("input metrics", found, fix="give the champion to the evaluation as its baseline")
    champion = baseline_value(metrics, args.metric, args.metrics)
    version = document(args.champion / "champion.json", "champion` of get_champion", ("version",))["version"]
    if (champion is None) != (version is None):
        found = "they do not belong together: only one of them has a champion"
        raise bad_input("inputs metrics and champion", found)
    return Compared(
        challenger=metric_value(metrics, args.metric, args.metrics),
        champion=champion,
        champion_version=version,
        source=str(metrics.get("source", "")),
        selection=None if args.selection is None else read_selection(args.selection, metrics),
        code=str((described.get("metadata") or {}).get("code", "")),
    )


def read_selection(folder: Path, metrics: dict[str, Any]) -> dict[str, Any]:
    """Return the content of selection.json. Raise InputError if the scored data differ from its held-out data."""
    needed = ("new", "held_out", "data_version", "held_out_version", "trained_on")
    selection = document(folder / "selection.json", "selection` of select_new_data", needed)
    split, count = metrics.get("split"), metrics.get("count")
    if (split, count) != ("test", selection["held_out"]):
        found = f"{count} images of {split} were scored, and {selection['held_out']} are held out"
        raise bad_input("input metrics", found, "the metrics of the test split of the same selection")
    return selection


def document(file: Path, output: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Read a JSON file that has these keys. Raise InputError. output: with the file, for the message"""
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        missing = [key for key in keys if key not in content]
        found = f"{file} lacks {', '.join(missing)}"
    except (OSError, ValueError, TypeError) as error:
        content, missing, found = {}, list(keys), f"{file} cannot be used: {error}"
    if missing:
        raise bad_input(f"input {file.stem}", found, fix=f"give the output `{output}")
    return content


def tags(compared: Compared, args: Namespace) -> dict[str, str]:
    """Return the tags of the version: strings, whose names have no colon (mlflow#8008). Those without a value are
    omitted."""
    lineage = {
        args.metric: f"{compared.challenger:.4f}",
        "data": compared.source,
        "code": compared.code,
        "parent_run": os.environ.get("AZUREML_ROOT_RUN_ID", ""),
        "trigger_time": args.trigger_time,
        "code_version": args.code_version,
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
        lineage[f"champion_{args.metric}"] = f"{compared.champion:.4f}"
    return {name: value for name, value in lineage.items() if value}
