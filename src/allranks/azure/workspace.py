"""Find the Azure ML workspace or registry, and create a client for it."""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from allranks.azure.errors import service_errors
from allranks.errors import InputError, Problem
from allranks.sdk import internals
from allranks.sdk.session import session

SUBSCRIPTION = "AZUREML_ARM_SUBSCRIPTION"
RESOURCE_GROUP = "AZUREML_ARM_RESOURCEGROUP"
WORKSPACE_NAME = "AZUREML_ARM_WORKSPACE_NAME"

_FOLDERS = (".azureml", "aml_config", "")
_FILES = ("config.json", "project.json")
_KEYS = {"subscription_id": "subscription", "resource_group": "resource group", "workspace_name": "workspace"}
"""The parts of a workspace's full name: their names in options, in files and in the SDK, and in messages."""
_MAX_PARENTS = 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{1,32}")
_GIVE_WORKSPACE = (
    "--subscription ID --resource-group NAME --workspace NAME,\n"
    f"or {SUBSCRIPTION}, {RESOURCE_GROUP} and {WORKSPACE_NAME},\n"
    "or config.json of the workspace (studio: Download config file) in .azureml/ in this folder or a parent"
)


@dataclass(frozen=True)
class WorkspaceOptions:
    """The options that select a workspace. Empty values are looked up elsewhere.

    config: a config.json, or the folder from which parents are searched for one; None: the current folder
    """

    subscription_id: str = ""
    resource_group: str = ""
    workspace_name: str = ""
    config: Path | None = None


@dataclass(frozen=True)
class WorkspaceName:
    """The full name of a workspace."""

    subscription_id: str
    resource_group: str
    workspace_name: str

    def __str__(self) -> str:
        return self.workspace_name

    def studio(self, run: str) -> str:
        """Return the address of a run in the studio of the current cloud, as the SDK writes it."""
        return internals.studio_url(
            f"/subscriptions/{self.subscription_id}/resourceGroups/{self.resource_group}"
            f"/providers/Microsoft.MachineLearningServices/workspaces/{self.workspace_name}/jobs/{run}"
        )


NO_WORKSPACE = WorkspaceName("SUBSCRIPTION_ID", "RESOURCE_GROUP", "WORKSPACE_NAME")
"""Placeholders for the parts of a workspace that are not given."""


def connect(where: WorkspaceName | str) -> Any:
    """Return the SDK's MLClient for a workspace, or for the registry with a name, with DefaultAzureCredential of
    azure-identity.

    For a workspace no request is sent; for a registry, its location is requested. Call it inside of
    `allranks.azure.errors.service_errors`.
    """
    # Hide the SDK's progress bar. With show_progress=False the SDK does not check uploads of files, and waits
    # forever if one fails (azure-ai-ml 1.35.2, _asset_utils.upload_directory).
    os.environ.setdefault("TQDM_DISABLE", "1")
    # Disable the SDK's cache of registered components, which still contains those that were deleted.
    os.environ.setdefault("AZURE_ML_DISABLE_ON_DISK_CACHE", "true")
    from azure.identity import DefaultAzureCredential  # takes 0.5 s to import

    if isinstance(where, str):
        return internals.MLClient(DefaultAzureCredential(), registry_name=where, enable_telemetry=False)
    return internals.MLClient(DefaultAzureCredential(), *astuple(where), enable_telemetry=False)


def sign_in(options: WorkspaceOptions) -> tuple[Any, WorkspaceName]:
    """Return a client for the workspace that the options name, and its name. Raise InputError or AzureError."""
    name = resolve(options)
    with session(), service_errors("connecting to Azure ML"):
        return connect(name), name


def resolve(options: WorkspaceOptions, environment: Mapping[str, str] | None = None) -> WorkspaceName:
    """Return the workspace: each part from an option, else from a file that an option names, else from an environment
    variable, else from the config.json that `MLClient.from_config` finds.

    environment: default: this process's environment. Raise InputError if a part is missing or the file is invalid.
    """
    known = named(options, environment)
    parts = {name: getattr(known, key) for key, name in _KEYS.items()}
    if missing := [part for part, value in parts.items() if not value]:
        found = f"no {' and no '.join(missing)} is given"
        expected = "a workspace by options, by environment variables, or by a file"
        raise InputError(Problem("workspace", found, expected, _GIVE_WORKSPACE, code="no-workspace"))
    return WorkspaceName(*parts.values())


def named(options: WorkspaceOptions, environment: Mapping[str, str] | None = None) -> WorkspaceOptions:
    """Return the options with known values filled in. Raise InputError for an invalid name or file."""
    environment = os.environ if environment is None else environment
    if options.workspace_name and not _NAME.fullmatch(options.workspace_name):
        name = options.workspace_name
        is_folder = "/" in name or name.startswith(".")
        fix = "--workspace is the Azure ML workspace; for the folder of runs use --folder" if is_folder else ""
        expected = "2 to 33 letters, digits, hyphens and underscores"
        raise InputError(Problem(f"--workspace {name}", "this is not a valid name of a workspace", expected, fix))
    if options.config is not None:
        path = _config_file(options.config)
        if path is None:
            where = f"--config {options.config}"
            raise InputError(Problem(where, "there is no such file", "a workspace's config.json"))
        options = _filled(options, read_config(path))
    variables = (SUBSCRIPTION, RESOURCE_GROUP, WORKSPACE_NAME)
    subscription, group, name = (environment.get(variable, "") for variable in variables)
    options = _filled(options, WorkspaceOptions(subscription, group, name))
    # Do not read a file that is not needed: it may be invalid, or of another workspace.
    if all(getattr(options, key) for key in _KEYS) or (path := _config_file(Path.cwd())) is None:
        return options
    return _filled(options, read_config(path))


def with_placeholders(options: WorkspaceOptions) -> WorkspaceName:
    """Return the workspace that the options name, with placeholders for missing parts. Raise InputError for an invalid
    name or file."""
    known = _filled(named(options), NO_WORKSPACE)
    return WorkspaceName(known.subscription_id, known.resource_group, known.workspace_name)


def read_config(path: Path) -> WorkspaceOptions:
    """Return the workspace of a config.json, in either form that the SDK reads. Raise InputError for any other file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if scope := content.get("Scope"):
            pieces = scope.split("/")
            return WorkspaceOptions(pieces[2], pieces[4], pieces[8])
        subscription, group, name = (str(content[key]) for key in _KEYS)
        return WorkspaceOptions(subscription, group, name)
    except OSError as error:
        found = f"it cannot be read: {error.strerror}"
    except ValueError as error:
        found = f"it is not JSON: {error}"
    except KeyError as error:
        found = f"it has no {error.args[0]}"
    except (AttributeError, IndexError, TypeError):
        found = "it does not name a workspace"
    expected = "a JSON object with subscription_id, resource_group and workspace_name"
    raise InputError(Problem(str(path), found, expected, "download it in the studio: Download config file"))


def _config_file(start: Path) -> Path | None:
    """Return the file itself, or the first one in the folder and its parents, in `MLClient.from_config`'s order."""
    if start.is_file():
        return start
    start = start.absolute()
    for folder, file in product(_FOLDERS, _FILES):
        for parent in (start, *start.parents)[: _MAX_PARENTS + 1]:
            if (path := parent / folder / file).is_file():
                return path
    return None


def _filled(options: WorkspaceOptions, other: WorkspaceOptions | WorkspaceName) -> WorkspaceOptions:
    return replace(options, **{key: getattr(options, key) or getattr(other, key) for key in _KEYS})


@contextlib.contextmanager
def quiet_uploads() -> Iterator[None]:
    """Discard output inside of the block: the SDK ends each upload with coloured empty lines."""
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield
