"""Adds files to the wheel whose places differ from those in the repository.

`force-include` in pyproject.toml would also copy them into an editable install, where they would hide later changes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MOVED = {
    # What `allranks explain` prints.
    "docs/troubleshooting.md": "allranks/cli/troubleshooting.md",
    # verify_environment includes it by a path that is relative to its spec.
    "src/allranks/environments/inside": "allranks/shipped/src/allranks/environments/inside",
}


class WheelFiles(BuildHookInterface):
    """The build hook that hatchling finds in this file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, and each package in components/shared as a package of its own."""
        if version != "standard":
            return
        shared = Path(self.root, "components", "shared").glob("*/__init__.py")
        build_data["force_include"] |= MOVED | {str(file.parent): file.parent.name for file in shared}
