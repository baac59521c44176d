"""`allranks verify-workspace`: compare the processes of a job on a workspace with those of the local engine."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from allranks.azure.watch import connected, finder
from allranks.azure.workspace import WorkspaceOptions
from allranks.catalog import shipped_folder
from allranks.cli.commands.submit import changes_of, submit_job, watch_run
from allranks.cli.console import console, errors
from allranks.cli.options import AzureOptions, FolderOption, InstancesOption, JsonOption, SetOption, confirm
from allranks.cli.parameters import option
from allranks.cli.values import settings_of
from allranks.errors import InputError, Problem
from allranks.history.records import RunRecord
from allranks.local.options import Options
from allranks.plan.graph import Plan
from allranks.plan.walk import steps
from allranks.sdk.paths import nearest
from allranks.text import count
from allranks.workspace import Workspace
from allranks_lab.verification.results import compare_runs, launches, save_reports, step_of

PIPELINE = "pipelines/verify_workspace.py"
COMMAND = "allranks verify-workspace"
LATER = f"\n  compare it later  {COMMAND} --job {{run}}"

_MINUTES = 5
"""Estimated minutes for which each instance is billed, most of them for its start and the pull of the image."""


def verify_workspace(
    size: Annotated[str, option("--size", "Run serverless on this Azure size.", "SIZE")] = "",
    compute: Annotated[str, option("--compute", "Run on this cluster.", "NAME")] = "",
    job: Annotated[str, option("--job", "Wait for this run, which was submitted before, and compare it.", "RUN")] = "",
    settings: SetOption = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the report.")] = Path(
        "docs/azure-proof"
    ),
    yes: Annotated[bool, option("--yes -y", "Submit without asking.")] = False,
    dry_run: Annotated[
        bool, option("--dry-run", "Print the steps and their cost, and run and submit nothing.")
    ] = False,
    pipeline: Annotated[
        Path | None,
        option(
            "--pipeline",
            f"The pipeline. Default: {PIPELINE} in this folder or a parent, or that of the library.",
            "FILE",
        ),
    ] = None,
    instances: InstancesOption = "auto",
    *,
    azure: AzureOptions,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Verify that a workspace starts the processes of a job as the local engine does.

    A pipeline runs on this machine and on Azure ML: preflight, collectives, the check of an environment, a training,
    and for each kind of launch a record of every process's variables, paths, mounts and user. The report names each
    difference. Nothing is registered by name. After Ctrl-C the run continues; --job compares it later. Exit with 1 if
    there are differences, or a step fails.

    For example: allranks verify-workspace --size Standard_D4s_v5
    """
    place = Workspace.at(folder)
    file = str(pipeline or nearest(Path.cwd(), PIPELINE) or shipped_folder() / PIPELINE)
    values = settings_of(settings)
    verification = _Verification(file, values, place, instances, json)
    if dry_run:
        verification.print_submission(size, compute)
    elif job:
        _report(*verification.resume_job(job, folder), size, output, json)
    else:
        _report(*verification.submit(size, compute, azure, yes), size, output, json)


@dataclass(frozen=True)
class _Verification:
    """A pipeline that runs on both platforms.

    file:      the pipeline
    settings:  the inputs that the user has set
    instances: the kind of local instances
    json:      whether standard output is for a program
    """

    file: str
    settings: dict[str, str]
    place: Workspace
    instances: str
    json: bool

    def print_submission(self, size: str, compute: str) -> None:
        """Print the steps that would be submitted, and the number of instances that they need."""
        from rich.table import Table

        from allranks.cli.views.plan import step_layout

        plan, table = self._plan(self._possible()), Table.grid(padding=(0, 2))
        for name, step in steps(plan.graph):
            table.add_row(name, step_layout(step), count(step.instance_count, "instance"))
        where = f"--compute {compute}" if compute else f"--size {size or 'SIZE'}"
        body = f"\n{_cost(plan)}\n  request body  allranks submit {self.file} {where} --dry-run"
        console().print(table)
        console().print(body, soft_wrap=True)

    def submit(self, size: str, compute: str, options: WorkspaceOptions, yes: bool) -> tuple[RunRecord, RunRecord]:
        """Run the pipeline on Azure ML and here. Return the local record and that of Azure ML."""
        changes = changes_of(compute, [size] if size else [], "", "", [])
        if not size and not compute:
            fix = "for example: --size Standard_D4s_v5"
            raise InputError(Problem(COMMAND, "no compute is given", "--size or --compute", fix))
        settings = self._possible()
        # Read before the submission, which replaces the components' files by ids of uploads.
        plan = self._plan(settings)
        if not yes and sys.stdin.isatty():
            errors().print(_cost(plan), soft_wrap=True)
        confirm(f"Submit {self.file} to run on {size or compute}?", COMMAND, yes, code=2)
        with _small_workspace():
            record = submit_job(self.file, settings, changes, options, self.place, stream=False, json=self.json)
        return self._both(record, plan)

    def resume_job(self, identity: str, folder: Path | None) -> tuple[RunRecord, RunRecord]:
        """Wait for a run that was submitted before, and run the same launches here. Return both records."""
        record = finder(folder)(identity)
        if record.submitted is None or not launches(step.name for step in record.steps):
            found = "it ran on this machine" if record.submitted is None else f"it is a run of {record.name}"
            raise InputError(Problem(f"--job {identity}", found, f"a run that {COMMAND} submitted"))
        return self._both(record, self._plan(self._possible() | self._as_in(record)))

    def _both(self, record: RunRecord, plan: Plan) -> tuple[RunRecord, RunRecord]:
        """Run the plan here while instances start on Azure ML, then wait for the run there. Return both records."""
        try:
            local = self._run_here(plan)
        except SystemExit:
            errors().print(f"{record.id} on Azure ML is not affected{LATER.format(run=record.id)}", soft_wrap=True)
            raise
        if not record.status.ended:
            with connected(record) as client:
                watch_run(client, self.place, record, errors() if self.json else console(), LATER)
        return local, record

    def _as_in(self, record: RunRecord) -> dict[str, str]:
        """Return the inputs of a submitted run that determine the comparison."""
        layouts = {step.name: (step.instance_count, step.process_count_per_instance) for step in record.steps}
        names = launches(layouts)
        counts = [layouts[step_of(name)] for name in names]
        return {
            "launches": " ".join(names),
            "instance_count": str(max(instances for instances, _ in counts)),
            "processes_per_instance": str(max(processes for _, processes in counts)),
        } | self.settings

    def _possible(self) -> dict[str, str]:
        """Return the inputs. Omit launches that fail here, with a note, unless the user has set the launches."""
        from allranks.local.machine import missing_launchers

        if "launches" in self.settings:
            return self.settings
        plan = self._plan(self.settings)
        missing = missing_launchers(plan)
        names = launches(path for path, _ in steps(plan.graph))
        for name in names:
            if problem := missing.get(step_of(name)):
                note = f"note: the launch {name} is left out: {problem.found}; to compare it: {problem.fix}"
                errors().print(note, soft_wrap=True, markup=False)
        return self.settings | {"launches": " ".join(name for name in names if step_of(name) not in missing)}

    def _plan(self, settings: dict[str, str]) -> Plan:
        from allranks.api import jobs

        return jobs.read(self.file, settings, self.place, Options(track=False))

    def _run_here(self, plan: Plan) -> RunRecord:
        """Run the steps that record their launch on this machine. Exit with 1 if one fails."""
        from allranks.cli.execute import execute
        from allranks.local import engine
        from allranks.local.selection import Selection

        selection = Selection(until=tuple(map(step_of, launches(path for path, _ in steps(plan.graph)))))
        options = Options(self.instances, track=False, selection=selection, target=self.file)
        return execute(lambda observer: engine.run(plan, self.place, options, observer), self.json, prints_record=False)


@contextmanager
def _small_workspace() -> Iterator[None]:
    """Add to the problem of too few instances the checks that are still possible."""
    try:
        yield
    except InputError as error:
        few = [problem for problem in error.problems if problem.code == "quota"]
        if not few:
            raise
        fix = "verify what one instance is given: --set instance_count=1"
        others = [problem for problem in error.problems if problem.code != "quota"]
        # The steps have the same number of instances, so one problem represents all.
        raise InputError(*others, replace(few[0], fix=f"{few[0].fix};\nor {fix}")) from None


def _cost(plan: Plan) -> str:
    """Describe the instances that a submission needs."""
    counts = [step.instance_count for _, step in steps(plan.graph)]
    return (
        f"{count(len(counts), 'step')} on {sum(counts)} instances in all, at least {max(counts)} at a time; "
        f"at {_MINUTES} minutes each, {sum(counts) * _MINUTES} instance-minutes"
    )


def _report(local: RunRecord, record: RunRecord, size: str, folder: Path, json: bool) -> None:
    from allranks_lab.verification import report
    from allranks_lab.verification.comparison import group_equal

    with connected(record) as client:
        results = compare_runs(client, record, local)
        save_reports(client, results, folder)
    report.write(results, size, folder)
    if json:
        print((folder / report.DATA).read_text(encoding="utf-8"), end="")
    else:
        for first, group in group_equal(results.differences).items():
            line = f"{first.kind} {first.name}: {first.azure} on Azure ML, {first.local} locally "
            place = f"({report.where(group, results.compared)})"
            console().print(line + place, soft_wrap=True, markup=False)
        console().print(f"{results.summary}\n  report  {folder / report.PAGE}", soft_wrap=True, markup=False)
    if results.differences or results.incomplete or results.missing:
        sys.exit(1)
