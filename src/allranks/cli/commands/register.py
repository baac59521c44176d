"""`allranks register`: register a project's components and environments for the designer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from allranks.cli.options import (
    AzureWorkspaceOption,
    ComponentsOption,
    ConfigOption,
    JsonOption,
    RegistryOption,
    ResourceGroupOption,
    SubscriptionOption,
    workspace_options,
)

if TYPE_CHECKING:
    from allranks.azure.register import Difference
    from allranks.azure.workspace import WorkspaceOptions
    from allranks.components.releases import Release


def register(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Names of components or environments. Default: all.", show_default=False),
    ] = None,
    components: ComponentsOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would change; change nothing.")] = False,
    subscription: SubscriptionOption = "",
    resource_group: ResourceGroupOption = "",
    workspace: AzureWorkspaceOption = "",
    registry: RegistryOption = "",
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Register components for Azure ML's designer.

    Their environments are registered first. A version is derived from the content, so unchanged assets are skipped, and
    an interrupted registration resumes.

    For example: allranks register train_lightning --dry-run
    """
    import tempfile

    from allranks.azure.workspace import resolve
    from allranks.cli.console import console, errors
    from allranks.cli.views.json import to_json
    from allranks.components.releases import release

    options = workspace_options(subscription, resource_group, workspace, registry, config)
    # Before the SDK is imported, which takes seconds.
    where = f"registry {registry}" if registry else f"workspace {resolve(options)}"
    out = errors() if json else console()
    with tempfile.TemporaryDirectory(prefix="allranks-") as folder:
        releases = release(Path(folder), components, names or (), registry)
        done, found = _registered(options, releases, Path(folder), dry_run, out)
    if json:
        print(to_json(_rows(releases, done, found, dry_run, where)))
        return
    same = len(releases) - len(found if dry_run else done)
    result = f"{len(found)} would be registered" if dry_run else f"{len(done)} registered"
    out.print(f"{where}: {result}, {same} unchanged", soft_wrap=True)


def _registered(
    options: WorkspaceOptions, releases: Sequence[Release], staged: Path, dry_run: bool, out: Any
) -> tuple[list[Release], Sequence[Difference]]:
    """Return what was registered or, on a dry run, what would change."""
    from allranks.azure import register as registering
    from allranks.azure.errors import service_errors
    from allranks.azure.workspace import connect
    from allranks.sdk.session import session

    done: list[Release] = []
    with session():
        with service_errors("signing in"):
            client = connect(options)
        missing = registering.missing(client, releases)
        if dry_run:
            found = registering.differences(client, missing)
            for each in found:
                _print_difference(out, each)
            return done, found

        def report(one: Release) -> None:
            done.append(one)
            out.print(f"registered  {one}  ({len(done)} of {len(missing)})", soft_wrap=True)

        registering.register(client, missing, staged, report)
    return done, ()


def _print_difference(out: Any, found: Difference) -> None:
    from rich.text import Text

    from allranks.cli.views.uploads import amount, print_files
    from allranks.runs.formatting import plain

    one = found.release
    sent = amount(len(one.files), one.size)
    if not found.latest:
        out.print(Text.assemble(("+ ", "green"), (str(one), "bold"), f"  new, {sent}"), soft_wrap=True)
        print_files(out, [name for name, _ in one.files], one.left_out, "    ")
        return
    instead = f"  replaces {found.latest}, {sent}"
    out.print(Text.assemble(("~ ", "yellow"), (str(one), "bold"), instead), soft_wrap=True)
    print_files(out, [name for name, _ in one.files], one.left_out, "    ")
    styles = {"+": "green", "-": "red", "@": "bright_black"}
    for line in found.spec[2:]:
        out.print(Text(f"    {plain(line)}", style=styles.get(line[:1], "")), soft_wrap=True)
    if found.files is None:
        out.print("    its files are unknown: it was not registered by allranks")
    for name, what in found.files or ():
        out.print(f"    {what:<8} {plain(name)}", soft_wrap=True)


def release_row(one: Release) -> dict[str, Any]:
    """Return a release as a row of the JSON of `register` and `export`."""
    return {"kind": one.kind, "name": one.name, "version": one.version, "digest": one.digest}


def _rows(
    releases: Sequence[Release], done: Sequence[Release], found: Sequence[Difference], dry_run: bool, where: str
) -> dict[str, Any]:
    from allranks.cli.views.uploads import left_out_json

    changed = {(each.release.kind, each.release.name): each for each in found}
    rows = []
    for one in releases:
        row = release_row(one)
        if dry_run:
            each = changed.get((one.kind, one.name))
            row["state"] = "there" if each is None else "changed" if each.latest else "new"
            row["latest"] = each.latest if each else one.version
            row["diff"] = list(each.spec) if each else []
            files = each.files if each else ()
            sent = {"files": [name for name, _ in one.files], "size": one.size}
            row["upload"] = {**sent, "left_out": left_out_json(one.left_out)}
            row["files"] = None if files is None else [{"name": name, "change": what} for name, what in files]
        else:
            row["state"] = "registered" if one in done else "there"
        rows.append(row)
    return {"where": where, "dry_run": dry_run, "assets": rows}
