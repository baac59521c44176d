"""What runs in the Python of a step is written for Python 3.7, whatever Python allranks itself has."""

import ast
from pathlib import Path

import pytest

import allranks
from allranks.local import missing_modules

SOURCE = Path(allranks.__file__).parent
PARALLEL = [f"local/parallel/{path.name}" for path in (SOURCE / "local/parallel").glob("*.py")]
TEXTS = {name: (SOURCE / name).read_text(encoding="utf-8") for name in ("contract/report.py", *PARALLEL)}
TEXTS["a question"] = missing_modules._QUESTION


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_it_parses_in_3_7(text: str) -> None:
    ast.parse(text, feature_version=(3, 7))
