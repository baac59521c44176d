"""Builds the documentation's site from the pages of docs/ and of the packages: build/site, or FOLDER/site.

python tools/make_site.py [FOLDER]

docs/README.md is the first page, and its links are the navigation. Links to files that are no pages lead to the
repository, and links to the site's address to its pages. Notebooks are executed, and shown with what they print. For
language models, llms.txt lists all pages as Markdown, each of which is on the site too (https://llmstxt.org).
"""

import json
import os
import re
import runpy
import shutil
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from notebook_page import executed, notebook_page

ROOT = Path(__file__).resolve().parents[1]
INDEX = "docs/README.md"
MADE = {f"docs/reference/{name}.md": f"make_{name}.py" for name in ("api", "checks", "cli", "components", "sizes")}
"""The pages that programs in this folder make."""
SETTINGS = (ROOT / "zensical.toml").read_text(encoding="utf-8")
ADDRESS, REPOSITORY = (tomllib.loads(SETTINGS)["project"][name] for name in ("site_url", "repo_url"))

_FENCE = re.compile(r"^( *```).*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\]\()([^)\s]+)(\))")
_GROUP = re.compile(r"\| *(\w[^|\[\]]*?) *\|[ |]*$")
_ENTRY = re.compile(r"(?:\||[-*]) *\[([^\]]+)\]\(([^)\s]+)\)")


def pages() -> dict[str, str]:
    """Return the path of each page on the site, by its path in the project."""
    patterns = ("docs/**/*.md", "docs/**/*.ipynb", "packages/*/README.md", "packages/*/docs/*.md")
    files = {file.relative_to(ROOT) for pattern in patterns for file in ROOT.glob(pattern)} | {*map(Path, MADE)}
    found = {}
    for file in sorted(files):
        path = file.with_name("index.md") if file.name == "README.md" else file.with_suffix(".md")
        found[file.as_posix()] = path.as_posix().removeprefix("docs/")
    return found


def navigation(known: dict[str, str]) -> list[dict[str, object]]:
    """Return the navigation of the site: the parts, groups and links of docs/README.md."""
    root: list[dict[str, object]] = [{"Overview": known[INDEX]}]
    part = group = root
    for line in (ROOT / INDEX).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            part = group = []
            root.append({line.removeprefix("## "): part})
        elif title := _GROUP.match(line):
            group = []
            part.append({title[1]: group})
        elif entry := _ENTRY.match(line):
            group.append({entry[1]: known[_page_of(entry[2], INDEX, known)]})
    return root


def llms_txt(known: dict[str, str]) -> str:
    """Return the list of all pages for language models: the parts, links and notes of docs/README.md."""
    settings = tomllib.loads(SETTINGS)["project"]
    lines = [f"# {settings['site_name']}", "", f"> {settings['site_description']}"]
    for line in (ROOT / INDEX).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            lines += ["", line, ""]
        elif entry := _ENTRY.match(line):
            note = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", line.split(" | ")[1].strip(" |"))
            lines.append(f"- [{entry[1]}]({ADDRESS}{known[_page_of(entry[2], INDEX, known)]}): {note}")
    return "\n".join([*lines, ""])


def _page_of(target: str, page: str, known: dict[str, str]) -> str:
    """Return the path in the project of what a link of a page leads to."""
    if target.startswith(ADDRESS):
        path = target.removeprefix(ADDRESS).strip("/")
        return next((file for file, name in known.items() if name in (f"{path}.md", f"{path}/index.md")), target)
    return os.path.normpath(PurePosixPath(page).parent / target)


def moved(text: str, page: str, known: dict[str, str]) -> str:
    """Return a page's text with its links as the site needs them."""

    def link(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        path, hash_, anchor = target.partition("#")
        file = _page_of(path, page, known)
        if file in known:
            path = os.path.relpath(known[file], PurePosixPath(known[page]).parent)
        elif path and not before.startswith("!") and (ROOT / file).exists():
            path = f"{REPOSITORY}/{'tree' if (ROOT / file).is_dir() else 'blob'}/main/{file}"
        return f"{before}{path}{hash_}{anchor}{after}"

    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(link, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return _in_numbered_lists("".join([*parts, _LINK.sub(link, text[end:])]))


def _in_numbered_lists(text: str) -> str:
    """Return a text in which what belongs to an entry of a numbered list is indented by four, as Python-Markdown needs
    it, and not by three."""
    text = re.sub(r"^ {3}```.*?^ {3}```$", lambda match: match[0].replace("\n   ", "\n    "), text, flags=re.M | re.S)
    return re.sub(r"^ {3}(?=\S)", "    ", text, flags=re.MULTILINE)


def write_sources(folder: Path) -> None:
    """Write what Zensical reads: the pages, the theme, and the settings with the navigation."""
    known = pages()
    for page, path in known.items():
        target = folder / "pages" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(moved(_text(page), page, known), encoding="utf-8")
    shutil.copytree(ROOT / "docs/pictures", folder / "pages/pictures")
    shutil.copytree(ROOT / "docs/theme", folder / "theme")
    settings = SETTINGS.replace("[project]\n", f"[project]\nnav = {_toml(navigation(known))}\n", 1)
    (folder / "zensical.toml").write_text(settings, encoding="utf-8")


def _text(page: str) -> str:
    if page in MADE:
        made: str = runpy.run_path(str(ROOT / "tools" / MADE[page]))["page"]()
        return made
    file = ROOT / page
    return notebook_page(executed(file)) if file.suffix == ".ipynb" else file.read_text(encoding="utf-8")


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(each)}" for name, each in value.items()) + "}"
    return json.dumps(value)


class _Page(HTMLParser):
    """The links and the anchors of a built page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors = {""}
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")


def broken_links(site: Path) -> Iterator[str]:
    """Yield the links between files of a site that lead nowhere."""
    built = {file: _Page(file) for file in site.rglob("*.html") if file.name != "404.html"}
    for file, page in built.items():
        for link in page.links:
            scheme, host, path, _, anchor = urlsplit(link)
            if scheme or host:
                continue
            target = Path(os.path.normpath(file.parent / unquote(path))) if path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (target in built and unquote(anchor) not in built[target].anchors):
                yield f"{file.relative_to(site)}: {link}"


def amend(site: Path) -> None:
    """Make cells of what Markdown needs as a table's header, but has no text."""
    for file in site.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        text = re.sub(r"<thead>\s*<tr>\s*(?:<th[^>]*></th>\s*)+</tr>\s*</thead>\s*", "", text)
        file.write_text(re.sub(r"<th([^>]*)></th>", r"<td\1></td>", text), encoding="utf-8")


def main(folder: Path) -> str | None:
    """Build the site below a folder. Return what went wrong."""
    try:
        from zensical import build  # here, for the message
    except ImportError:
        return 'zensical, which builds the site, is not installed: pip install "allranks[docs]"'
    for name in ("pages", "theme", "site"):
        shutil.rmtree(folder / name, ignore_errors=True)
    write_sources(folder)
    os.environ.setdefault("NO_COLOR", "1")
    try:
        build(str(folder / "zensical.toml"), {"clean": True, "strict": True})
    except RuntimeError as error:
        return f"The site was not built: {error}"
    amend(folder / "site")
    known = pages()
    for path in known.values():
        shutil.copy(folder / "pages" / path, folder / "site" / path)
    (folder / "site/llms.txt").write_text(llms_txt(known), encoding="utf-8")
    broken = sorted(broken_links(folder / "site"))
    return "\n  ".join(["Links that lead nowhere:", *broken]) if broken else None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()))
