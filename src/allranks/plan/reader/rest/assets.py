"""What a REST body only names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Assets(Protocol):
    """Resolves ids, as they stand in REST bodies, to REST bodies or to folders of this machine.

    Every method raises InputError where there is no such thing.
    """

    def component(self, identity: str) -> Mapping[str, Any]:
        """Return the body of a component's version."""

    def environment(self, identity: str) -> Mapping[str, Any]:
        """Return the body of an environment's version."""

    def code(self, identity: str) -> Path:
        """Return the folder, or the single file, that is a version of code."""

    def build_context(self, uri: str) -> Path:
        """Return the folder of a Dockerfile that was uploaded."""

    def data(self, uri: str) -> str:
        """Where data is: a local path, or the URI itself where this machine has no copy."""
