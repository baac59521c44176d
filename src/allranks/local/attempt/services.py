"""The services that the attempts of one run share: processes, MLflow runs, and caches."""

from pathlib import Path
from typing import Any

from allranks.contract.produce import Job
from allranks.local.attempt.digests import FileDigests
from allranks.local.attempt.running_steps import RunningSteps
from allranks.local.forkserver.choice import ForkServers
from allranks.local.instances.supervisor import INSTANCE_KINDS, Supervisor
from allranks.local.run_context import RunContext
from allranks.local.tracking.client import Tracking
from allranks.local.tracking.server import MlflowServer


class Services:
    """The services of one run.

    injector: the `Injector` of allranks-lab; None without faults
    job:      the settings of the run that the environment of every rank contains
    """

    def __init__(self, context: RunContext, supervisor: Supervisor, tracking: Tracking, injector: Any = None) -> None:
        plan, run, workspace = context.plan, context.run, context.workspace
        self.supervisor = supervisor
        self.tracking = tracking
        self.injector = injector
        self.kind = INSTANCE_KINDS[supervisor.kind]
        self.running = RunningSteps(supervisor, tracking)
        self.mlflow_server = MlflowServer(supervisor, workspace, Path(run.folder))
        self.fork_servers = ForkServers(supervisor, self.kind, plan.source, tracking.tracks, context.is_cold)
        self.file_digests = FileDigests(workspace.file_digests)
        self.job = Job("", run.id, plan.experiment or plan.name, workspace.tracking_uri)

    def close(self) -> None:
        """Close the files. Call it when no step is running."""
        if self.injector is not None:
            self.injector.close()
        self.file_digests.close()
