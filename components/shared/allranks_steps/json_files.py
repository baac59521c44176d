"""Write human-readable JSON files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def write_json(file: Path, content: object) -> None:
    """Write the content as indented JSON, and create the folder of the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def confusion_document(matrix: Any, classes: Sequence[str]) -> dict[str, Any]:
    """Return a confusion matrix in the format that Azure ML draws. matrix: an array, rows by true class"""
    return {
        "schema_type": "confusion_matrix",
        "schema_version": "v1",
        "data": {"class_labels": list(classes), "matrix": matrix.tolist()},
    }
