"""A build context as it is uploaded: links resolved, and the texts in place that Dockerfiles include."""

import shutil
from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.plan import digest
from allranks.sdk.uploads import context_of, dockerfile_text


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An environment whose Dockerfile and program are partly those of others."""
    files = {
        "shared/base.Dockerfile": "# allranks: include images\nFROM $IMAGE AS base\n",
        "shared/images": "ARG IMAGE=ubuntu:24.04\n",
        "shared/setup.sh": "true\n",
        "own/Dockerfile": "# its own\n# allranks: include ../shared/base.Dockerfile\nFROM base\nCOPY setup.sh /\n",
        "own/notes.txt": "# allranks: include ../shared/images\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "shared/setup.sh").chmod(0o755)
    (tmp_path / "own/setup.sh").symlink_to("../shared/setup.sh")
    return tmp_path / "own"


def test_the_context_is_complete(folder: Path) -> None:
    files = context_of(folder).files
    texts = {name: path.read_text() for name, path in files.items()}
    text = "# its own\nARG IMAGE=ubuntu:24.04\nFROM $IMAGE AS base\nFROM base\nCOPY setup.sh /\n"
    assert texts == {
        "Dockerfile": text,
        "notes.txt": "# allranks: include ../shared/images\n",
        "setup.sh": "true\n",
    }
    assert files["setup.sh"].stat().st_mode & 0o111
    assert dockerfile_text(folder / "Dockerfile") == text


@pytest.mark.parametrize("shared", ["images", "setup.sh"])
def test_its_digest_is_that_of_a_copy_and_changes_with_a_shared_text(folder: Path, shared: str) -> None:
    before = digest.of_files(context_of(folder).files)
    for name, path in context_of(folder).files.items():
        (folder.parent / "copy").mkdir(exist_ok=True)
        shutil.copy(path, folder.parent / "copy" / name)
    assert digest.of_files(context_of(folder.parent / "copy").files) == before
    (folder.parent / "shared" / shared).write_text("false\n")
    assert digest.of_files(context_of(folder).files) != before


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("FROM a\n# allranks: include gone\n", r"own/Dockerfile:2: .*own/gone: No such file"),
        ("# allranks: include Dockerfile\n", r"own/Dockerfile:1: .*it includes itself"),
    ],
)
def test_what_cannot_be_included(folder: Path, text: str, found: str) -> None:
    (folder / "Dockerfile").write_text(text)
    with pytest.raises(InputError, match=found):
        context_of(folder)
