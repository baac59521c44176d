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
from result import report


def promote(files: Files, name: str, rules: Rules, given: dict[str, str | None], registration: Path) -> dict[str, Any]:
    """Decide, register the challenger if it is promoted, write registration.json and return its content.

    given: additional tags

    Raise BadInput if an input cannot be used, RegistryError if the registry refuses.
    """
    require_address()
    compared = read(files, rules.metric)
    decision = decide(compared.challenger, compared.champion, int(compared.selection["new"]), rules)
    version = None
    if decision.promoted:
        version, decision = registered(files, name, compared, rules, given, decision)
    content = {
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
    """Register the challenger with what it was trained on, and return the version.

    The files are logged as artifacts of this run first: Azure ML registers a run's artifacts, and its tracking server
    does not support the logged models that MLflow 3's log_model creates (azure-sdk-for-python#44896).
    """
    import mlflow
    from mlflow.exceptions import MlflowException

    try:
        with mlflow.start_run() as run:
            mlflow.log_artifacts(str(files.model), "model")
            # The next recurrence reads it from the model. One in the challenger's folder would be the champion's.
            mlflow.log_artifact(str(files.selection / "trained_on.json"), "model")
            version_tags = tags(compared, rules.metric, run.info.run_id, given)
            return str(mlflow.register_model(f"runs:/{run.info.run_id}/model", name, tags=version_tags).version)
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
    extra_tags = {"trigger_time": args.trigger_time, "code_version": args.code_version}
    try:
        result = promote(files, args.name, Rules(args.metric, args.margin, args.minimum), extra_tags, args.registration)
    except (BadInput, RegistryError) as error:
        print(f"promote_model: {error}", file=sys.stderr)
        sys.exit(2)
    became = f"registered as {args.name}, version {result['version']}" if result["version"] else "not registered"
    report(f"{became}: {result['reason']}")


if __name__ == "__main__":
    main()
