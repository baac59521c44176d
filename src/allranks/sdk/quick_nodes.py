"""Load components and create nodes with azure-ai-ml quickly and quietly."""

from __future__ import annotations

import contextlib
import inspect
import logging
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import yaml

from allranks.sdk import bounded_yaml, internals

_READS_FRAMES_ONLY = ("azure", "mldesigner")
"""Packages that call `inspect.stack` and use only the frames and the names of their functions."""


@contextlib.contextmanager
def quick_nodes() -> Iterator[None]:
    """Avoid three operations that take most of the time of a node, without changing the result.

    For each node, the SDK writes the whole component as YAML into the docstring of the function that creates the node.
    For each step, it reads the component's file with the YAML loader that is written in Python. For each function with
    @command_component, it reads the source of every frame of the stack several times, and uses only the frames.
    """
    load_component = internals.load_component_functions
    to_function, frames = load_component.to_component_func, inspect.stack

    def without_yaml(component: Any, create: Any) -> Any:
        yaml_text = internals.yaml_text(component)
        internals.set_yaml_text(component, yaml_text or "-")
        try:
            return to_function(component, create)
        finally:
            internals.set_yaml_text(component, yaml_text)

    def without_source(context: int = 1) -> list[inspect.FrameInfo]:
        caller = sys._getframe(1)
        if caller.f_globals.get("__name__", "").partition(".")[0] not in _READS_FRAMES_ONLY:
            return frames(context)[1:]
        return [
            inspect.FrameInfo(frame, frame.f_code.co_filename, line, frame.f_code.co_name, None, None)
            for frame, line in traceback.walk_stack(caller)
        ]

    with (
        internals.replaced(load_component, "to_component_func", without_yaml),
        internals.replaced(yaml, "safe_load", bounded_yaml.load),
        internals.replaced(inspect, "stack", without_source),
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
