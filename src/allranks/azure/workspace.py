"""Which Azure ML workspace or registry is meant, and a client for it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem

SUBSCRIPTION = "AZUREML_ARM_SUBSCRIPTION"
RESOURCE_GROUP = "AZUREML_ARM_RESOURCEGROUP"
WORKSPACE_NAME = "AZUREML_ARM_WORKSPACE_NAME"

_FOLDERS = (".azureml", "aml_config", "")
_FILES = ("config.json", "project.json")
_KEYS = ("subscription_id", "resource_group", "workspace_name")
_LEVELS = 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{1,32}")


@dataclass(frozen=True)
class WorkspaceOptions:
    """What the user said of where to work; what is empty is looked for elsewhere.

    registry_name: a registry instead of a workspace; it needs nothing else
    config:        a config.json, or the folder from which on upwards one is looked for; None: the current folder
    """

    subscription_id: str = ""
    resource_group: str = ""
    workspace_name: str = ""
    registry_name: str = ""
    config: Path | None = None


@dataclass(frozen=True)
class WorkspaceName:
    """A workspace by its full name."""

    subscription_id: str
    resource_group: str
    workspace_name: str

    def __str__(self) -> str:
        return self.workspace_name

    @property
    def arm_id(self) -> str:
        """Its id in Azure Resource Manager."""
        return (
            f"/subscriptions/{self.subscription_id}/resourceGroups/{self.resource_group}"
            f"/providers/Microsoft.MachineLearningServices/workspaces/{self.workspace_name}"
        )

    def studio(self, run: str) -> str:
        """The page of a run in the studio."""
        return f"https://ml.azure.com/runs/{run}?wsid={self.arm_id}"

    def options(self) -> WorkspaceOptions:
        """The options that name it."""
        return WorkspaceOptions(self.subscription_id, self.resource_group, self.workspace_name)


def connect(options: WorkspaceOptions) -> Any:
    """The SDK's MLClient for the workspace or the registry; signs in by azure-identity's DefaultAzureCredential.

    A workspace is not asked for anything yet; for a registry, the service is asked where it is. Use it inside of
    `allranks.azure.errors.service_errors`. Raises InputError where no workspace is named.
    """
    # Before the SDK is imported, which takes seconds.
    name = None if options.registry_name else resolve(options)
    # Its bar would come between our lines, so it is hidden. Without one (show_progress=False) the SDK looks at no
    # file's upload, and waits for ever where one fails (azure-ai-ml 1.35.2, _asset_utils.upload_directory).
    os.environ.setdefault("TQDM_DISABLE", "1")
    # It remembers on the disk which components it has registered, also those that were deleted since.
    os.environ.setdefault("AZURE_ML_DISABLE_ON_DISK_CACHE", "true")
    from azure.ai.ml import MLClient
    from azure.identity import DefaultAzureCredential

    if name is None:
        return MLClient(DefaultAzureCredential(), registry_name=options.registry_name, enable_telemetry=False)
    where = (name.subscription_id, name.resource_group, name.workspace_name)
    return MLClient(DefaultAzureCredential(), *where, enable_telemetry=False)


def sign_in(options: WorkspaceOptions) -> tuple[Any, WorkspaceName]:
    """Return a client for the workspace that the options name, and its name. Raise InputError or AzureError."""
    from allranks.azure.errors import service_errors
    from allranks.sdk.session import session

    name = resolve(options)
    with session(), service_errors("connecting to Azure ML"):
        return connect(name.options()), name


def resolve(options: WorkspaceOptions, environment: Mapping[str, str] | None = None) -> WorkspaceName:
    """The workspace that is meant: each part by option, else by a file that an option names, else by environment
    variable, else by the config.json that `MLClient.from_config` finds.

    environment: by default this process's. Raises InputError where a part is missing, or the file is none.
    """
    found = named(options, environment)
    parts = {
        "subscription": found.subscription_id,
        "resource group": found.resource_group,
        "workspace": found.workspace_name,
    }
    if missing := [part for part, value in parts.items() if not value]:
        raise InputError(_not_named(missing))
    return WorkspaceName(*parts.values())


def named(options: WorkspaceOptions, environment: Mapping[str, str] | None = None) -> WorkspaceOptions:
    """The options with what is empty filled in as far as it is known. Raises InputError for a wrong name or file."""
    environment = os.environ if environment is None else environment
    if options.workspace_name and not _NAME.fullmatch(options.workspace_name):
        raise InputError(_no_name(options.workspace_name))
    if options.config is not None:
        path = _config_file(options.config)
        if path is None:
            raise InputError(
                Problem(f"--config {options.config}", "there is no such file", "a workspace's config.json")
            )
        options = _filled(options, read_config(path))
    subscription, group, name = (environment.get(each, "") for each in (SUBSCRIPTION, RESOURCE_GROUP, WORKSPACE_NAME))
    options = _filled(options, WorkspaceOptions(subscription, group, name))
    complete = options.subscription_id and options.resource_group and options.workspace_name
    # A file that is not needed may be wrong, or of another workspace.
    if complete or (path := _config_file(Path.cwd())) is None:
        return options
    return _filled(options, read_config(path))


def read_config(path: Path) -> WorkspaceOptions:
    """What a config.json names, in both of the forms that the SDK reads. Raises InputError where it is none."""
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
    """The file itself, or the first from the folder on upwards, in the order of `MLClient.from_config`."""
    if start.is_file():
        return start
    start = start.absolute()
    for folder, file in product(_FOLDERS, _FILES):
        for parent in (start, *start.parents)[: _LEVELS + 1]:
            if (path := parent / folder / file).is_file():
                return path
    return None


def _filled(options: WorkspaceOptions, other: WorkspaceOptions) -> WorkspaceOptions:
    return replace(
        options,
        subscription_id=options.subscription_id or other.subscription_id,
        resource_group=options.resource_group or other.resource_group,
        workspace_name=options.workspace_name or other.workspace_name,
    )


def _not_named(missing: list[str]) -> Problem:
    return Problem(
        "workspace",
        f"no {' and no '.join(missing)} is named",
        "a workspace by options, by environment variables, or by a file",
        "--subscription ID --resource-group NAME --workspace NAME,\n"
        f"or {SUBSCRIPTION}, {RESOURCE_GROUP} and {WORKSPACE_NAME},\n"
        "or config.json of the workspace (studio: Download config file) in .azureml/ here or in a folder above",
    )


def _no_name(name: str) -> Problem:
    folder = "/" in name or name.startswith(".")
    return Problem(
        f"--workspace {name}",
        "no workspace can have that name",
        "2 to 33 letters, digits, hyphens and underscores",
        "it names the Azure ML workspace here; for the folder of runs use --folder" if folder else "",
    )
