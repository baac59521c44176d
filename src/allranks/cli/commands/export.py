"""`allranks export`: write components as YAML and code for the Azure CLI."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from allranks.cli.commands.register import release_row
from allranks.cli.console import print_result
from allranks.cli.options import AssetNamesArgument, ComponentsOption, JsonOption, LibraryOption, components_of, option


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, or the folder of an earlier export.")],
    names: AssetNamesArgument = None,
    components: ComponentsOption = None,
    library: LibraryOption = False,
    registry: Annotated[
        str, option("--registry", "Registry of the environments that the components refer to.", "NAME")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Write components as YAML and code for the Azure CLI.

    Their environments are exported too. Use the files with `az ml component create` and `az ml environment create`.
    Each folder is self-contained. The same content always produces the same files. Files that are not part of an export
    are not changed.
    """
    from allranks.catalog.export import SCRIPT
    from allranks.catalog.export import export as write
    from allranks.catalog.releases import release

    with tempfile.TemporaryDirectory(prefix="allranks-") as staged:
        releases = release(Path(staged), components_of(components, library), names or (), registry)
        exported = write(releases, Path(staged), folder, registry)
    value = {"folder": str(folder), "releases": [release_row(one) for one in releases], **vars(exported)}
    counts = f"{len(exported.written)} written, {len(exported.removed)} removed, {len(exported.kept)} unchanged"
    command = f"register them: {folder / SCRIPT} --workspace-name NAME --resource-group NAME"
    print_result(json, value, f"{folder}: {len(releases)} assets; files: {counts}", command)
