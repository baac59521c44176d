"""`allranks environments sync`: update the files that are generated from the Dockerfiles."""

from __future__ import annotations

from pathlib import Path

from allranks.cli.options import EnvironmentNamesArgument, EnvironmentsOption


def sync(names: EnvironmentNamesArgument = None, folder: EnvironmentsOption = None) -> None:
    """Update the files that are generated from the Dockerfiles.

    Copy the stages of the base into the other Dockerfiles, and write version, description and tags into each
    environment.yaml.
    """
    from allranks.cli.console import console
    from allranks.environments.find import environments_folder, find_environments
    from allranks.environments.sync import sync as write

    root = folder or environments_folder(Path.cwd())
    written = write(find_environments(root, tuple(names or ())), root)
    for path in written:
        console().print(f"written  {path}", soft_wrap=True)
    if not written:
        console().print("everything is up to date")
