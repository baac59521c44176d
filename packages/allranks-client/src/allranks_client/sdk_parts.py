"""The private parts of azure-ai-ml that `LocalClient` replaces: its clients of storage and of registries, and waits."""

import contextlib
import functools
from collections.abc import Callable, Mapping
from copy import deepcopy
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from azure.ai.ml._artifacts._blob_storage_helper import BlobStorageClient as BlobStorageClient
from azure.ai.ml._utils import _storage_utils
from azure.ai.ml.operations import _job_ops_helper

from allranks.sdk import internals

_SDK = "azure.ai.ml"
_STORAGE_USERS = (
    f"{_SDK}._artifacts._artifact_utilities",
    f"{_SDK}._utils._data_utils",
    f"{_SDK}.operations._code_operations",
    f"{_SDK}.operations._model_operations",
)
"""The modules that have imported the function that returns a client of a storage account."""

_REGISTRY_USERS = (
    f"{_SDK}._ml_client",
    *(f"{_SDK}.operations._{kind}_operations" for kind in ("data", "environment", "model")),
)
"""The modules that have imported the function that returns clients of a registry."""

_local_accounts: dict[str, Callable[[str], Any]] = {}


def serve_storage(account: str, storage: Callable[[str], Any]) -> None:
    """Replace the SDK's client of one storage account. storage: returns the client of a container"""
    _local_accounts[account] = storage
    for name in _STORAGE_USERS:
        import_module(name).get_storage_client = _storage_client  # type: ignore[attr-defined]


def _storage_client(credential: Any = None, storage_account: Any = None, *values: Any, **more: Any) -> Any:
    address = urlsplit(more.get("account_url") or "")
    account = storage_account or (address.hostname or "").partition(".")[0]
    if account in _local_accounts:
        return _local_accounts[account](more.get("container_name") or address.path.strip("/"))
    return _storage_utils.get_storage_client(credential, storage_account, *values, **more)


def adapt_registries() -> None:
    """Make the SDK's clients of registries use the transport of their credential: `models.share` drops MLClient's."""
    for module in map(import_module, _REGISTRY_USERS):
        original = module.get_registry_client
        if not hasattr(original, "__wrapped__"):
            module.get_registry_client = functools.wraps(original)(  # type: ignore[attr-defined]
                functools.partial(_registry_client, original)
            )


def _registry_client(original: Callable[..., Any], credential: Any, *values: Any, **more: Any) -> Any:
    transport = getattr(credential, "transport", None)
    return original(credential, *values, **({"transport": transport} if transport else {}) | more)


def adapt_jobs(client: Any, pause: Callable[[str], contextlib.AbstractContextManager[Callable[[], None]]]) -> None:
    """Replace the wait between two requests of `jobs.stream`, and add no tenant to the address of a job's page.

    pause: returns a context for the stream of a job, which yields the function that waits
    """
    operations = client.jobs
    original = operations._stream_logs_until_completion

    def stream(runs: Any, job: Any, *values: Any, **more: Any) -> None:
        with (
            pause(job.name) as wait,
            internals.replaced(_job_ops_helper, "_wait_before_polling", lambda _: wait() or 0),
        ):
            original(runs, job, *values, **more)

    operations._stream_logs_until_completion = stream
    operations._append_tid_to_studio_url = lambda _: None


def nodes_of_rest(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nodes of a pipeline component in the format of a file. spec: the REST form of the component"""
    from azure.ai.ml._restclient.arm_ml_service.models import ComponentVersion
    from azure.ai.ml.entities import Component

    body = ComponentVersion(properties={"componentSpec": deepcopy(spec)})
    return dict(internals.as_dict(Component._from_rest_object(body))["jobs"])
