"""The README and all pages by hand are short. What `make docs` or a measurement writes is not counted."""

from documents import DOCS, pages

PROJECT = DOCS.parent
MEASURED = {PROJECT / f"packages/allranks-lab/docs/{name}.md" for name in ("conformance", "faults", "stacks")}


def words(text: str) -> int:
    """Count as `wc -w` does."""
    return len(text.split())


def test_the_readme_is_short() -> None:
    assert words((PROJECT / "README.md").read_text(encoding="utf-8")) <= 1_100


def test_all_pages_together_are_short() -> None:
    written = {PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *pages()}
    written |= {*PROJECT.glob("packages/*/README.md"), *PROJECT.glob("packages/*/docs/*.md")} - MEASURED
    written = {page for page in written if page.parent != DOCS / "reports"}
    counts = {page.relative_to(PROJECT).as_posix(): words(page.read_text(encoding="utf-8")) for page in written}
    assert sum(counts.values()) <= 35_000, sorted(counts.items(), key=lambda item: -item[1])
