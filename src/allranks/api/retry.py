"""Resume a run, or run it again, with the same code or the latest."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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


@dataclass(frozen=True)
class Retry:
    """A stored run to execute again.

    latest_code: whether to read the pipeline's file again. Otherwise the plan and the code are those of the run
    inputs:      new values of inputs, as text; to resume, only with `latest_code`
    warn:        is called with the warnings
    report:      is called while an environment is being made
    """

    identity: str
    workspace: Workspace
    options: Options
    latest_code: bool = False
    inputs: Mapping[str, str] = field(default_factory=dict)
    warn: jobs.Warn = bool
    report: jobs.Report = jobs.silent

    def resume(self, observer: Observer) -> RunRecord:
        """Resume the run, which did not finish. Return its record after all its processes have ended.

        With the latest code, completed steps whose code and inputs have not changed keep their results. Raise
        InputError if the run cannot be resumed.
        """
        if self.inputs and not self.latest_code:
            found = "a resumed run continues with its own inputs"
            fix = f"allranks resume {self.identity} --latest-code, or: allranks rerun {self.identity}"
            raise InputError(Problem(f"--set {next(iter(self.inputs))}", found, "", fix))
        record, options, plan = stored.run(self.workspace, self.identity), self.options, None
        engine.require_resumable(record)
        if self.latest_code:
            plan, texts = self._latest_plan(record)
            options = replace(options, target=record.target, settings=texts)
        else:
            before = engine.stored_plan(record, self.workspace)
            # Its interpreters may have been removed; one that is made again has the same path.
            environments.with_interpreters(before, HOST, self.report)
            self.warn(requirements.warnings(before))
        return engine.resume(record.id, self.workspace, options, observer, plan)

    def rerun(self, observer: Observer) -> RunRecord:
        """Run the pipeline of the run again, as a new run. Return its record after all its processes have ended.

        Steps that the selection of the options reuses have the results of that run. Raise InputError if it cannot run.
        """
        record = stored.run(self.workspace, self.identity)
        engine.require_local(record)
        if self.latest_code:
            plan, texts = self._latest_plan(record)
        else:
            plan = plan_settings.with_inputs(engine.stored_plan(record, self.workspace, self.inputs), self.inputs)
            plan, differences = environments.with_interpreters(plan, HOST, self.report)
            self.warn((*differences, *requirements.require(plan)))
            texts = {**record.settings, **self.inputs}
        options = replace(self.options, target=record.target, settings=texts)
        return engine.run(plan, self.workspace, options, observer, record if options.selection else None)

    def _latest_plan(self, record: RunRecord) -> tuple[Plan, dict[str, str]]:
        """Return the latest plan of the run's file, and the inputs that are set."""
        if not record.target:
            found = "its job was not read from a file, so its latest code cannot be read"
            raise InputError(Problem(f"run {record.id}", found, "a run of a file", "start the job again"))
        texts = {**secret_values.settings_of(record, self.inputs), **self.inputs}
        used = environments.used_option(engine.stored_plan(record, self.workspace, self.inputs))
        options = replace(self.options, environment=used)
        plan = jobs.read(record.target, texts, self.workspace, options, report=self.report, warn=self.warn)
        return plan, texts
