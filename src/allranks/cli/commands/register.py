"""`allranks register`: register a project's components and environments for the designer, or write them to disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from allranks.azure.errors import service_errors
from allranks.azure.last_state import LastState, online_or_offline
from allranks.azure.workspace import WorkspaceOptions, connect, named, resolve
from allranks.cli.console import console, errors, print_result, to_json
from allranks.cli.options import (
    AssetNamesArgument,
    AzureOptions,
    ChangesOption,
    ComponentsOption,
    JsonOption,
    LibraryOption,
    OfflineOption,
    components_of,
    option,
    require_dry_run,
)
from allranks.errors import InputError, Problem
from allranks.history.formatting import plain

if TYPE_CHECKING:
    from allranks.azure.register import Difference, ServiceRegistry
    from allranks.catalog.releases import Release


def register(
    names: AssetNamesArgument = None,
    components: ComponentsOption = None,
    library: LibraryOption = False,
    target: Annotated[
        Path | None,
        option("--to", "Write them into this new or earlier folder, for the Azure CLI; register nothing.", "DIR"),
    ] = None,
    dry_run: ChangesOption = False,
    offline: OfflineOption = False,
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
    from allranks.catalog.releases import release

    require_dry_run(offline, dry_run)
    options = azure.of(registry)
    if target is not None:
        if dry_run or azure != AzureOptions():
            found = "it is given together with --dry-run or a workspace"
            raise InputError(Problem(f"--to {target}", found, "one of them", "remove one"))
        _export(target, names, components_of(components, library), registry, json)
        return
    if registry:
        where = f"registry {registry}"
    elif offline:
        name = named(options).workspace_name
        where = f"workspace {name}" if name else "no workspace is given"
    else:
        # Before the SDK is imported, which takes seconds.
        where = f"workspace {resolve(options)}"
    out = errors() if json else console()
    with tempfile.TemporaryDirectory(prefix="allranks-") as folder:
        releases = release(Path(folder), components_of(components, library), names or (), registry)
        if dry_run:
            differences, comparison = _differences(options, releases, offline)
            registered: list[Release] = []
            for difference in differences:
                _print_difference(out, difference)
        else:
            differences, comparison = (), ""
            registered = _registered(options, releases, Path(folder), out)
    if json:
        print(to_json(_rows(releases, registered, differences, dry_run, where, comparison)))
        return
    same = len(releases) - len(differences if dry_run else registered)
    result = f"{len(differences)} would be registered" if dry_run else f"{len(registered)} registered"
    out.print(f"{where}: {result}, {same} unchanged", soft_wrap=True)
    if comparison:
        out.print(comparison, soft_wrap=True)


def _export(folder: Path, names: Sequence[str] | None, components: Path | None, registry: str, json: bool) -> None:
    from allranks.catalog.export import SCRIPT, export
    from allranks.catalog.releases import release

    with tempfile.TemporaryDirectory(prefix="allranks-") as staged:
        releases = release(Path(staged), components, names or (), registry)
        exported = export(releases, Path(staged), folder, registry)
    value = {"folder": str(folder), "releases": [_row(one) for one in releases], **vars(exported)}
    counts = f"{len(exported.written)} written, {len(exported.removed)} removed, {len(exported.kept)} unchanged"
    command = f"register them: {folder / SCRIPT} --workspace-name NAME --resource-group NAME"
    print_result(json, value, f"{folder}: {len(releases)} assets; files: {counts}", command)


def _differences(
    options: WorkspaceOptions, releases: Sequence[Release], only_offline: bool
) -> tuple[Sequence[Difference], str]:
    """Return the changes, and the comparison's basis if it is not the service."""
    from allranks.azure.register import KnownRegistry, differences

    state = LastState.of(options)

    def online() -> Sequence[Difference]:
        with _service(options, state) as registry:
            return differences(registry, releases)

    def offline() -> tuple[Sequence[Difference], Sequence[float]]:
        registry = KnownRegistry(state)
        return differences(registry, releases), registry.used

    return online_or_offline(online, offline, "versions", only_offline=only_offline)


def _registered(options: WorkspaceOptions, releases: Sequence[Release], staged: Path, out: Any) -> list[Release]:
    """Register the releases that are not registered yet, and return them."""
    from allranks.azure import register as registering

    registered: list[Release] = []
    with _service(options, LastState.of(options)) as registry:
        missing = registering.missing(registry, releases)

        def report(release: Release) -> None:
            registered.append(release)
            out.print(f"registered  {release}  ({len(registered)} of {len(missing)})", soft_wrap=True)

        registering.register(registry, missing, staged, report)
    return registered


@contextmanager
def _service(options: WorkspaceOptions, state: LastState) -> Iterator[ServiceRegistry]:
    """Sign in to the service, and save afterwards what is known of it."""
    from allranks.azure.register import ServiceRegistry
    from allranks.sdk.session import session

    with session():
        with service_errors("signing in"):
            registry = ServiceRegistry(connect(options.registry_name or resolve(options)), state)
        try:
            yield registry
        finally:
            state.save()


def _print_difference(out: Any, difference: Difference) -> None:
    from rich.text import Text

    from allranks.cli.views.uploads import amount, print_files

    release = difference.release
    sent = amount(len(release.files), release.size)
    mark, what = ("~ ", "yellow"), f"replaces {difference.latest}"
    if not difference.latest:
        mark, what = ("+ ", "green"), "new"
    out.print(Text.assemble(mark, (str(release), "bold"), f"  {what}, {sent}"), soft_wrap=True)
    print_files(out, [name for name, _ in release.files], release.left_out, "    ")
    if not difference.latest:
        return
    styles = {"+": "green", "-": "red", "@": "bright_black"}
    for line in difference.spec[2:]:
        out.print(Text(f"    {plain(line)}", style=styles.get(line[:1], "")), soft_wrap=True)
    if difference.files is None:
        out.print("    its files are unknown: it was not registered by allranks")
    for name, change in difference.files or ():
        out.print(f"    {change:<8} {plain(name)}", soft_wrap=True)


def _row(one: Release) -> dict[str, Any]:
    return {"kind": one.kind, "name": one.name, "version": one.version, "digest": one.digest}


def _rows(
    releases: Sequence[Release],
    registered: Sequence[Release],
    differences: Sequence[Difference],
    dry_run: bool,
    where: str,
    comparison: str,
) -> dict[str, Any]:
    from allranks.cli.views.uploads import left_out_json

    changed = {(difference.release.kind, difference.release.name): difference for difference in differences}
    rows = []
    for release in releases:
        row = _row(release)
        if dry_run:
            difference = changed.get((release.kind, release.name))
            row["state"] = "there" if difference is None else "changed" if difference.latest else "new"
            row["latest"] = difference.latest if difference else release.version
            row["diff"] = list(difference.spec) if difference else []
            files = difference.files if difference else ()
            sent = {"files": [name for name, _ in release.files], "size": release.size}
            row["upload"] = {**sent, "left_out": left_out_json(release.left_out)}
            row["files"] = None if files is None else [{"name": name, "change": change} for name, change in files]
        else:
            row["state"] = "registered" if release in registered else "there"
        rows.append(row)
    return {"where": where, "dry_run": dry_run, "comparison": comparison or None, "assets": rows}
