"""`allranks verify-workspace`: compare what a workspace gives processes with what the local engine gives them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.options import (
    AzureWorkspaceOption,
    ConfigOption,
    FolderOption,
    InstancesChoice,
    InstancesOption,
    JsonOption,
    ResourceGroupOption,
    SubscriptionOption,
    workspace_options,
)
from allranks.cli.params import SetOption, settings_of

if TYPE_CHECKING:
    from allranks.runs.records import RunRecord
    from allranks.runs.workspace import Workspace

PIPELINE = "pipelines/verify_workspace.py"


def verify_workspace(
    size: Annotated[
        str,
        typer.Option("--size", metavar="SIZE", help="Run serverless on this Azure size.", show_default=False),
    ] = "",
    compute: Annotated[
        str, typer.Option("--compute", metavar="NAME", help="Run on this cluster.", show_default=False)
    ] = "",
    job: Annotated[
        str,
        typer.Option("--job", metavar="RUN", help="Compare this run, which was submitted before.", show_default=False),
    ] = "",
    settings: SetOption = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the report.")] = Path(
        "docs/azure-proof"
    ),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Submit without asking.")] = False,
    pipeline: Annotated[
        Path | None,
        typer.Option(
            "--pipeline",
            metavar="FILE",
            help=f"The pipeline. Default: {PIPELINE} in this folder or a parent.",
            show_default=False,
        ),
    ] = None,
    instances: InstancesOption = InstancesChoice.AUTO,
    subscription: SubscriptionOption = "",
    resource_group: ResourceGroupOption = "",
    workspace: AzureWorkspaceOption = "",
    config: ConfigOption = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Verify that a workspace gives the processes of a job what the local engine gives them.

    A pipeline runs on this machine and on Azure ML: preflight, collectives, the check of an environment, a training,
    and a record of every rank's variables, paths, mounts and user. The report names each difference. Nothing is
    registered by name. Exit with 1 if there are differences, or a step fails.

    For example: allranks verify-workspace --size Standard_D4s_v5
    """
    from allranks.cli.commands.submit import changes_of, submit_job
    from allranks.runs.workspace import Workspace

    file = str(pipeline or _find(Path.cwd()))
    place = Workspace.at(folder)
    values = settings_of(settings, None)
    options = workspace_options(subscription, resource_group, workspace, config=config)
    changes = changes_of(compute, [size] if size else [], "", "", [])
    if not job:
        _require_place(size, compute)
        _agree(file, size or compute, yes)
    local = _run_here(file, values, place, instances.value, json)
    record = _submitted(job, folder) if job else submit_job(file, values, changes, options, place, json=json)
    _report(record, local, size, output, json)


def _find(start: Path) -> Path:
    from allranks.errors import InputError, Problem

    for parent in (start, *start.parents):
        if (parent / PIPELINE).is_file():
            return parent / PIPELINE
    raise InputError(
        Problem(str(start), f"no {PIPELINE} in this folder or its parents", "", "change to a clone of allranks")
    )


def _require_place(size: str, compute: str) -> None:
    from allranks.errors import InputError, Problem

    if not size and not compute:
        fix = "for example: --size Standard_D4s_v5"
        raise InputError(Problem("allranks verify-workspace", "no compute is given", "--size or --compute", fix))


def _agree(file: str, where: str, yes: bool) -> None:
    """Ask before anything is submitted, because it costs money. Exit with 2 if the answer is no."""
    from allranks.errors import InputError, Problem

    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(Problem("allranks verify-workspace", "there is no terminal to ask", "", "agree to it: --yes"))
    if not typer.confirm(f"Submit {file} to run on {where}, some 10 minutes of 2 instances?"):
        sys.exit(2)


def _run_here(file: str, settings: dict[str, str], place: Workspace, instances: str, json: bool) -> RunRecord:
    """Run the steps that record their launch on this machine. Exit with 1 if one fails."""
    from allranks.api import jobs
    from allranks.azure.verification.results import RECORDS
    from allranks.cli.execute import execute
    from allranks.local import engine
    from allranks.local.options import Options
    from allranks.local.selection import Selection
    from allranks.runs.observer import Observer

    plan = jobs.read(file, settings, place, track=False)
    selection = Selection.of(None, None, [step for step, _ in RECORDS.values()])
    records = []

    def run(observer: Observer) -> RunRecord:
        options = Options(instances, track=False, selection=selection, target=file, settings=settings)
        records.append(engine.run(plan, place, options, observer))
        return records[-1]

    execute(run, json, prints_record=False)
    return records[0]


def _submitted(identity: str, folder: Path | None) -> RunRecord:
    from allranks.azure.watch import finder
    from allranks.errors import InputError, Problem

    record = finder(folder)(identity)
    if record.submitted is None or not record.status.ended:
        found = "it ran on this machine" if record.submitted is None else f"it is {record.status}"
        raise InputError(Problem(f"--job {identity}", found, "a run on Azure ML that has ended"))
    return record


def _report(record: RunRecord, local: RunRecord, size: str, folder: Path, json: bool) -> None:
    from allranks.azure.verification import report
    from allranks.azure.verification.results import compare_runs, save_reports
    from allranks.azure.watch import connected
    from allranks.cli.console import console

    with connected(record) as client:
        compared = compare_runs(client, record, local)
        save_reports(client, record, folder)
    found = report.Report(record, size, _versions(), compared)
    report.write(found, folder)
    if json:
        print((folder / report.DATA).read_text(encoding="utf-8"), end="")
    else:
        out = console()
        for each in found.differences:
            out.print(
                f"{each.launch}: {each.kind} {each.name}: {each.azure} on Azure ML, {each.local} locally",
                soft_wrap=True,
                markup=False,
            )
        failed = f", {len(found.failed)} steps did not complete: {', '.join(found.failed)}" if found.failed else ""
        out.print(
            f"{len(found.differences)} of {len(compared)} comparisons differ{failed}\n  report  {folder / report.PAGE}",
            soft_wrap=True,
        )
    if found.differences or found.failed:
        sys.exit(1)


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("allranks", "azure-ai-ml")}
