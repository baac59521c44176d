"""JSON files that people read too."""

from __future__ import annotations

import json
from pathlib import Path


def write_json(file: Path, content: object) -> None:
    """Write the content as indented JSON, and create the folder of the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
