"""Placeholders for what only a workspace knows, which a file gets while it is read without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from allranks.sdk import internals


class Unknown(str):
    """A placeholder for a value of the workspace: a string without items, whose attributes are placeholders too."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(f"{self}.{name}")

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self

    split = __call__  # of an id

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __getitem__(self, key: Any) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


class _Label(str):
    """A label in place of a version. It converts to the integer 1, so that code can search for the highest version."""

    def __int__(self) -> int:
        return 1


class Asset(Unknown):
    """A registered asset, whose text is its id: ``azureml:NAME:VERSION``, or ``azureml://registries/...``."""

    name: str
    version: str
    id: str
    path: str
    tags: dict[str, str]
    properties: dict[str, str]
    split = str.split

    def __new__(cls, collection: str, registry: str | None, name: str, version: Any, label: Any) -> Asset:
        number = None if version is None else str(version)
        if registry:
            tail = f"versions/{number}" if number else f"labels/{label or 'latest'}"
            text = f"azureml://registries/{registry}/{collection}/{name}/{tail}"
        else:
            text = f"azureml:{name}:{number}" if number else f"azureml:{name}@{label or 'latest'}"
        asset = super().__new__(cls, text)
        asset.name, asset.version = name, number or _Label(label or "latest")
        asset.id = asset.path = text
        asset.tags, asset.properties = {}, {}
        return asset


class Component(Asset):
    """A registered component without a local spec. Calling it creates a node that refers to its id."""

    def __call__(self, *arguments: Any, **inputs: Any) -> Any:
        if arguments:
            raise TypeError(f"the inputs of {self} are given by name: its spec is not on this machine")
        set_inputs = {name: value for name, value in inputs.items() if value is not None}
        node = internals.Command(component=str(self), inputs=set_inputs, _from_component_func=True)
        internals.set_outputs(node, _any_outputs(node))
        return node


def _any_outputs(node: Any) -> Any:
    """Return the outputs of a node with an unknown component, in which every requested output exists."""

    class AnyOutputs(internals.OutputsAttrDict):  # type: ignore[misc]
        def __getitem__(self, name: str) -> Any:
            if name not in self and not name.startswith("_"):
                dict.__setitem__(self, name, internals.build_output(node, name))
            return super().__getitem__(name)

    return AnyOutputs({})
