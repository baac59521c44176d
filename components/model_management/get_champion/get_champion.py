"""Fetch the newest version of a registered model."""

import shutil
import tempfile
from pathlib import Path

from allranks.runtime import arguments
from allranks_steps.json_files import write_json
from allranks_steps.models.mlmodel import read_mlmodel, write_placeholder
from allranks_steps.models.registry import Version, newest, registry_error


def get_champion(name: str, model: Path, champion: Path) -> Version | None:
    """Write the newest version, or a placeholder if there is none, to `model`, and its number and tags to `champion`.

    Raise InputError if the registry does not answer, or the model is not in MLflow's format.
    """
    version = newest(name)
    if version is None:
        write_placeholder(model, f"nothing is registered as {name} yet")
    else:
        download(name, version.number, model)
    description = {
        "name": name,
        "version": version.number if version else None,
        "tags": dict(sorted(version.tags.items())) if version else {},
    }
    write_json(champion / "champion.json", description)
    return version


def download(name: str, version: str, folder: Path) -> None:
    """Copy the version's files into the folder."""
    import mlflow
    from mlflow.exceptions import MlflowException

    with tempfile.TemporaryDirectory() as temporary:
        try:
            files = Path(mlflow.artifacts.download_artifacts(f"models:/{name}/{version}", dst_path=temporary))
        except (MlflowException, OSError) as error:
            raise registry_error(f"the files of {name}, version {version}, cannot be downloaded: {error}") from None
        read_mlmodel(files, f"{name}, version {version}")
        shutil.copytree(files, folder, dirs_exist_ok=True)


def main() -> None:
    args = arguments()
    version = get_champion(args.name, args.model, args.champion)
    if version is None:
        print(f"nothing is registered as {args.name}")
    else:
        print(f"the champion is {args.name}, version {version.number}")


if __name__ == "__main__":
    main()
