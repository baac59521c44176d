"""Pipelines in Python, with azure-ai-ml's DSL."""

from collections.abc import Sequence
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks_studio.documents.canvas import Graph
from allranks_studio.documents.edits import Edit
from allranks_studio.documents.patches import Patch
from allranks_studio.documents.python_outline import Module
from allranks_studio.documents.source import Outline


class Python:
    """A `Language`."""

    def outline(self, text: str) -> Outline:
        return Module(text).outline()

    def patches(self, text: str, edit: Edit, graph: Graph, path: Path) -> Sequence[Patch]:  # noqa: ARG002
        raise InputError(Problem(path.name, "it cannot be edited yet"))
