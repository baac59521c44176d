"""The line of the user's code that created each node of a pipeline."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from allranks.sdk import internals, user_code
from allranks.sdk.user_code import Line


class NodeLines:
    """The nodes that a file's pipeline functions create, at any depth, with the lines that create them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Hold the nodes and components, so that no other object gets the id of one of them.
        self._nodes: dict[int, tuple[Any, Line | None]] = {}
        self._functions: dict[int, tuple[Any, Callable[..., Any]]] = {}

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the nodes that are created inside of the block."""
        builder_class = internals.PipelineComponentBuilder
        add_node, build = builder_class.add_node, builder_class.build

        def add(builder: Any, node: Any) -> None:
            self._nodes[id(node)] = node, user_code.caller(sys._getframe(1), self._path)
            add_node(builder, node)

        def built(builder: Any, **arguments: Any) -> Any:
            component = build(builder, **arguments)
            self._functions[id(component)] = component, builder.func
            return component

        with internals.replaced(builder_class, "add_node", add), internals.replaced(builder_class, "build", built):
            yield

    def function(self, component: Any) -> Callable[..., Any] | None:
        """Return the file's pipeline function that created the component; None if there is none."""
        entry = self._functions.get(id(component))
        return entry[1] if entry else None

    def is_node(self, value: Any) -> bool:
        """Return whether the object is a node of a pipeline."""
        return id(value) in self._nodes

    def line(self, job: Any, path: str) -> Line | None:
        """Return the line that created a job's node at a path: ``prepare``, or ``tune.train`` in a nested pipeline."""
        nodes = getattr(job, "jobs", None)
        node = None
        for name in path.split("."):
            node = nodes.get(name) if isinstance(nodes, dict) else None
            component = getattr(node, "component", None)
            nodes = getattr(component, "jobs", None)
        entry = self._nodes.get(id(node))
        return entry[1] if entry else None
