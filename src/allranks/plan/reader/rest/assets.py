"""Resolve the assets that a REST body refers to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Assets(Protocol):
    """Resolves ids in REST bodies to REST bodies or to folders on this machine.

    Every method raises InputError if the asset does not exist.
    """

    def component(self, identity: str) -> Mapping[str, Any]:
        """Return the body of a component's version."""

    def environment(self, identity: str) -> Mapping[str, Any]:
        """Return the body of an environment's version."""

    def code(self, identity: str) -> Path:
        """Return the folder, or the single file, of a version of code."""

    def build_context(self, uri: str) -> Path:
        """Return the folder of an uploaded Dockerfile."""

    def data(self, uri: str) -> str:
        """Return the local path of data, or the URI itself if this machine has no copy."""
