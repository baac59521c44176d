"""`LocalClient` on a folder and `MLClient` on the fake service side by side, and what a call gives on each."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from azure.ai.ml import MLClient, load_component
from azure.core.exceptions import HttpResponseError
from fake.names import GROUP, REGISTRY, SUBSCRIPTION, WORKSPACE
from fake.service import FakeAzure

from allranks import LocalClient
from allranks_command import write

SPEC = """\
name: train
version: {version}
type: command
display_name: {display}
environment: {{image: "python:3.12"}}
code: code
inputs:
  data: {{type: uri_folder}}
  lr: {{type: number, default: 0.1}}
outputs:
  model: {{type: uri_folder}}
command: python train.py ${{{{inputs.data}}}} {option} ${{{{inputs.lr}}}} ${{{{outputs.model}}}}
"""


@dataclass
class Side:
    """One of both clients."""

    client: Any
    folder: Path
    registry: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def component(self, version: str = "1", display: str = "Train", option: str = "--lr") -> Any:
        text = SPEC.format(version=version, display=display, option=option)
        return load_component(write(self.folder, f"train-{version}-{display}-{len(option)}.yaml", text))


Call = Callable[[Side], Any]


def outcome(call: Call, side: Side) -> Any:
    """What a call gives, without what differs by nature: ids, times, the names of the workspace."""
    try:
        result = call(side)
        if isinstance(result, Iterator):
            result = sorted((plain(each, side) for each in result), key=str)
    except Exception as error:
        # The message of the service is not the SDK's.
        return type(error), getattr(error, "status_code", None) if isinstance(error, HttpResponseError) else ""
    return plain(result, side)


DIFFERENT = {
    "creation_context": "the time, and who has created it",
    "created_on": "the time",
    "identity": "the workspace is a folder",
    "hbi_workspace": "the workspace is a folder",
    "size": "a compute is this machine",
    "location": "a compute is this machine",
    "max_instances": "a compute is this machine",
    "idle_time_before_scale_down": "a compute is this machine",
    "account_name": "the files are in the workspace folder",
    "container_name": "the files are in the workspace folder",
    "network_settings": "a compute is this machine",
    "discovery_url": "the workspace is a folder",
    "mlflow_tracking_uri": "the workspace is a folder",
    "public_network_access": "the workspace is a folder",
    "storage_account": "the workspace is a folder",
}
"""The attributes that differ, with the reason."""

GENERATED = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]+|https://\w+\.blob\.core\.windows\.net(:\d+)?/\S+")


def plain(value: Any, side: Side) -> Any:
    """An entity as its class and its attributes."""
    if hasattr(type(value), "_to_dict"):
        return type(value).__name__, plain(value._to_dict(), side)
    if isinstance(value, dict):
        return {key: plain(inner, side) for key, inner in value.items() if key not in DIFFERENT}
    if isinstance(value, (list, tuple)):
        return [plain(inner, side) for inner in value]
    if isinstance(value, str):
        return GENERATED.sub("GENERATED", value.replace(str(side.folder), "FOLDER"))
    return value if value is None or isinstance(value, (bool, int, float)) else (type(value).__name__, str(value)[:0])


@pytest.fixture
def sides(azure: FakeAzure, quick: None, tmp_path: Path) -> tuple[Side, Side]:
    folders = []
    for name in ("local", "fake"):
        folder = tmp_path / name
        write(folder, "code/train.py", "print()\n")
        write(folder, "other/words", "a b\n")
        write(folder, "image/Dockerfile", "FROM python:3.12\n")
        write(folder, "broken.yaml", "name: broken\ntype: command\n")
        folders.append(folder)
    options: dict[str, Any] = {"folder": folders[0] / "workspace", "show_progress": False}
    local = LocalClient(None, SUBSCRIPTION, GROUP, WORKSPACE, **options)
    assert isinstance(local, MLClient)
    registries = LocalClient(registry_name=REGISTRY, **options), azure.client(REGISTRY, show_progress=False)
    clients = local, azure.client(show_progress=False)
    return tuple(map(Side, clients, folders, registries))  # type: ignore[return-value]
