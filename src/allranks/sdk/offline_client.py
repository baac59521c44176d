"""An `MLClient` that answers from this machine while a user's file is read, without contacting a workspace.

Entities that the file registers can be looked up; jobs that it submits are recorded, not run; a compute target is this
machine. Every other call returns `Unknown`, a placeholder for what only a workspace knows. A `get` raises
`ResourceNotFoundError` if the file catches it in order to create what is missing.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import importlib
import importlib.util
import json
import linecache
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from allranks.hardware.sizes import sizes
from allranks.sdk import internals, user_code
from allranks.sdk.offline_values import Asset, Component, Unknown
from allranks.sdk.session import entry

Find = Callable[[str], Path | None]
"""Returns the local spec of a registered component by its id; None if there is none."""

_CLIENT_MODULE = internals.PARTS["client"]
_THIS_MACHINE = "this-machine"
_COLLECTION_OF = {
    "Job": "jobs",
    "Component": "components",
    "Environment": "environments",
    "Data": "data",
    "Model": "models",
    "Compute": "compute",
    "JobSchedule": "schedules",
}
"""The collection in which `MLClient.create_or_update` stores an entity, by the SDK's class names."""
_COLLECTIONS = ("components", "environments", "models", "data")
_WORKSPACE = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/offline/providers/"
    "Microsoft.MachineLearningServices/workspaces/offline"
)
_FINISHED = "Completed"


@dataclass
class Workspace:
    """The jobs that a file submits and the entities that it creates while it is read.

    submitted:  submitted jobs, each once, in order
    keeps_ids:  whether the job is sent to Azure ML: components that `find` knows keep their ids
    on_submit:  called with each job in its state at submission
    registered: (collection such as ``environments``, name) -> the last created entity
    """

    path: Path
    find: Find | None = None
    keeps_ids: bool = False
    submitted: list[Any] = field(default_factory=list)
    on_submit: Callable[[Any], None] | None = None
    registered: dict[tuple[str, str], Any] = field(default_factory=dict)
    _changes: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def submit(self, job: Any, settings: dict[str, Any]) -> Any:
        """Record a job, and mark it as completed."""
        for name in ("description", "compute", "tags", "experiment_name"):
            if settings.get(name) is not None:
                setattr(job, name, settings[name])
        if self.on_submit is not None:
            self.on_submit(job)
        if not any(job is other for other in self.submitted):
            self.submitted.append(job)
            self._changes.callback(setattr, job, "name", job.name)
            self._changes.callback(internals.set_status, job, internals.status(job))
            job.name = job.name or f"job_{len(self.submitted)}"
            internals.set_status(job, _FINISHED)
        return job

    def identify(self, entity: Any, collection: str, registry: str | None, name: Any) -> None:
        """Set the id of a created asset as the service would do; without the workspace if the job is sent to Azure
        ML."""
        if not entity.id and name:
            scope = f"azureml://registries/{registry}" if registry else _WORKSPACE
            is_for_azure = (self.find is None or self.keeps_ids) and not registry
            long = f"{scope}/{collection}/{name}/versions/{entity.version}"
            internals.set_id(entity, f"azureml:{name}:{entity.version}" if is_for_azure else long)
            self._changes.callback(internals.set_id, entity, None)

    def restore(self) -> None:
        """Restore the names and states of jobs, and the ids of assets: placeholders must not be sent to Azure ML."""
        self._changes.close()


@contextlib.contextmanager
def replaced_clients(client: type) -> Iterator[None]:
    """Replace the class MLClient, and each credential, that is imported inside of the block."""
    azure: Any = importlib.import_module("azure")
    import azure.ai.ml as sdk  # takes 1 s to import, and a session has imported it

    identity = _identity()
    module = sys.modules.get(_CLIENT_MODULE) or ModuleType(_CLIENT_MODULE)
    with (
        # The SDK itself loads missing modules later.
        entry(vars(sdk), "MLClient", client),
        entry(vars(module), "MLClient", client),
        entry(sys.modules, _CLIENT_MODULE, module),
        entry(sys.modules, "azure.identity", identity),
        entry(vars(azure), "identity", identity),
    ):
        yield


def _completed(result: Any) -> Any:
    """Return the poller of a `begin_...` call, which is complete."""
    poller = Unknown("poller")
    vars(poller).update(result=lambda timeout=None: result, wait=lambda timeout=None: None)
    vars(poller).update(done=lambda: True, status=lambda: "Succeeded")
    return poller


def client_class(workspace: Workspace) -> type:
    """Return the class that replaces MLClient. Its instances use this workspace."""

    class MLClient:
        """An MLClient that contacts no workspace."""

        def __init__(
            self,
            credential: Any = None,
            subscription_id: str | None = None,
            resource_group_name: str | None = None,
            workspace_name: str | None = None,
            registry_name: str | None = None,
            **options: Any,
        ) -> None:
            self.subscription_id = subscription_id or Unknown("the subscription's id")
            self.resource_group_name = resource_group_name or Unknown("the resource group's name")
            self.workspace_name = workspace_name or (None if registry_name else Unknown("the workspace's name"))
            self._registry = registry_name

        @classmethod
        def from_config(
            cls, credential: Any = None, path: Any = None, file_name: str | None = None, **options: Any
        ) -> Any:
            names = _configuration(path, file_name or "config.json")
            return cls(credential, *(names.get(key) for key in ("subscription_id", "resource_group", "workspace_name")))

        def create_or_update(self, entity: Any, **settings: Any) -> Any:
            names = (kind.__name__ for kind in type(entity).__mro__)
            collection = next((_COLLECTION_OF[name] for name in names if name in _COLLECTION_OF), "others")
            return getattr(self, collection).create_or_update(entity, **settings)

        def begin_create_or_update(self, entity: Any, **settings: Any) -> Any:
            return _completed(self.create_or_update(entity, **settings))

        def __getattr__(self, collection: str) -> Any:
            if collection.startswith("__"):
                raise AttributeError(collection)
            return _Operations(workspace, collection, self._registry)

    return MLClient


@dataclass(frozen=True)
class _Operations:
    """The operations on one collection of a workspace or registry: ``ml_client.components``."""

    workspace: Workspace
    collection: str
    registry: str | None

    def get(self, name: Any = "", version: Any = None, label: Any = None, **options: Any) -> Any:
        entity = self.workspace.registered.get((self.collection, str(name)))
        if entity is not None and str(version or "") in ("", str(entity.version if hasattr(entity, "version") else "")):
            return entity
        if self.collection == "jobs":
            return next((job for job in self.workspace.submitted if job.name == name), Unknown(f"job {name}"))
        asset = self._asset(str(name), version, label)
        find = self.workspace.find if self.collection == "components" else None
        if find and isinstance(asset, Asset) and (spec := find(str(asset))):
            component = internals.load_component(spec)
            if self.workspace.keeps_ids:
                internals.set_id(component, str(asset))
            return component
        if _creates_when_it_fails(sys._getframe(1)):
            raise internals.ResourceNotFoundError(f"{self.collection} {name} is not on this machine")
        return asset

    def _list(self, name: Any = "", *arguments: Any, **options: Any) -> list[Any]:
        """Return the latest version of an asset. Without a name, return the entities that the file created."""
        if not name or self.collection not in _COLLECTIONS:
            return [
                entity for (collection, _), entity in self.workspace.registered.items() if collection == self.collection
            ]
        return [self.workspace.registered.get((self.collection, str(name))) or self._asset(str(name), None, "latest")]

    def _named(self, name: Any = "", **options: Any) -> Any:
        return self.workspace.registered.get((self.collection, str(name)), Unknown(f"{self.collection} {name}"))

    def _asset(self, name: str, version: Any, label: Any) -> Any:
        if self.collection == "compute":
            compute = internals.AmlCompute(name=name, size=_THIS_MACHINE)
            internals.set_provisioning_state(compute, "Succeeded")
            return compute
        if self.collection not in _COLLECTIONS:
            return Unknown(f"{self.collection} {name}")
        kind = Component if self.collection == "components" else Asset
        return kind(self.collection, self.registry, name, version, label)

    def create_or_update(self, entity: Any = None, **settings: Any) -> Any:
        if entity is None:  # the keyword differs: job, model, schedule
            entity = settings.pop(next(iter(settings), ""), None)
        if self.collection == "jobs":
            return self.workspace.submit(entity, settings)
        name = getattr(entity, "name", None)
        # A function with @command_component has the component as an attribute.
        entity = getattr(entity, "component", entity) if self.collection == "components" else entity
        if self.collection == "components" and (builder := internals.pipeline_builder(entity)):
            entity = builder.build(user_provided_kwargs={})
        if self.collection in _COLLECTIONS and not getattr(entity, "version", None):
            entity.version = "1"
        if self.collection in ("data", "models") and isinstance(entity.path, Path):
            # The service returns a URI, with a slash at the end of a folder's.
            internals.set_path(entity, f"{entity.path}{'/' * (entity.type == 'uri_folder')}")
        if self.collection in _COLLECTIONS:
            self.workspace.identify(entity, self.collection, self.registry, name or getattr(entity, "name", ""))
        if self.collection == "compute":
            internals.set_provisioning_state(entity, "Succeeded")
        self.workspace.registered[self.collection, str(name or getattr(entity, "name", ""))] = entity
        return entity

    def list_sizes(self, *arguments: Any, **options: Any) -> list[Any]:
        known = [internals.VmSize(name=size.name, gpus=size.gpus, v_cp_us=size.vcpus) for size in sizes()]
        return [*known, internals.VmSize(name=_THIS_MACHINE, gpus=1)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "begin_create_or_update":
            return lambda *entity, **settings: _completed(self.create_or_update(*entity, **settings))
        if name.startswith("begin_"):
            return lambda *arguments, **options: _completed(self._named(*arguments, **options))
        if name.startswith("list"):
            return self._list
        if name.startswith("get"):
            return lambda *arguments, **options: Unknown(f"{self.collection}.{name}")
        return lambda *arguments, **options: None


def _configuration(path: Any, file_name: str) -> dict[str, str]:
    """Return the workspace's configuration file, which the SDK looks for in the folder and its parents."""
    start = Path(path or ".").absolute()
    if start.is_file():
        files = [start]
    else:
        folders = [start, *start.parents]
        files = [folder / inner / file_name for folder in folders for inner in ("", ".azureml", "aml_config")]
    for file in files:
        with contextlib.suppress(OSError, ValueError):
            names = json.loads(file.read_text(encoding="utf-8"))
            if isinstance(names, dict):
                return {str(key): str(value) for key, value in names.items()}
    return {}


def _creates_when_it_fails(frame: FrameType | None) -> bool:
    """Return whether the call is in a ``try`` whose handler creates something, as in "get it, or else create it".

    frame: the frame of the call, in or below the user's code
    """
    while frame is not None and not user_code.is_users(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return False
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except (SyntaxError, ValueError):
        return False
    return any(
        block.body[0].lineno <= frame.f_lineno <= (block.body[-1].end_lineno or 0) and _creates(block.handlers)
        for block in ast.walk(tree)
        if isinstance(block, ast.Try)
    )


def _creates(handlers: list[ast.ExceptHandler]) -> bool:
    calls = (node.func for handler in handlers for node in ast.walk(handler) if isinstance(node, ast.Call))
    names = (call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls)
    return any("create" in name for name in names)


class Credential(contextlib.AbstractContextManager[Any]):
    """A replacement for each of azure-identity's credentials, without a sign-in."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def get_token(self, *scopes: str, **options: Any) -> Any:
        from azure.core.credentials import AccessToken  # azure.core takes 0.1 s to import

        # The SDK parses the token.
        parts = ({"alg": "none", "typ": "JWT"}, {"aud": "https://ml.azure.com"})
        text = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        return AccessToken(f"{text}.", 1 << 32)

    get_token_info = get_token

    def close(self) -> None:
        pass

    def __exit__(self, *raised: object) -> None:
        pass


def _identity() -> Any:
    """Return a replacement for the module azure.identity, which takes half a second to import."""
    module = ModuleType("azure.identity")
    real = importlib.util.find_spec("azure.identity")
    module.__path__ = list(real.submodule_search_locations or ()) if real else []

    def attribute(name: str) -> Any:
        if name.endswith("Credential"):
            return Credential
        if name.endswith("Error"):
            return Exception
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(f"azure.identity.{name}")

    vars(module)["__getattr__"] = attribute
    return module
