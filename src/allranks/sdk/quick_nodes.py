"""Load components and create nodes with azure-ai-ml quickly and quietly."""

from __future__ import annotations

import contextlib
import inspect
import logging
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import yaml

from allranks.sdk import bounded_yaml, internals

_READS_FRAMES_ONLY = ("azure", "mldesigner")
"""Packages that call `inspect.stack` and use only the frames and the names of their functions."""


@contextlib.contextmanager
def quick_nodes() -> Iterator[None]:
    """Avoid four operations that take most of the time of a node, without changing the result.

    For each node, the SDK writes the whole component as YAML into the docstring of the function that creates the node.
    For each step, it reads the component's file with the YAML loader that is written in Python. For each function with
    @command_component, it reads the source of every frame of the stack several times, and uses only the frames.
    For each mistake, it reads the file with strictyaml, which takes time in proportion to the square of its length.
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
        internals.replaced(internals.validation_results, "strictyaml", SimpleNamespace(load=_Located.load)),
    ):
        yield


@dataclass(frozen=True)
class _Located:
    """A value of a YAML file, as the SDK uses strictyaml's to locate a mistake."""

    node: yaml.Node

    @classmethod
    def load(cls, text: str) -> _Located:
        bounded_yaml.check(text)
        if (node := yaml.compose(text, Loader=bounded_yaml.LOADER)) is None:
            raise ValueError("the file is empty")
        return cls(node)

    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    def get(self, name: str) -> _Located | None:
        return next((_Located(value) for key, value in self.node.value if key.value == name), None)

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    @property
    def value(self) -> Any:
        return self.node.value if isinstance(self.node, yaml.ScalarNode) else None

    @property
    def start_line(self) -> int:
        return int(self.node.start_mark.line) + 1


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
