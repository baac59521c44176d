"""The description on PyPI: the README, without what leads nowhere outside the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\((?!https?://)([^)\s]+)\)")


class Description(MetadataHookInterface):
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
