"""`LocalClient`: azure-ai-ml's own `MLClient`, whose service is a workspace folder of this machine."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

from azure.ai.ml import MLClient
from azure.ai.ml.entities import Job

from allranks.api import engine_process, jobs, notebook_view
from allranks.history import datastores, registered, stored
from allranks.history.records import RunRecord
from allranks.local.options import Options
from allranks.plan.assets import asset_id
from allranks.plan.assets.lookup import AssetLookup
from allranks.plan.graph import Plan
from allranks.sdk import offline_client
from allranks.sdk.offline_client import Credential, client_class
from allranks.sdk.session import entry, session
from allranks.workspace import Workspace
from allranks_client import job_requests, local_workspace, schedule_requests, sdk_parts  # noqa: F401  # they add routes
from allranks_client.local_service import LocalService, LocalTransport
from allranks_client.storage import LocalContainer

_plan: ContextVar[Plan | None] = ContextVar("plan", default=None)
"""The plan of the job that this thread submits. The request has ids in place of code and components."""

_NO_CACHE = "AZURE_ML_DISABLE_ON_DISK_CACHE"
"""Disables the SDK's cache of registered components on disk, which does not distinguish workspace folders."""

_started: dict[str, Workspace] = {}
"""The workspaces of the jobs that this process has started, by their names."""


def running_jobs() -> list[str]:
    """Return the names of the jobs of this process that have not ended."""
    return [name for name, workspace in _started.items() if not stored.run(workspace, name).status.ended]


class LocalClient(MLClient):  # type: ignore[misc]
    """A replacement of `MLClient` that runs jobs on this machine::

        ml_client = LocalClient()
        job = ml_client.jobs.create_or_update(pipeline())
        ml_client.jobs.stream(job.name)

    It has `MLClient`'s operations, with their arguments, entities and exceptions. Jobs, components, environments, data
    and models are in the workspace folder; any compute is this machine. A call that is not available here raises
    InputError with the alternative. A job that cannot run here raises InputError too, before anything is started.

    A job has a process of its own. It continues when the script or the notebook's kernel ends, as on Azure ML;
    ``jobs.begin_cancel(name)`` and ``allranks cancel`` stop it. Interrupting `jobs.stream` does not.

    The first five arguments are those of `MLClient`. All are optional. Names of a workspace only appear in ids.

    registry_name: a client of a registry, which is in the workspace folder. A registry in which nothing was created
                   returns names only; ``allranks.yaml`` maps them to files (docs/reference/names.md)
    folder:        the workspace; default: the `.allranks` folder of the current folder or a parent
    faults:        faults to inject into each job, as for `allranks.run`
    options:       the options of `MLClient`, such as ``show_progress``
    """

    _folder: Path | str | None = None
    _run_options = Options()

    def __init__(
        self,
        credential: Any = None,  # there is no sign-in
        subscription_id: str | None = None,
        resource_group_name: str | None = None,
        workspace_name: str | None = None,
        registry_name: str | None = None,
        *,
        folder: Path | str | None = None,
        faults: Sequence[str] = (),
        **options: Any,
    ) -> None:
        workspace = Workspace.at(folder or self._folder)
        if faults:
            self._run_options = replace(self._run_options, faults=faults)
        self._service = LocalService(workspace, functools.partial(_submit, workspace, self._run_options))
        sdk_parts.adapt_registries()
        super().__init__(
            _Credential(LocalTransport(self._service)),
            subscription_id or local_workspace.NO_SUBSCRIPTION,
            resource_group_name or local_workspace.LOCATION,
            workspace_name or (None if registry_name else local_workspace.LOCATION),
            registry_name,
            transport=LocalTransport(self._service),
            enable_telemetry=False,
            **{name: value for name, value in options.items() if name not in ("transport", "enable_telemetry")},
        )
        service = self._service.of_registry(registry_name) if registry_name else self._service
        sdk_parts.serve_storage(service.account, functools.partial(LocalContainer, service.workspace))
        if registry_name:
            self._name_only(service)
        sdk_parts.adapt_jobs(self, self._stream)
        notebook_view.show_jobs(Job, self._run_of)
        for operations in (self.jobs, self.components, self.environments, self.schedules):
            _wrap(operations, _creating)
        _wrap(self.jobs, functools.partial(_with_plan, workspace, self._run_options, self.jobs.validate))
        _wrap(self.schedules, functools.partial(schedule_requests.create, workspace))

    @classmethod
    def with_options(cls, folder: Path | str, options: Options) -> type[LocalClient]:
        """Return a class whose clients have a workspace folder, and run jobs with these options."""
        return type("MLClient", (cls,), {"_folder": folder, "_run_options": options})

    @classmethod
    def from_config(cls, credential: Any = None, **options: Any) -> Any:
        """Return a client, with the names of the workspace's configuration file if there is one."""
        from azure.ai.ml.exceptions import ValidationException

        try:
            return super().from_config(credential or Credential(), **options)
        except ValidationException:
            return cls(credential)

    def __repr__(self) -> str:
        return f"LocalClient({self._service.workspace.root})"

    def _name_only(self, registry: LocalService) -> None:
        """Let `get` return a name for an asset of a registry in which nothing was created."""
        lookup = AssetLookup.of(Path.cwd(), registered.of(registry.home))

        def find(identity: str) -> Path | None:
            return lookup.find(identity, asset_id.COMPONENT, "LocalClient, components.get", required=False)

        names = client_class(offline_client.Workspace(Path.cwd(), find))(registry_name=registry.registry)
        for collection in ("components", "data", "environments", "models"):
            operations = getattr(self, collection)
            operations.get = functools.partial(_get, registry.workspace, operations.get, getattr(names, collection).get)

    def _run_of(self, job: Any) -> RunRecord | None:
        found = datastores.find(self._service.workspace, job.name) if job.name else None
        return found[0] if found else None

    @contextlib.contextmanager
    def _stream(self, job: str) -> Iterator[Callable[[], None]]:
        """Show the progress of a job in a notebook while it is streamed. The service waits between two requests."""
        run = job.partition(":")[0]  # of a step, its pipeline
        with notebook_view.shown(lambda: stored.run(self._service.workspace, run)) as view:
            yield (lambda: None) if view is None else view.update


class _Credential(Credential):
    """A credential without a sign-in. The SDK makes clients of registries from the credential only."""

    def __init__(self, transport: LocalTransport) -> None:
        self.transport = transport


def _get(
    registry: Workspace, original: Callable[..., Any], named: Callable[..., Any], /, *values: Any, **more: Any
) -> Any:
    return (original if registry.root.exists() else named)(*values, **more)


def _wrap(operations: Any, wrapper: Callable[..., Any]) -> None:
    """Route the client's `create_or_update` through a function."""
    name = "create_or_update" if hasattr(operations, "create_or_update") else "begin_create_or_update"
    original = getattr(operations, name)
    setattr(operations, name, functools.wraps(original)(functools.partial(wrapper, original)))


def _creating(original: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Create an asset or job from local files. Copy exactly the files that `allranks submit` uploads."""
    with session(), entry(os.environ, _NO_CACHE, "true"):
        return original(*arguments, **options)


def _with_plan(
    workspace: Workspace,
    run_options: Options,
    validate: Callable[..., Any],
    original: Callable[..., Any],
    job: Any,
    **options: Any,
) -> Any:
    """Read a job before the SDK replaces its parts by ids, then submit it."""
    if not isinstance(job, Job) or getattr(job, "id", None):
        return original(job, **options)
    for name in ("description", "compute", "tags", "experiment_name"):
        if options.get(name) is not None:
            setattr(job, name, options[name])
    plan = None
    if options.get("skip_validation") or validate(job).passed:  # else the SDK raises its own error
        plan = jobs.read(job, None, workspace, run_options)
    token = _plan.set(plan)
    try:
        return original(job, **options)
    finally:
        _plan.reset(token)


def _submit(workspace: Workspace, options: Options, name: str, plan: Plan | None = None, **more: Any) -> str:
    """Start the run of a job, and return its id. plan: by default that of the job that this thread submits"""
    plan = plan or _plan.get()
    assert plan is not None, f"the job {name} was not read"
    identity, engine = engine_process.start(plan, workspace, replace(options, run_name=name, **more), detached=True)
    _started[name] = workspace
    # A long-lived script or kernel would keep the ended engine as a zombie.
    threading.Thread(target=engine.wait, name=f"allranks-{name}", daemon=True).start()
    return identity
