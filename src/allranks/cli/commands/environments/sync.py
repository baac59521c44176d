"""`allranks environments sync`: write what follows from the Dockerfiles."""

from __future__ import annotations

from pathlib import Path

from allranks.cli.options import EnvironmentNamesArgument, EnvironmentsOption


def sync(names: EnvironmentNamesArgument = None, folder: EnvironmentsOption = None) -> None:
    """Write what follows from the Dockerfiles.

    The base's stages into the others, and version, description and tags into each environment.yaml.
    """
    from allranks.cli.console import console
    from allranks.environments.find import environments_folder, find_environments
    from allranks.environments.sync import sync as write

    root = folder or environments_folder(Path.cwd())
    written = write(find_environments(root, tuple(names or ())), root)
    for path in written:
        console().print(f"written  {path}", soft_wrap=True)
    if not written:
        console().print("nothing to write")
