"""The same content has one version, and any change makes another."""

import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allranks.catalog.releases import digest_of, release
from component_projects import YAML, add_function, make


def versions(root: Path, into: Path) -> dict[str, str]:
    """The stamped versions of a project by name."""
    shutil.rmtree(into, ignore_errors=True)
    return {one.name: one.version for one in release(into, root / "components")}


def made(root: Path) -> Path:
    make(root)
    add_function(root)
    return root


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return made(tmp_path / "project")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The versions of the project as it is made, in another folder."""
    folder = tmp_path_factory.mktemp("before")
    return versions(made(folder / "project"), folder / "into")


def replace(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        path = root / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


def include(root: Path) -> None:
    (root / "shared").mkdir()
    (root / "shared/more.py").write_text("x = 1\n")
    replace(SPEC, "code: .", "code: .\nadditional_includes: [../../shared]")(root)


def change_included(root: Path) -> None:
    (root / "shared/more.py").write_text("x = 2\n")


SPEC = "components/greet/component.yaml"
CHANGES = {
    "a word of the spec": replace(SPEC, "Greets everybody", "Greets all"),
    "a bound": replace(SPEC, "max: 9", "max: 8"),
    "the spec's own version": replace(SPEC, "1.2.0", "1.3.0"),
    "the command": replace(SPEC, "python greet.py", "python -u greet.py"),
    "a file of the code": replace("components/greet/words.py", "()", "('hi',)"),
    "the line ends of a file": replace("components/greet/words.py", "\n", "\r\n"),
    "another file": lambda root: (root / "components/greet/new.py").write_text(""),
    "a file less": lambda root: (root / "components/greet/words.py").unlink(),
    "a file's name": lambda root: (root / "components/greet/words.py").rename(root / "components/greet/Words.py"),
    "an additional include": include,
    "an ignore file": lambda root: (root / "components/greet/.amlignore").write_text("words.py\n"),
    "the environment's Dockerfile": replace("environments/small/Dockerfile", "24.04", "22.04"),
    "the environment's description": replace("environments/small/environment.yaml", "Nothing", "Little"),
}
NO_CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda root: None,
    "times": lambda root: [os.utime(path, (1, 1)) for path in root.rglob("*")],
    "modes": lambda root: (root / "components/greet/greet.py").chmod(0o755),
    "Python's caches": lambda root: (root / "components/greet/__pycache__").mkdir(),
    "an ignored file": lambda root: (
        (root / "components/greet/__pycache__/x.pyc").parent.mkdir()
        or (root / "components/greet/__pycache__/x.pyc").write_text("")
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_makes_another_version(
    before: dict[str, str], project: Path, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    change(project)
    after = versions(project, tmp_path / "after")
    assert after["greet"] != before["greet"]
    assert after["count_people"] == before["count_people"], "what it does not touch keeps its version"


@pytest.mark.parametrize("change", NO_CHANGES.values(), ids=NO_CHANGES.keys())
def test_what_azure_does_not_get_changes_nothing(
    before: dict[str, str], project: Path, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    change(project)
    assert versions(project, tmp_path / "after") == before


def test_a_file_that_is_included_counts(project: Path, tmp_path: Path) -> None:
    include(project)
    before = versions(project, tmp_path / "before")
    change_included(project)
    assert versions(project, tmp_path / "after")["greet"] != before["greet"]


def test_another_folder_and_another_order_on_disk_change_nothing(
    before: dict[str, str], project: Path, tmp_path: Path
) -> None:
    files = [path for path in project.rglob("*") if path.is_file()]
    random.Random(0).shuffle(files)
    for path in files:
        target = tmp_path / "else where" / path.relative_to(project)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    assert versions(tmp_path / "else where", tmp_path / "after") == before


def test_a_version_is_the_spec_s_own_and_a_digest(before: dict[str, str]) -> None:
    assert re.fullmatch(r"1\.2\.0-[0-9a-f]{8}", before["greet"])
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", version) for version in before.values())


def test_the_order_of_ports_counts_and_that_of_keys_does_not() -> None:
    spec = {"name": "a", "inputs": {"x": {"type": "string"}, "y": {"type": "string"}}}
    turned = {"inputs": spec["inputs"], "name": "a"}
    other = {"name": "a", "inputs": dict(reversed(spec["inputs"].items()))}  # type: ignore[attr-defined]
    assert digest_of("component", spec, ()) == digest_of("component", turned, ())
    assert digest_of("component", spec, ()) != digest_of("component", other, ())


names = st.text('aä/. \t"', min_size=1)
files = st.dictionaries(names, st.binary(min_size=32, max_size=32).map(bytes.hex), max_size=8)


@given(files, files, st.randoms())
def test_equal_files_alone_have_equal_digests(
    one: dict[str, str], other: dict[str, str], shuffler: random.Random
) -> None:
    listed = list(one.items())
    shuffler.shuffle(listed)
    assert digest_of("component", {}, listed) == digest_of("component", {}, one.items())
    same = digest_of("component", {}, one.items()) == digest_of("component", {}, other.items())
    assert same == (one == other)


def test_what_is_released_has_the_same_content_again(project: Path, tmp_path: Path) -> None:
    """The code that is written is the code that is uploaded: ignoring once more changes nothing."""
    (project / "components/greet/.amlignore").write_text("words.py\n")
    (one,) = [one for one in release(tmp_path / "into", project / "components") if one.name == "greet"]
    written = {path.relative_to(tmp_path / "into" / one.folder).as_posix() for path in (tmp_path / "into").rglob("*")
               if path.is_file() and path.is_relative_to(tmp_path / "into" / one.folder)}  # fmt: skip
    assert written == {"component.yaml", *one.listed.files}
    assert "code/words.py" not in written
    assert one.spec["environment"].startswith("azureml:small:1-")
    assert "additional_includes" not in one.spec
    assert YAML.count("type:") == (tmp_path / "into" / one.yaml).read_text().count("type:")
