"""Fetch the newest version of a registered model."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from allranks_steps.models import no_model
from allranks_steps.models.registry import RegistryError, Version, newest


def get_champion(name: str, model: Path, champion: Path) -> Version | None:
    """Write the newest version, or a placeholder if there is none, to `model`, and its number and tags to `champion`.

    Raise RegistryError if the registry does not answer, or the model is not in MLflow's format.
    """
    version = newest(name)
    if version is None:
        no_model.write(model, f"nothing is registered as {name} yet")
    else:
        download(name, version.number, model)
    champion.mkdir(parents=True, exist_ok=True)
    description = {
        "name": name,
        "version": version.number if version else None,
        "tags": dict(sorted(version.tags.items())) if version else {},
    }
    (champion / "champion.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    return version


def download(name: str, version: str, folder: Path) -> None:
    """Copy the version's files into the folder."""
    import mlflow
    from mlflow.exceptions import MlflowException

    with tempfile.TemporaryDirectory() as temporary:
        try:
            files = Path(mlflow.artifacts.download_artifacts(f"models:/{name}/{version}", dst_path=temporary))
        except (MlflowException, OSError) as error:
            raise RegistryError(f"the files of {name}, version {version}, cannot be downloaded: {error}") from None
        if not (files / "MLmodel").is_file():
            raise RegistryError(f"{name}, version {version}, holds no file MLmodel. It has to be an MLflow model.")
        shutil.copytree(files, folder, dirs_exist_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--champion", type=Path, required=True)
    args = parser.parse_args()
    try:
        version = get_champion(args.name, args.model, args.champion)
    except RegistryError as error:
        print(f"get_champion: {error}", file=sys.stderr)
        sys.exit(2)
    if version is None:
        print(f"nothing is registered as {args.name}")
    else:
        print(f"the champion is {args.name}, version {version.number}")


if __name__ == "__main__":
    main()
