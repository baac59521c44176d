"""Resume a run, or run it again, with the same code or the latest."""

from collections.abc import Mapping
from dataclasses import replace

from allranks.api import jobs
from allranks.errors import InputError, Problem
from allranks.history import secret_values, stored
from allranks.history.observer import Observer
from allranks.history.records import RunRecord
from allranks.images.realise import HOST
from allranks.local import engine, environments, requirements
from allranks.local.options import Options
from allranks.plan.graph import Plan
from allranks.plan.reader import settings as plan_settings
from allranks.workspace import Workspace


def resume(
    identity: str,
    workspace: Workspace,
    options: Options,
    observer: Observer | None = None,
    *,
    latest_code: bool = False,
    inputs: Mapping[str, str] | None = None,
    warn: jobs.Warn = bool,
    report: jobs.Report = jobs.silent,
) -> RunRecord:
    """Resume a run that did not finish. Return its record after all its processes have ended.

    latest_code: whether to read the pipeline's file again. Completed steps whose code and inputs have not changed keep
                 their results. Otherwise the run continues with the plan and code that it started with
    inputs:      new values of inputs, as text; to resume, only with `latest_code`
    warn:        is called with the warnings
    report:      is called while an environment is being made

    Raise InputError if the run cannot be resumed.
    """
    if inputs and not latest_code:
        found = "a resumed run continues with its own inputs"
        fix = f"allranks resume {identity} --latest-code, or: allranks rerun {identity}"
        raise InputError(Problem(f"--set {next(iter(inputs))}", found, "", fix))
    record = stored.run(workspace, identity)
    engine.require_resumable(record)
    plan = None
    if latest_code:
        plan, texts = _latest_plan(record, inputs or {}, workspace, options, warn, report)
        options = replace(options, target=record.target, settings=texts)
    else:
        before = engine.stored_plan(record, workspace)
        # Its interpreters may have been removed; one that is made again has the same path.
        environments.with_interpreters(before, HOST, report)
        warn(requirements.warnings(before))
    return engine.resume(record.id, workspace, options, observer, plan)


def rerun(
    identity: str,
    workspace: Workspace,
    options: Options,
    observer: Observer | None = None,
    *,
    latest_code: bool = False,
    inputs: Mapping[str, str] | None = None,
    warn: jobs.Warn = bool,
    report: jobs.Report = jobs.silent,
) -> RunRecord:
    """Run a run's pipeline again, as a new run. Return its record after all its processes have ended.

    Steps that the selection of the options reuses have the results of that run. The parameters are those of `resume`;
    without `latest_code`, the new run has the plan and code of that run. Raise InputError if it cannot run.
    """
    record = stored.run(workspace, identity)
    engine.require_local(record)
    if latest_code:
        plan, texts = _latest_plan(record, inputs or {}, workspace, options, warn, report)
    else:
        plan = engine.stored_plan(record, workspace, inputs or {})
        plan, differences = environments.with_interpreters(plan_settings.with_inputs(plan, inputs or {}), HOST, report)
        warn((*differences, *requirements.require(plan)))
        texts = {**record.settings, **(inputs or {})}
    options = replace(options, target=record.target, settings=texts)
    return engine.run(plan, workspace, options, observer, record if options.selection else None)


def _latest_plan(
    record: RunRecord,
    inputs: Mapping[str, str],
    workspace: Workspace,
    options: Options,
    warn: jobs.Warn,
    report: jobs.Report,
) -> tuple[Plan, dict[str, str]]:
    """Return the latest plan of a run's file, and the inputs that are set."""
    if not record.target:
        found = "its job was not read from a file, so its latest code cannot be read"
        raise InputError(Problem(f"run {record.id}", found, "a run of a file", "start the job again"))
    texts = {**secret_values.settings_of(record, inputs), **inputs}
    options = replace(options, environment=environments.used_option(engine.stored_plan(record, workspace, inputs)))
    return jobs.read(record.target, texts, workspace, options, report=report, warn=warn), texts
