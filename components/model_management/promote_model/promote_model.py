"""Register a challenger if it is better than the champion."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from decision import Decision, Rules, decide
from lineage import BadInput, Compared, Files, read, tags

from allranks_steps.models.metric import GOALS, BadMetrics, Metric
from allranks_steps.models.mlmodel import BadModel
from allranks_steps.models.registry import RegistryError, newest, register, require_address
from allranks_steps.models.result import report


def promote(files: Files, name: str, rules: Rules, given: dict[str, str | None], registration: Path) -> dict[str, Any]:
    """Decide, register the challenger if it is promoted, write registration.json and return its content.

    given: additional tags

    Raise BadInput, BadMetrics or BadModel if an input cannot be used, RegistryError if the registry refuses.
    """
    require_address()
    compared = read(files, rules.metric.name)
    selection = compared.selection
    new = None if selection is None else int(selection["new"])
    decision = decide(compared.challenger, compared.champion, rules, new=new)
    version = None
    if decision.promoted:
        version, decision = registered(files, name, compared, rules, given, decision)
    content = {
        "name": name,
        "version": version,
        "promoted": decision.promoted,
        "reason": decision.reason,
        "metric": rules.metric.name,
        "goal": rules.metric.goal,
        "challenger": compared.challenger,
        "champion": compared.champion,
        "champion_version": compared.champion_version,
        "margin": rules.margin,
        "threshold": rules.threshold,
    }
    if selection is not None:
        content |= {"new_images": selection["new"], "data_version": selection["data_version"]}
    registration.mkdir(parents=True, exist_ok=True)
    (registration / "registration.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return content


def registered(
    files: Files, name: str, compared: Compared, rules: Rules, given: dict[str, str | None], decision: Decision
) -> tuple[str | None, Decision]:
    """Return the new version and the decision. The version is None if the registry's champion has changed meanwhile."""
    current = newest(name)
    number = current.number if current else None
    if number == compared.champion_version:
        return new_version(files, name, compared, rules, given), decision
    run = os.environ.get("AZUREML_ROOT_RUN_ID")
    if current and run and current.tags.get("parent_run") == run:
        # An earlier attempt of this step registered it.
        return number, decision
    now = f"version {number} is the champion" if number else "there is no champion"
    return None, Decision(False, f"{now} by now, with which nobody compared; the next recurrence does")


def new_version(files: Files, name: str, compared: Compared, rules: Rules, given: dict[str, str | None]) -> str:
    """Register the challenger, with what it was trained on if that is known, and return the version."""
    # The next recurrence reads it from the model. One in the challenger's folder would be the champion's.
    beside = () if files.selection is None else (files.selection / "trained_on.json",)
    return register(files.model, name, tags(compared, rules.metric.name, given), beside=beside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for folder in ("model", "metrics", "champion", "registration"):
        parser.add_argument(f"--{folder}", type=Path, required=True)
    parser.add_argument("--selection", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--metric", default="accuracy")
    parser.add_argument("--goal", choices=GOALS, default="maximize")
    parser.add_argument("--margin", type=float, default=0.0)
    parser.add_argument("--threshold", type=float)
    parser.add_argument("--trigger_time")
    parser.add_argument("--code_version")
    args = parser.parse_args()
    files = Files(args.model, args.metrics, args.champion, args.selection)
    extra_tags = {"trigger_time": args.trigger_time, "code_version": args.code_version}
    rules = Rules(Metric(args.metric, args.goal), args.margin, args.threshold)
    try:
        result = promote(files, args.name, rules, extra_tags, args.registration)
    except (BadInput, BadMetrics, BadModel, RegistryError) as error:
        print(f"promote_model: {error}", file=sys.stderr)
        sys.exit(2)
    became = f"registered as {args.name}, version {result['version']}" if result["version"] else "not registered"
    report(f"{became}: {result['reason']}")


if __name__ == "__main__":
    main()
