"""The site of the documentation: its navigation has every page, its links lead somewhere, it asks no other server."""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import make_site
import pytest
from make_site import ADDRESS, REPOSITORY, ROOT
from markdown_it import MarkdownIt

from accessibility import assert_accessible, needs_axe
from chromium import PROGRAM, Browser, chromium

TAG = re.compile(r"<(h\d|li|table|tr|pre|img)\b")
SHOWN = (
    "",
    "tutorials/first-pipeline/",
    "how-to/launch-a-script/",
    "reference/api/",
    "reference/checks/",
    "notebooks/own-script/",
)


def listed(entries: list[dict[str, object]]) -> Iterator[object]:
    for entry in entries:
        for value in entry.values():
            yield from listed(value) if isinstance(value, list) else (value,)


def test_every_page_is_in_the_index_once() -> None:
    known = make_site.pages()
    assert sorted(map(str, listed(make_site.navigation(known)))) == sorted(known.values())


def test_language_models_find_every_page_once() -> None:
    known = make_site.pages()
    links = re.findall(r"^- \[.+?\]\((\S+)\): \S", make_site.llms_txt(known), re.MULTILINE)
    assert sorted(links) == sorted(f"{ADDRESS}{path}" for file, path in known.items() if file != make_site.INDEX)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](../tutorials/first-pipeline.md#run)", "[a](../tutorials/first-pipeline.md#run)"),
        ("[a](../README.md)", "[a](../index.md)"),
        ("[a](../../packages/allranks-lab/README.md)", "[a](../packages/allranks-lab/index.md)"),
        ("[a `b`](../../pyproject.toml)", f"[a `b`]({REPOSITORY}/blob/main/pyproject.toml)"),
        ("[a](../../environments)", f"[a]({REPOSITORY}/tree/main/environments)"),
        (f"[a]({ADDRESS}reference/cli/#allranks-run)", "[a](../reference/cli.md#allranks-run)"),
        ("[a](https://example.org/)", "[a](https://example.org/)"),
        ("![a](../pictures/run.svg)", "![a](../pictures/run.svg)"),
        ("```\n[a](../README.md)\n```", "```\n[a](../README.md)\n```"),
    ],
)
def test_links_on_the_site(link: str, expected: str) -> None:
    assert make_site.moved(link, "docs/how-to/launch-a-script.md", make_site.pages()) == expected


def test_a_page_has_the_same_lists_tables_and_code_as_on_github() -> None:
    """Python-Markdown, which the site is rendered with, reads some indents in another way."""
    markdown = pytest.importorskip("markdown")
    github = MarkdownIt("commonmark").enable("table")
    known = make_site.pages()
    different = {}
    for page in known:
        if page.endswith(".md") and page not in make_site.MADE:
            text = (ROOT / page).read_text(encoding="utf-8")
            on_site = markdown.markdown(
                make_site.moved(text, page, known), extensions=["tables", "pymdownx.superfences"]
            )
            tags = [re.findall(r"<(h\d|li|table|tr|pre|img)\b", html) for html in (github.render(text), on_site)]
            if sorted(tags[0]) != sorted(tags[1]):
                different[page] = tags
    assert different == {}


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#one">, <a href="b.html#two">, <img src="c.png">, <a href="#top">')
    (tmp_path / "b.html").write_text('<p id="one"> <a href="https://example.org/">')
    assert sorted(make_site.broken_links(tmp_path)) == ["a.html: #top", "a.html: b.html#two", "a.html: c.png"]


def test_without_zensical_there_is_one_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "zensical", None)
    assert str(make_site.main(tmp_path)).startswith("zensical, which builds the site, is not installed: pip install ")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, ROOT / "tools/make_site.py", folder], capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.returncode, "arning" in done.stdout + done.stderr) == (0, False), done.stdout + done.stderr
    return folder / "site"


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(site))) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.mark.recipe
@pytest.mark.xdist_group("chromium")
def test_notebooks_are_shown_with_what_they_print(site: Path) -> None:
    text = (site / "notebooks/own-script/index.html").read_text(encoding="utf-8")
    assert "ZeroDivisionError: division by zero (train.py:" in text
    assert "/tmp/" not in text


@pytest.mark.recipe
@pytest.mark.xdist_group("chromium")
def test_every_page_is_there_as_markdown_too(site: Path) -> None:
    assert (site / "llms.txt").is_file()
    assert [path for path in make_site.pages().values() if not (site / path).is_file()] == []


@pytest.mark.recipe
@pytest.mark.xdist_group("chromium")
@needs_axe
@pytest.mark.parametrize("page", SHOWN)
def test_a_page_is_accessible_and_asks_nobody(page: str, address: str, browser: Browser) -> None:
    tab = browser.open(address + page)
    assert_accessible(tab)
    assert tab.errors == []
    assert [url for url in tab.requests if not url.startswith((address, "data:"))] == []
    tab.resize(390, 900)
    assert not tab.is_too_wide()


@pytest.mark.recipe
@pytest.mark.xdist_group("chromium")
@pytest.mark.skipif(PROGRAM is None, reason="this machine has no Chromium")
def test_the_search_finds_a_rule(address: str, browser: Browser) -> None:
    tab = browser.open(address)
    tab.click("button.md-search__button")
    tab.wait_for("document.activeElement.shadowRoot?.querySelector('input')")
    tab.call("Input.insertText", text="nested-launcher")
    tab.wait_for("document.activeElement.shadowRoot.querySelector('a[href*=\"/reference/checks/\"]')")
    assert [url for url in tab.requests if not url.startswith((address, "data:"))] == []
