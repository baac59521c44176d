"""Notebooks, written by tests."""

import json
import textwrap
from pathlib import Path


def write_notebook(folder: Path, *cells: str, name: str = "notebook.ipynb", language: str = "python") -> Path:
    """Write a notebook: each text is a cell of code, and one that begins with # and a space is a cell of text."""
    listed = []
    for cell in cells:
        source = textwrap.dedent(cell).strip("\n")
        kind = "markdown" if source.startswith("## ") else "code"
        code = {"outputs": [], "execution_count": None} if kind == "code" else {}
        listed.append(
            {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True), "id": f"c{len(listed)}"}
            | code
        )
    tree = {
        "cells": listed,
        "metadata": {"kernelspec": {"name": "kernel", "display_name": "Kernel", "language": language}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(tree, indent=1), encoding="utf-8")
    return path
