"""Use azure-ai-ml without its output, its slow paths and its temporary files."""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from allranks.sdk import internals, light_import
from allranks.sdk.distributed_component import distributed_components
from allranks.sdk.quick_nodes import quick_nodes
from allranks.sdk.schema_unions import selected_alternatives
from allranks.sdk.staging import exact_uploads
from allranks.sdk.thread_safety import serialized_model_creation

PRIVATE_FEATURES = "AZURE_ML_CLI_PRIVATE_FEATURES_ENABLED"
_LOGGERS = ("azure", "azure.ai.ml", "marshmallow", "mldesigner", "msrest", "opentelemetry")


@contextlib.contextmanager
def session(*, client: bool = True) -> Iterator[None]:
    """Import and use azure-ai-ml inside of this block.

    Its logs and warnings are discarded, standard output is redirected to standard error, control flow nodes are
    enabled, its temporary folders are deleted, and it uploads exactly what `allranks.sdk.files` lists.

    client: whether the block talks to Azure. Without its client, the SDK is imported in less than half the time
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        stack.enter_context(entry(os.environ, PRIVATE_FEATURES, "true"))
        stack.enter_context(_muted(client))
        folder = stack.enter_context(_temporary_folders())
        stack.enter_context(quick_nodes())
        stack.enter_context(distributed_components())
        stack.enter_context(selected_alternatives())
        stack.enter_context(exact_uploads(folder, client=client))
        if client:
            stack.enter_context(serialized_model_creation())
        yield


def as_released() -> contextlib.AbstractContextManager[None]:
    """Return a context in which azure-ai-ml accepts what it accepts without its private features."""
    return entry(os.environ, PRIVATE_FEATURES, "false")


@contextlib.contextmanager
def entry(names: MutableMapping[str, Any], name: str, value: Any) -> Iterator[None]:
    """Set the value of a name in a mapping, such as os.environ, inside of the block."""
    missing = object()
    before = names.get(name, missing)
    names[name] = value
    try:
        yield
    finally:
        if before is missing:
            names.pop(name, None)
        else:
            names[name] = before


@contextlib.contextmanager
def _temporary_folders() -> Iterator[Path]:
    """Delete the folders that two SDK modules create and leave behind, for additional includes and for expressions.

    Yield the folder that contains them.
    """
    modules = (internals.additional_includes, internals.pipeline_expressions)
    with tempfile.TemporaryDirectory(prefix="allranks-", ignore_cleanup_errors=True) as folder:
        own = SimpleNamespace(mkdtemp=functools.partial(tempfile.mkdtemp, dir=folder))
        with contextlib.ExitStack() as stack:
            for module in modules:
                stack.enter_context(internals.replaced(module, "tempfile", own))
            yield Path(folder)


@contextlib.contextmanager
def _muted(client: bool) -> Iterator[None]:
    _import(client)  # the import sets a handler and a level of the SDK's logger
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _import(client: bool) -> None:
    """Import the SDK without garbage collection, which takes a tenth of the time and finds nothing to free."""
    if "azure.ai.ml" in sys.modules:
        return
    enabled = gc.isenabled()
    gc.disable()
    try:
        if client:
            import azure.ai.ml  # noqa: F401
        else:
            light_import.import_sdk()
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
