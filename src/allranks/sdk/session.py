"""Use azure-ai-ml without its output, its slow paths and its temporary files."""

from __future__ import annotations

import contextlib
import functools
import gc
import logging
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from allranks.sdk import bounded_yaml, internals, light_import
from allranks.sdk.schema_unions import selected_alternatives
from allranks.sdk.staging import exact_uploads

PRIVATE_FEATURES = "AZURE_ML_CLI_PRIVATE_FEATURES_ENABLED"
_models = threading.RLock()
_LOGGERS = ("azure", "azure.ai.ml", "marshmallow", "mldesigner", "msrest", "opentelemetry")


@contextlib.contextmanager
def session(*, client: bool = True) -> Iterator[None]:
    """Import and use azure-ai-ml inside of this block.

    Its logs and warnings are discarded, standard output is redirected to standard error, control flow nodes are
    enabled, its temporary folders are deleted, and it uploads exactly the files that `allranks.sdk.files` lists.

    client: whether the block talks to Azure. Without its client, importing the SDK takes less than half the time
    """
    with (
        contextlib.redirect_stdout(sys.stderr),
        entry(os.environ, PRIVATE_FEATURES, "true"),
        _muted(client),
        _temporary_folders() as folder,
        quick_yaml(),
        selected_alternatives(),
        exact_uploads(folder, client=client),
        serialized_model_creation() if client else contextlib.nullcontext(),
    ):
        yield


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
    """Delete the folders that two SDK modules create for additional includes and expressions, and do not delete.

    Yield the folder that contains them.
    """
    with tempfile.TemporaryDirectory(prefix="allranks-", ignore_cleanup_errors=True) as folder:
        own = SimpleNamespace(mkdtemp=functools.partial(tempfile.mkdtemp, dir=folder))
        with (
            internals.replaced(internals.additional_includes, "tempfile", own),
            internals.replaced(internals.pipeline_expressions, "tempfile", own),
        ):
            yield Path(folder)


@contextlib.contextmanager
def _muted(client: bool) -> Iterator[None]:
    """Import the SDK, and discard its logs and warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _import(client)  # the import sets a handler and a level of the SDK's logger
        levels = {logger: logger.level for logger in map(logging.getLogger, _LOGGERS)}
        for logger in levels:
            logger.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for logger, level in levels.items():
                logger.setLevel(level)


def _import(client: bool) -> None:
    """Import the SDK without garbage collection, which would free nothing and take an eighth of `allranks check`."""
    if "azure.ai.ml" in sys.modules:
        return
    enabled = gc.isenabled()
    gc.disable()
    try:
        if client:
            import azure.ai.ml  # noqa: F401  takes 0.9 s to import
        else:
            light_import.import_sdk()
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


@contextlib.contextmanager
def quick_yaml() -> Iterator[None]:
    """Let the SDK read YAML with a loader in C that limits the size of the content, and not locate mistakes in it,
    inside of the block.

    With the SDK's loaders, which are written in Python, `allranks check` of the image pipeline takes an eighth longer,
    and locating a mistake in a file of 20 steps, which `yaml_lines` does too, takes 0.5 s.
    """
    with (
        internals.replaced(yaml, "safe_load", bounded_yaml.load),
        internals.replaced(internals.LocationResolver, "resolve", lambda *_: None),
    ):
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the SDK's warnings and logs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)


@contextlib.contextmanager
def serialized_model_creation() -> Iterator[None]:
    """Let only one thread at a time create a model of the SDK's REST client, inside of the block.

    The SDK resolves components in threads if its private features are enabled. The first object of a class writes the
    table of its fields into the class, while another thread may read it for a subclass: "dictionary changed size during
    iteration", or a response that silently remains a plain dictionary (Azure/azure-sdk-for-python#47426).
    """
    model = internals.RestModel
    create = model.__new__

    def in_turn(cls: Any, *values: Any, **named: Any) -> Any:
        with _models:
            return create(cls, *values, **named)

    with internals.replaced(model, "__new__", staticmethod(in_turn)):
        yield
