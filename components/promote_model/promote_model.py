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
from registry import RegistryError, newest, require_address


def promote(files: Files, name: str, rules: Rules, given: dict[str, str | None], registration: Path) -> dict[str, Any]:
    """Decide, register the challenger where it is promoted, write registration.json and return what it says.

    given: further tags

    Raises BadInput where an input cannot be used, RegistryError where the registry refuses.
    """
    require_address()
    compared = read(files, rules.metric)
    decision = decide(compared.challenger, compared.champion, int(compared.selection["new"]), rules)
    version = None
    if decision.promoted:
        version, decision = registered(files, name, compared, rules, given, decision)
    said = {
        "name": name,
        "version": version,
        "promoted": decision.promoted,
        "reason": decision.reason,
        "metric": rules.metric,
        "challenger": compared.challenger,
        "champion": compared.champion,
        "champion_version": compared.champion_version,
        "margin": rules.margin,
        "new_images": compared.selection["new"],
        "data_version": compared.selection["data_version"],
    }
    registration.mkdir(parents=True, exist_ok=True)
    (registration / "registration.json").write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
    return said


def registered(
    files: Files, name: str, compared: Compared, rules: Rules, given: dict[str, str | None], decision: Decision
) -> tuple[str | None, Decision]:
    """The new version. None where the registry has another champion by now, with which nobody compared."""
    current = newest(name)
    number = current.number if current else None
    if number == compared.champion_version:
        return new_version(files, name, compared, rules, given), decision
    run = os.environ.get("AZUREML_ROOT_RUN_ID")
    if current and run and current.tags.get("parent_run") == run:
        # An earlier try of this step came as far as that.
        return number, decision
    now = f"version {number} is the champion" if number else "there is no champion"
    return None, Decision(False, f"{now} by now, with which nobody compared; the next recurrence does")


def new_version(files: Files, name: str, compared: Compared, rules: Rules, given: dict[str, str | None]) -> str:
    """Register the challenger with what it was trained on, and return the version.

    The files become artifacts of this run first: Azure ML registers what a run holds, and its tracking server does not
    know the logged models that MLflow 3's log_model would make (azure-sdk-for-python#44896).
    """
    import mlflow
    from mlflow.exceptions import MlflowException

    try:
        with mlflow.start_run() as run:
            mlflow.log_artifacts(str(files.model), "model")
            # The next recurrence reads it from there, and the challenger's own is the champion's.
            mlflow.log_artifact(str(files.selection / "trained_on.json"), "model")
            found = tags(compared, rules.metric, run.info.run_id, given)
            return str(mlflow.register_model(f"runs:/{run.info.run_id}/model", name, tags=found).version)
    except (MlflowException, OSError) as error:
        raise RegistryError(f"MLflow refused {name!r}: {error}") from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for folder in ("model", "metrics", "champion", "selection", "registration"):
        parser.add_argument(f"--{folder}", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--metric", default="accuracy")
    parser.add_argument("--margin", type=float, default=0.0)
    parser.add_argument("--minimum", type=float, default=0.0)
    parser.add_argument("--trigger_time")
    parser.add_argument("--code_version")
    args = parser.parse_args()
    files = Files(args.model, args.metrics, args.champion, args.selection)
    given = {"trigger_time": args.trigger_time, "code_version": args.code_version}
    try:
        said = promote(files, args.name, Rules(args.metric, args.margin, args.minimum), given, args.registration)
    except (BadInput, RegistryError) as error:
        print(f"promote_model: {error}", file=sys.stderr)
        sys.exit(2)
    became = f"registered as {args.name}, version {said['version']}" if said["version"] else "not registered"
    print(f"{became}: {said['reason']}")


if __name__ == "__main__":
    main()
