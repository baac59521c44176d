"""What docs/how-to/releasing.md shows builds, checks, uploads and tags a release."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distributions
from pathlib import Path
from threading import Thread

import pytest
from packaging.requirements import Requirement

from allranks import __version__
from documents import FENCE, shown_commands

ROOT = Path(__file__).parents[1]
RELEASING = ROOT / "docs/how-to/releasing.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")
OURS = re.compile(r"https://github\.com/allranks/allranks/(?:blob|raw|tree)/[^/]+/([^#]+)")
MEGABYTE = 2**20

PAGES = ROOT / "packages/allranks-studio/src/allranks_studio/static"

pytestmark = [
    pytest.mark.recipe,
    pytest.mark.xdist_group("release"),  # they look at the same release
    pytest.mark.skipif(not PAGES.exists(), reason="npm has not built the studio's pages: make studio"),
]


def run(command: str, folder: Path, **variables: str) -> None:
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder), **variables}
    subprocess.run(["bash", "-ec", command], cwd=folder, env=environment, check=True, timeout=120)


@contextmanager
def package_index() -> Iterator[tuple[str, list[str]]]:
    """Accept uploads as PyPI does. Yield its address and the names of the uploaded files."""
    uploaded: list[str] = []

    class Upload(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            form = message_from_bytes(b"Content-Type: " + self.headers["Content-Type"].encode() + b"\n\n" + body)
            uploaded.extend(name for part in form.walk() if (name := part.get_filename()))
            self.send_response(200)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Upload) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/legacy/", uploaded
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the project with what must not be released, and a repository to push to."""
    folder = tmp_path_factory.mktemp("release") / "clone"
    left_out = shutil.ignore_patterns(
        *(".git", ".venv*", ".*_cache", ".axe", ".azurite", ".hypothesis", "__pycache__", "node_modules"),
        *("benchmarks", "build", "dist"),
    )
    shutil.copytree(ROOT, folder, ignore=left_out)
    for name in (".venv/lib/module.py", "src/allranks/__pycache__/module.pyc", ".mypy_cache/cache.json", "notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / ".venv/bin").mkdir()
    (folder / ".venv/bin/activate").write_text("")
    python = folder / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (folder / ".venv/.release").write_text("")  # what `make dist` needs is installed
    git = "git -c user.name=tester -c user.email=tester@example.com"
    run(f"git init -q && git add . && {git} commit -qm Release && git init -q --bare ../origin", folder)
    run("git remote add origin ../origin && git config user.name tester && git config user.email t@example.com", folder)
    return folder


@pytest.fixture(scope="module")
def released(clone: Path) -> tuple[Path, Path]:
    """The sdist and the wheel that the commands of the page have made and uploaded."""
    commands = [shown.command for shown in shown_commands(re.sub("^ +", "", RELEASING.read_text(), flags=re.MULTILINE))]
    assert [command for command in commands if command.startswith(("make", "python -m twine"))] == [
        "make dist",
        "python -m twine upload dist/*",
    ]
    with package_index() as (url, uploaded):
        twine = {"TWINE_REPOSITORY_URL": url, "TWINE_USERNAME": "__token__", "TWINE_PASSWORD": "pypi-token"}
        run("\n".join(commands), clone, **twine, TWINE_NON_INTERACTIVE="1", NO_PROXY="*")
    files = [file.name for file in (clone / "dist").iterdir()]
    distributions = {"allranks", *(folder.name.replace("-", "_") for folder in (ROOT / "packages").iterdir())}
    assert {file.partition("-")[0] for file in files} == distributions
    assert len(files) == 2 * len(distributions)
    assert sorted(uploaded) == sorted(files)
    (sdist,) = (clone / "dist").glob("allranks-*.tar.gz")
    (wheel,) = (clone / "dist").glob("allranks-*.whl")
    return sdist, wheel


def test_the_tag_is_that_of_the_version(clone: Path, released: tuple[Path, Path]) -> None:
    assert (clone / "../origin/refs/tags" / f"v{__version__}").exists()
    assert [f"-{__version__}" in file.name for file in released] == [True, True]
    headings = re.findall(r"^## (\S+),", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == __version__


def test_the_sdist_contains_what_the_wheel_is_built_from(released: tuple[Path, Path]) -> None:
    """The wheel is built from the sdist."""
    sdist, wheel = released
    with tarfile.open(sdist) as archive:
        names = [name.split("/", 1)[1] for name in archive.getnames()]
    folders = {"src", "components", "environments", "pipelines", "template", "docs", "tools"}
    files = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "hatch_build.py", "pyproject.toml", ".gitignore"}
    assert {name.partition("/")[0] for name in names} == folders | files
    assert not [name for name in names if name.endswith(".pyc")]
    assert sdist.stat().st_size < 3 * MEGABYTE
    assert wheel.stat().st_size < 3 * MEGABYTE
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    shipped = {name.removeprefix("allranks/shipped/") for name in names if name.startswith("allranks/shipped/")}
    command = ["git", "ls-files", "components", "environments", "pipelines", "template"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {name for name in listed if not name.startswith("components/shared/")} <= shipped
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []
    assert {"allranks/library.pyi", "allranks/py.typed", "allranks/cli/troubleshooting.md"} <= set(names)


def test_the_studio_contains_its_pages(released: tuple[Path, Path]) -> None:
    """In the sdist too, from which the wheel is built: without npm."""
    with zipfile.ZipFile(next(released[1].parent.glob("allranks_studio-*.whl"))) as archive:
        wheel = archive.namelist()
    with tarfile.open(next(released[1].parent.glob("allranks_studio-*.tar.gz"))) as archive:
        sdist = archive.getnames()
    pages = {f"allranks_studio/static/{file.relative_to(PAGES)}" for file in PAGES.rglob("*") if file.is_file()}
    assert {"allranks_studio/static/index.html", "allranks_studio/static/LICENSES.txt"} <= pages <= set(wheel)
    assert pages <= {name.split("/", 2)[-1] for name in sdist}
    assert [name for name in [*wheel, *sdist] if "node_modules" in name] == []


def test_each_package_works_with_the_core(released: tuple[Path, Path], tmp_path: Path) -> None:
    """From the wheels alone: the core without a package, and with each."""
    _, core = released
    for wheel in core.parent.glob("*.whl"):
        place = tmp_path / wheel.name.partition("-")[0]
        for each in {core, wheel}:
            with zipfile.ZipFile(each) as archive:
                archive.extractall(place)
        points = [point for found in distributions(path=[str(place)]) for point in found.entry_points]
        main = (
            f"import {place.name}, allranks.cli.main as made; assert made.__file__.startswith('{place}'); made.main()"
        )
        for words in ("", *(point.name for point in points if point.group == "allranks.commands")):
            run(f'python -c "{main}" {words} --help >> help', tmp_path, PYTHONPATH=str(place))


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def test_the_bill_of_each_wheel_lists_what_it_requires(released: tuple[Path, Path]) -> None:
    for wheel in released[1].parent.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if ".dist-info/sboms/" in name)
            bill = json.loads(archive.read(name))
            (record,) = (name for name in archive.namelist() if name.endswith("/RECORD"))
            assert f"\n{name},sha256=" in archive.read(record).decode()
        texts = map(Requirement, metadata(wheel).get_all("Requires-Dist", []))
        required = {each.name.lower(): each.specifier for each in texts if each.name != "allranks" or not each.extras}
        assert {each["name"] for each in bill["components"]} == required.keys()
        listed = {each["name"]: each["versionRange"] for each in bill["components"]}
        assert listed.get("allranks") in (None, f"vers:pypi/{__version__}")


def test_the_links_of_each_description_lead_to_files_of_the_repository(released: tuple[Path, Path]) -> None:
    for wheel in released[1].parent.glob("*.whl"):
        described = metadata(wheel)
        text = described.get_payload(decode=True)
        assert isinstance(text, bytes)
        readme = ROOT / ("" if wheel == released[1] else f"packages/{described['Name']}") / "README.md"
        assert described["Description-Content-Type"] == "text/markdown"
        assert FENCE.findall(text.decode()) == FENCE.findall(readme.read_text(encoding="utf-8"))
        links = LINK.findall(FENCE.sub("", text.decode()))
        assert [link for link in links if not link.startswith("https://")] == []
        files = [match[1] for link in links if (match := OURS.match(link))]
        assert [file for file in files if not (ROOT / file).exists()] == []
