"""Import azure-ai-ml without the parts that only talk to Azure.

Most of the import time is spent on clients, transports, storage, cryptography, and the YAML of workspaces and
endpoints, which reading a pipeline never uses. While the SDK is imported, such a deferred module is replaced by an
empty one, and each name that another module imports from it by a `Placeholder`, which loads the real module on first
use. This is
invisible to users: afterwards, a deferred module can be imported like any other, and the packages that users import
from contain no placeholders.

`allranks check` of the image pipeline takes 2.7 s, and 3.9 s with the whole SDK, on two slow cores.
"""

import contextlib
import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from allranks.deferred_imports import DeferredImports, Placeholder, forget

SDK = "azure.ai.ml"

DEFERRED = frozenset(
    {
        f"{SDK}._ml_client",
        f"{SDK}.operations",
        f"{SDK}._artifacts._artifact_utilities",
        f"{SDK}._artifacts._blob_storage_helper",
        f"{SDK}._artifacts._fileshare_storage_helper",
        f"{SDK}._artifacts._gen2_storage_helper",
        f"{SDK}._local_endpoints",
        f"{SDK}._restclient.arm_ml_service._client",
        f"{SDK}._restclient.arm_ml_service.models._models",
        f"{SDK}._restclient.arm_ml_service.operations",
        f"{SDK}._restclient.azure_ai_assets_v2024_04_01",
        f"{SDK}._restclient.dataset_dataplane",
        f"{SDK}._restclient.model_dataplane",
        f"{SDK}._restclient.registry_discovery",
        f"{SDK}._restclient.runhistory",
        f"{SDK}._restclient.workspace_dataplane",
        f"{SDK}._schema._datastore",
        f"{SDK}._schema._deployment",
        f"{SDK}._schema._endpoint",
        f"{SDK}._schema._feature_set",
        f"{SDK}._schema._feature_store",
        f"{SDK}._schema._feature_store_entity",
        f"{SDK}._schema.compute",
        f"{SDK}._schema.monitoring",
        f"{SDK}._schema.registry",
        f"{SDK}._schema.workspace",
        f"{SDK}._utils._data_utils",
        f"{SDK}._utils._http_utils",
        "msrest.configuration",
        "msrest.pipeline",
        "msrest.service_client",
    }
)
"""Modules that are loaded on first use, including their submodules. None defines an exception that another module
catches, and none is needed while the SDK is imported."""

_PUBLIC = (
    SDK,
    f"{SDK}.entities",
    f"{SDK}._restclient.arm_ml_service",
    f"{SDK}._restclient.arm_ml_service.models",
    "msrest",
)
"""Packages that re-export names of deferred modules, but do not use them in their own functions."""

_LEFT_BY_SDK = {
    "http": ("client", "cookiejar", "cookies", "server"),
    "importlib": ("readers", "resources"),
    "urllib": ("error", "parse", "request", "response"),
    "wsgiref": ("handlers", "headers", "util"),
}
"""Submodules of the standard library that the whole SDK imports, so that a user's file may use them without an
import."""

_CLIENT = (f"{SDK}._ml_client", f"{SDK}.operations")
"""Modules that are only imported by programs that talk to Azure."""


class _Completion:
    """Replaces all placeholders as soon as a program imports the client, since deferral then saves nothing."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:  # noqa: ARG002
        if name in _CLIENT:
            sys.meta_path.remove(self)
            _complete()


def import_sdk() -> None:
    """Import azure-ai-ml, with deferred modules if its version permits it."""
    before = set(sys.modules)
    try:
        with DeferredImports(DEFERRED):
            importlib.import_module(SDK)
    except Exception:  # a version with another structure
        for name in set(sys.modules) - before:
            if _is_deferred_package(name):
                forget(name)
        importlib.import_module(SDK)
        return
    for name in _PUBLIC:
        if name in sys.modules:
            _resolve_on_use(sys.modules[name])
    import_on_use(_LEFT_BY_SDK)
    sys.meta_path.insert(0, _Completion())


def import_on_use(submodules: Mapping[str, tuple[str, ...]]) -> None:
    """Let packages import submodules when they are first used as attributes."""
    for package, names in submodules.items():

        def attribute(name: str, package: str = package, names: tuple[str, ...] = names) -> Any:
            if name in names:
                return importlib.import_module(f"{package}.{name}")
            raise AttributeError(f"module {package!r} has no attribute {name!r}")

        vars(importlib.import_module(package)).setdefault("__getattr__", attribute)


def _resolve_on_use(module: ModuleType) -> None:
    """Replace the placeholders in a package's namespace by a function that returns the real objects."""
    names = vars(module)
    waiting = {name: value for name, value in names.items() if type(value) is Placeholder}
    if not waiting:
        return
    get, listed = names.get("__getattr__"), names.get("__dir__")

    def attribute(name: str) -> Any:
        if name in waiting:
            names[name] = value = waiting[name].resolve()
            return value
        if get is not None:
            return get(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    def directory() -> list[str]:
        return sorted({*(names if listed is None else listed()), *waiting})

    for name in waiting:
        del names[name]
    names["__getattr__"], names["__dir__"] = attribute, directory


def _complete() -> None:
    """Replace each placeholder in the namespaces of the SDK by the real object."""
    for name, module in list(sys.modules.items()):
        if not _is_deferred_package(name):
            continue
        for key, value in list(vars(module).items()):
            if type(value) is Placeholder:
                with contextlib.suppress(ImportError, AttributeError):  # the first use raises it again
                    vars(module)[key] = value.resolve()


def _is_deferred_package(name: str) -> bool:
    """Return whether a module belongs to the packages that have deferred modules."""
    return any(name == package or name.startswith(f"{package}.") for package in (SDK, "msrest"))
