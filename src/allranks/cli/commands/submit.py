"""`allranks submit`: submit a pipeline to Azure ML."""

import sys
from datetime import date
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from allranks.azure import runs
from allranks.azure.changes import Changes, apply, cluster_sizes, parse_sizes, set_compute, set_sizes, unchecked_sizes
from allranks.azure.checks import of_compute, of_sizes, of_workspace
from allranks.azure.dry_run import NO_COMPUTE, body_of
from allranks.azure.errors import AzureError, service_errors
from allranks.azure.requirements import Requirements, requirements
from allranks.azure.runs import add_record
from allranks.azure.watch import watch
from allranks.azure.workspace import NO_WORKSPACE, WorkspaceOptions, connect, resolve, with_placeholders
from allranks.checks import Findings
from allranks.checks.plan import findings
from allranks.cli.completion import complete_sizes
from allranks.cli.console import console, errors, print_warnings, to_json
from allranks.cli.options import AzureOptions, ComputeOption, FileArgument, FolderOption, JsonOption, SetOption
from allranks.cli.parameters import option
from allranks.cli.values import settings_of
from allranks.cli.views.progress import view_of
from allranks.cli.views.uploads import print_uploads
from allranks.errors import InputError, Problem, raise_any
from allranks.history.records import RunRecord
from allranks.plan.graph import Graph, Plan
from allranks.plan.reader import OpenJob, opened
from allranks.plan.secrets import shown
from allranks.sdk.uploads import uploads_of
from allranks.workspace import Workspace


def submit(
    file: FileArgument,
    *,
    settings: SetOption = None,
    compute: ComputeOption = "",
    size: Annotated[
        list[str] | None,
        option(
            "--size",
            "Run serverless on this Azure size: every step, or one step. May be repeated.",
            "[STEP=]SIZE",
            autocompletion=complete_sizes,
        ),
    ] = None,
    experiment: Annotated[str, option("--experiment", "Name of the experiment.", "NAME")] = "",
    tag: Annotated[list[str] | None, option("--tag", "Tag of the run. May be repeated.", "KEY=VALUE")] = None,
    display_name: Annotated[str, option("--display-name", "Name of the run in the studio.", "TEXT")] = "",
    stream: Annotated[bool, typer.Option("--stream/--no-stream", help="Watch the run until it ends.")] = True,
    dry_run: Annotated[
        bool,
        option("--dry-run", "Print the request body and the files that would be uploaded, without contacting Azure."),
    ] = False,
    azure: AzureOptions,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Submit a pipeline to Azure ML.

    The pipeline is checked first. Ctrl-C stops watching; the run continues. Exit with 1 if the run does not complete.

    For example: allranks submit pipelines/image_classification.py --compute gpu-cluster
    """
    values = settings_of(settings)
    changes = changes_of(compute, size or [], experiment, display_name, tag or [])
    if dry_run:
        _print_body(file, values, changes, azure)
        return

    record = submit_job(file, values, changes, azure, Workspace.at(folder), stream=stream, json=json)
    if json:
        print(to_json(record))
    if stream and record.status.value != "Completed":
        sys.exit(1)


def changes_of(compute: str, size: list[str], experiment: str, display_name: str, tags: list[str]) -> Changes:
    """Return the changes that the options make to a job. Raise InputError for options that contradict each other."""
    if compute and size:
        found = f"--compute {compute} is given too"
        fix = "remove one: --size is serverless, and a cluster has its own size"
        raise InputError(Problem(f"--size {size[0]}", found, "one of them", fix))
    parsed = settings_of(tags, option="--tag", example="team=a", form="KEY=VALUE")
    every, of_steps = parse_sizes(size)
    changes = Changes(compute, every, of_steps, experiment, display_name, parsed)
    for name in unchecked_sizes(changes):
        note = f"{name} is not in the table of allranks doctor --sizes, so its GPUs and InfiniBand are not checked"
        errors().print(f"note: {note}", soft_wrap=True)
    return changes


def _print_body(file: str, settings: dict[str, str], changes: Changes, options: WorkspaceOptions) -> None:
    where = with_placeholders(options)
    with opened(file, settings, client=True) as job:
        apply(job.job, changes)
        if nowhere := job.request().without_compute:
            set_compute(job.job, NO_COMPUTE)
        _checked(job)
        set_sizes(job.job, {})
        uploads = uploads_of(job.request())
        body = body_of(job.job, where)
    if vars(where).items() & vars(NO_WORKSPACE).items():
        errors().print("note: no workspace is given, so ids contain placeholders", soft_wrap=True)
    if nowhere:
        note = f"note: no compute is given, so the body contains {NO_COMPUTE}; to submit it, use --compute or --size"
        errors().print(note, soft_wrap=True)
    # Only the body goes to standard output, which a program may read.
    print_uploads(errors(), uploads)
    print(dumps(shown(body), indent=2))


def submit_job(
    file: str,
    settings: dict[str, str],
    changes: Changes,
    options: WorkspaceOptions,
    workspace: Workspace,
    *,
    stream: bool = True,
    json: bool = False,
) -> RunRecord:
    """Check and submit a pipeline, and return its record.

    stream: whether to watch the run until it ends
    json:   whether standard output is for a program

    Raise InputError or AzureError. Exit with 130 after Ctrl-C while the run is watched.
    """
    # Before the SDK is imported, which takes seconds, and outside of its session, which redirects the output.
    where = resolve(options)
    out = errors() if json else console()
    with opened(file, settings, client=True) as job:
        apply(job.job, changes)
        plan, required = _checked(job)
        uploads_of(job.request())  # raises InputError for an unreadable file before anything is uploaded
        with service_errors("signing in"):
            client = connect(where)
        raise_any(of_workspace(client, required))
        set_sizes(job.job, cluster_sizes(client))
        name, studio = runs.submit(client, job.job)
        studio = studio or where.studio(name)
        record = add_record(workspace, plan, name, where, studio, pipeline=hasattr(type(job.job), "jobs"))
        out.print(f"submitted {name} to {where}\n  studio  {studio}", soft_wrap=True)
        if stream:
            watch_run(client, workspace, record, out)
    return record


def _checked(job: OpenJob) -> tuple[Plan, list[Requirements]]:
    """Return the plan, and its steps' requirements of a workspace. Raise InputError with every problem."""
    if unread := job.unread():
        plan = Plan(str(job.job.display_name or Path(job.source).stem), Graph(()), source=job.source)
        note = (
            f"note: only sizes and computes are checked, because {', '.join(unread)} cannot be read on this machine: "
            "a registered component, or a kind of node that the engine does not run"
        )
        errors().print(note, soft_wrap=True)
        found = Findings()
    else:
        plan = job.plan()
        found = findings(plan, here=False, today=date.today())
    required = requirements(job.job, plan.graph)
    raise_any([*found.errors, *found.machine, *of_compute(job.request().without_compute), *of_sizes(required)])
    print_warnings(found.warnings)
    return plan, required


def watch_run(client: Any, workspace: Workspace, record: RunRecord, out: Any, then: str = "") -> None:
    """Watch a submitted run until it ends. Raise InputError or AzureError. Exit with 130 after Ctrl-C.

    then: a line of advice for a user who stops watching, with ``{run}``
    """
    try:
        with view_of(out) as watcher:
            watch(client, workspace, record, watcher)
    except (KeyboardInterrupt, AzureError) as error:
        continues = (
            f"{record.id} continues on Azure ML\n  watch it   allranks logs {record.id} --follow\n"
            f"  cancel it  allranks cancel {record.id}{then.format(run=record.id)}"
        )
        errors().print(f"stopped watching; {continues}", soft_wrap=True)
        if isinstance(error, KeyboardInterrupt):
            sys.exit(130)
        raise
