"""What the build adds to pyproject.toml: files that are generated or that move, and the description on PyPI.

`force-include` in pyproject.toml would also copy the files into an editable install, where they would hide later
changes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

MOVED = {
    # What `allranks why` prints.
    "docs/reference/troubleshooting.md": "allranks/cli/troubleshooting.md",
}
RELATIVE_LINK = re.compile(r"(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\((?!https?://)([^)\s]+)\)")


class WheelFiles(BuildHookInterface):
    """Generates library.pyi and the specs of variants, and adds files to the wheel whose places differ."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, and each package in components/shared as a package of its own."""
        # A process of its own: the modules of an installed allranks must not stay in this one.
        # -S: the sitecustomize of pip's build environment removes the folders of installed packages from sys.path, and
        # with them src, if allranks is installed in place.
        path = ["src", *filter(None, sys.path)]
        command = [sys.executable, "-S", "tools/make_library.py"]
        subprocess.run(command, cwd=self.root, env={**os.environ, "PYTHONPATH": os.pathsep.join(path)}, check=True)
        build_data["artifacts"] += ["/src/allranks/library.pyi", "/components/*/*/*/component.yaml"]
        if version != "standard":
            return
        shared = Path(self.root, "components", "shared").glob("*/__init__.py")
        build_data["force_include"] |= MOVED | {str(file.parent): file.parent.name for file in shared}


class Description(MetadataHookInterface):
    """The README as the description, without what leads nowhere outside the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description: with absolute links if the project has the URL `Source`, else with their texts alone."""
        source = metadata.get("urls", {}).get("Source")

        def absolute(link: re.Match[str]) -> str:
            image, text, target = link.groups()
            if not source:
                return "" if image else text
            path = f"README.md{target}" if target.startswith("#") else target
            return f"{image}[{text}]({source}/{'raw' if image else 'blob'}/v{metadata['version']}/{path})"

        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": RELATIVE_LINK.sub(absolute, readme)}
