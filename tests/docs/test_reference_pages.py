"""`make docs` makes the reference pages, and their links lead somewhere."""

import runpy
from pathlib import Path

import pytest

from documents import broken_links

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("api", ("### allranks.run\n", "### allranks.runtime.Checkpoints\n")),
        ("checks", ("| `nested-launcher` | warning |",)),
        ("cli", ("# allranks run\n", "## allranks schedules apply\n")),
        ("components", ("[`allranks_train_lightning`]", "| lightning-transformers | per process | yes |")),
        ("sizes", ("| `Standard_ND96asr_v4` |",)),
    ],
)
def test_a_page_is_made(page: str, words: tuple[str, ...]) -> None:
    made = runpy.run_path(str(DOCS.parent / "tools" / f"make_{page}.py"))
    text = made["page"]()
    assert [each for each in words if each not in text] == []
    assert broken_links(text, made["PAGE"].parent) == []
