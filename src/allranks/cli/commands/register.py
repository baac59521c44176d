"""`allranks register`: register a project's components and environments for the designer, or write them to disk."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.text import Text

from allranks.azure import register as registering
from allranks.azure.errors import service_errors
from allranks.azure.register import Difference, differences
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
    option,
)
from allranks.cli.views.uploads import amount, left_out_json, print_files
from allranks.errors import InputError, Problem
from allranks.sdk.session import session
from allranks.text import plain


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
            changes = differences(client, releases) if dry_run else ()
            registered = [] if dry_run else _registered(client, releases, Path(folder), out)
    for change in changes:
        _print_difference(out, change)
    if json:
        print(to_json(_rows(releases, registered, changes, dry_run, where)))
        return
    same = len(releases) - len(changes if dry_run else registered)
    result = f"{len(changes)} would be registered" if dry_run else f"{len(registered)} registered"
    out.print(f"{where}: {result}, {same} unchanged", soft_wrap=True)


def _export(folder: Path, names: Sequence[str] | None, components: Path | None, registry: str, json: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="allranks-") as staged:
        releases = release(Path(staged), components, names or (), registry)
        exported = export(releases, Path(staged), folder, registry)
    value = {"folder": str(folder), "releases": [_row(one) for one in releases], **exported._asdict()}
    counts = f"{len(exported.written)} written, {len(exported.removed)} removed, {len(exported.kept)} unchanged"
    command = f"register them: {folder / SCRIPT} --workspace-name NAME --resource-group NAME"
    print_result(json, value, f"{folder}: {len(releases)} assets; files: {counts}", command)


def _registered(client: Any, releases: Sequence[Release], staged: Path, out: Any) -> list[Release]:
    """Register the releases that are not registered yet, and return them."""
    registered: list[Release] = []
    missing = registering.missing(client, releases)

    def report(release: Release) -> None:
        registered.append(release)
        out.print(f"registered  {release}  ({len(registered)} of {len(missing)})", soft_wrap=True)

    registering.register(client, missing, staged, report)
    return registered


def _print_difference(out: Any, difference: Difference) -> None:
    release = difference.release
    sent = amount(len(release.listed.files), release.listed.size())
    mark = ("~ ", "yellow") if difference.latest else ("+ ", "green")
    what = f"replaces {difference.latest}" if difference.latest else "new"
    out.print(Text.assemble(mark, (str(release), "bold"), f"  {what}, {sent}"), soft_wrap=True)
    print_files(out, release.listed.files, release.listed.left_out, "    ")
    styles = {"+": "green", "-": "red", "@": "bright_black"}
    for line in difference.spec[2:]:
        out.print(Text(f"    {plain(line)}", style=styles.get(line[:1], "")), soft_wrap=True)


def _row(one: Release) -> dict[str, Any]:
    return {"kind": one.kind, "name": one.name, "version": one.version, "digest": one.digest}


def _rows(
    releases: Sequence[Release],
    registered: Sequence[Release],
    differences: Sequence[Difference],
    dry_run: bool,
    where: str,
) -> dict[str, Any]:
    changed = {(difference.release.kind, difference.release.name): difference for difference in differences}
    rows = []
    for each in releases:
        row = _row(each)
        if dry_run:
            difference = changed.get((each.kind, each.name))
            row["state"] = "there" if difference is None else "changed" if difference.latest else "new"
            row["latest"] = difference.latest if difference else each.version
            row["diff"] = list(difference.spec) if difference else []
            sent = {"files": list(each.listed.files), "size": each.listed.size()}
            row["upload"] = {**sent, "left_out": left_out_json(each.listed.left_out)}
        else:
            row["state"] = "registered" if each in registered else "there"
        rows.append(row)
    return {"where": where, "dry_run": dry_run, "assets": rows}
