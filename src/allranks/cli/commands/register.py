"""`allranks register`: register a project's components and environments for the designer, or write them to disk."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.text import Text

from allranks.azure import register as registering
from allranks.azure.errors import service_errors
from allranks.azure.workspace import connect, resolve
from allranks.catalog.export import SCRIPT, export
from allranks.catalog.releases import Release, release
from allranks.cli.console import console, errors, print_result, to_json
from allranks.cli.options import (
    AssetNamesArgument,
    AzureOptions,
    ChangesOption,
    ComponentsOption,
    JsonOption,
    LibraryOption,
    chosen_components,
)
from allranks.cli.parameters import option
from allranks.cli.views.uploads import amount, left_out_json, print_files
from allranks.errors import InputError, Problem
from allranks.sdk.session import session


def register(
    names: AssetNamesArgument = None,
    components: ComponentsOption = None,
    library: LibraryOption = False,
    target: Annotated[
        Path | None,
        option("--to", "Write them into this new or earlier folder, for the Azure CLI; register nothing.", "DIR"),
    ] = None,
    dry_run: ChangesOption = False,
    *,
    azure: AzureOptions,
    registry: Annotated[str, option("--registry", "Azure ML registry, instead of a workspace.", "NAME")] = "",
    json: JsonOption = False,
) -> None:
    """Register components for Azure ML's designer.

    Their environments are registered first. A version is derived from the content, so unchanged assets are skipped, and
    an interrupted registration resumes.

    --to writes them as YAML and code for `az ml component create` and `az ml environment create` instead. Each folder
    is self-contained. The same content always produces the same files. Other files in DIR are not changed.

    For example: allranks register train_lightning --dry-run
    """
    if registry and azure.workspace_name:
        found = f"the workspace {azure.workspace_name} is given too"
        raise InputError(Problem(f"--registry {registry}", found, "one of them", "remove one of the options"))
    if target is not None:
        if dry_run or azure != AzureOptions():
            found = "it is given together with --dry-run or a workspace"
            raise InputError(Problem(f"--to {target}", found, "one of them", "remove one"))
        _export(target, names, chosen_components(components, library), registry, json)
        return
    place = registry or resolve(azure)
    where = f"{'registry' if registry else 'workspace'} {place}"
    out = errors() if json else console()
    with tempfile.TemporaryDirectory(prefix="allranks-") as folder:
        releases = release(Path(folder), chosen_components(components, library), names or (), registry)
        with session():
            with service_errors("signing in"):
                client = connect(place)
            missing = registering.missing(client, releases)
            latest = registering.latest_versions(client, missing) if dry_run else {}
            if not dry_run:
                for number, each in enumerate(registering.register(client, missing, Path(folder)), 1):
                    out.print(f"registered  {each}  ({number} of {len(missing)})", soft_wrap=True)
        for each in missing if dry_run else ():
            _print_change(out, each, latest[str(each)])
        if json:
            assets = [
                _planned(each, latest)
                if dry_run
                else {**_row(each), "state": "registered" if each in missing else "there"}
                for each in releases
            ]
            print(to_json({"where": where, "dry_run": dry_run, "assets": assets}))
            return
        result = "would be registered" if dry_run else "registered"
        out.print(f"{where}: {len(missing)} {result}, {len(releases) - len(missing)} unchanged", soft_wrap=True)


def _export(folder: Path, names: Sequence[str] | None, components: Path | None, registry: str, json: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="allranks-") as staged:
        releases = release(Path(staged), components, names or (), registry)
        exported = export(releases, Path(staged), folder, registry)
    value = {"folder": str(folder), "releases": [_row(one) for one in releases], **exported._asdict()}
    counts = f"{len(exported.written)} written, {len(exported.removed)} removed, {len(exported.kept)} unchanged"
    command = f"register them: {folder / SCRIPT} --workspace-name NAME --resource-group NAME"
    print_result(json, value, f"{folder}: {len(releases)} assets; files: {counts}", command)


def _print_change(out: Any, release: Release, latest: str) -> None:
    mark, what = (("~ ", "yellow"), f"replaces {latest}") if latest else (("+ ", "green"), "new")
    size = amount(len(release.listed.files), release.listed.size())
    out.print(Text.assemble(mark, (str(release), "bold"), f"  {what}, {size}"), soft_wrap=True)
    print_files(out, release.listed.files, release.listed.left_out, "    ")


def _row(one: Release) -> dict[str, Any]:
    return {"kind": one.kind, "name": one.name, "version": one.version, "digest": one.digest}


def _planned(one: Release, latest: Mapping[str, str]) -> dict[str, Any]:
    """Return the row of a dry run. latest: the version registered last, by the releases that are not registered"""
    replaced = latest.get(str(one))
    upload = {
        "files": list(one.listed.files),
        "size": one.listed.size(),
        "left_out": left_out_json(one.listed.left_out),
    }
    state = "there" if replaced is None else "changed" if replaced else "new"
    return {**_row(one), "state": state, "latest": one.version if replaced is None else replaced, "upload": upload}
