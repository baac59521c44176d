"""In an empty environment and folder, with nothing of this repository but its wheel."""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from allranks_command import Ended, environment, write
from documents import FENCE

ROOT = Path(__file__).parents[1]
ORDINARY = 54321
"""A user that no machine has."""

# Whole commands: seconds apiece.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

README = (ROOT / "README.md").read_text(encoding="utf-8")
PIPELINE = next(code for _, code in FENCE.findall(README) if "@pipeline" in code)
assert len(PIPELINE.splitlines()) <= 20

WRONG = """\
from allranks.library import prepare_images, train_image_classifier

images = prepare_images().outputs.pictures
train_image_classifier(data=images, num_epochs=3)
train_image_classifier(data=images, optim="adam")
train_image_classifier(data=images, learning_rate="high")
train_image_classifier(data=5)
train_image_classifier(optim="sgd")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built beside an editable install, whose folder the environment in which pip builds removes from sys.path."""
    folder = tmp_path_factory.mktemp("wheel")
    write(folder, "sitecustomize.py", f"import sys\nsys.path.remove({str(ROOT / 'src')!r})\n")
    words = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    variables = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True, env=variables)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(dir=os.environ["PYTEST_DEBUG_TEMPROOT"], prefix="allranks-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def python(wheel: Path, place: Path) -> Path:
    """An interpreter with the wheel, and with the packages of this one but what it has of allranks."""
    folder = place / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps"]
    environ = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run([*pip, wheel], check=True, env=environ)
    # The files .pth in a folder that a file .pth adds are not read: this one's editable install stays outside.
    folders = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text("\n".join(folders))
    return python


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "digits.py", PIPELINE)
    return tmp_path


def started(*words: object, folder: Path, user: int | None = None, **variables: str) -> Ended:
    """user: another one than that of the tests"""
    identity: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        **identity,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def test_all_components_load_with_the_files_that_they_need(python: Path, tmp_path: Path) -> None:
    code = """
import allranks
from allranks import library
from allranks.catalog import shipped_specs
for name, spec in shipped_specs().items():
    component = getattr(library, name).component
    missing = [path for path in component.additional_includes if not (spec.parent / path).exists()]
    assert not missing, (spec, missing)
    assert component.environment.build.path, spec
print(allranks.__file__, len(library.__all__))
"""
    done = started(python, "-c", code, folder=tmp_path)
    assert done.code == 0, done.err
    file, count = done.out.split()
    assert Path(file).is_relative_to(python.parents[1])
    assert int(count) == len(list((ROOT / "components").glob("**/component.yaml")))


@pytest.mark.recipe
def test_a_pipeline_runs_to_a_registered_model(python: Path, place: Path) -> None:
    """As an ordinary user, of whom nothing is left."""
    home = place / "Erste Stunde für Jürgen"
    write(home, "digits.py", PIPELINE)
    user = ORDINARY if os.getuid() == 0 else None  # only root can be another user
    if user is not None:
        os.chown(home, user, user)
    words = ("run", "digits.py", "--set", "epochs=1", "--set", "instance_count=1")
    own = {"HOME": str(home), "TMPDIR": str(home)}
    done = started(python.with_name("allranks"), *words, folder=home, user=user, **own)
    assert done.code == 0, done.out + done.err
    assert "digits  version 1" in done.out
    left = psutil.process_iter(["uids"])
    assert user is None or [each for each in left if each.info["uids"].real == user] == []


def test_the_library_is_exported_from_any_folder(python: Path, tmp_path: Path) -> None:
    allranks = python.with_name("allranks")
    done = started(allranks, "register", "prepare_images", "--to", "exported", "--library", folder=tmp_path)
    assert done.code == 0, done.err
    exported = tmp_path / "exported/components/allranks_prepare_images"
    assert (exported / "code/allranks_steps/images/prepared_images.py").is_file()


@pytest.mark.recipe
def test_a_type_checker_reads_the_specs(python: Path, folder: Path) -> None:
    write(folder, "wrong.py", WRONG)
    # Of azure-ai-ml what the stub refers to, and no other library: with torch and sqlalchemy it takes 25 s.
    named = ("allranks.*", "azure.ai.ml,azure.ai.ml.entities,azure.ai.ml.entities._builders.*")
    settings = "".join(f"[mypy-{each}]\nfollow_imports = normal\n" for each in named)
    write(folder, "mypy.ini", f"[mypy]\nfollow_imports = skip\n{settings}")
    done = started(python, "-m", "mypy", "digits.py", "wrong.py", folder=folder)
    found = re.findall(r"^(\S+?):(\d+): error: .*\[([\w-]+)\]$", done.out, re.MULTILINE)
    assert found == [
        ("wrong.py", "3", "attr-defined"),
        ("wrong.py", "4", "call-arg"),
        ("wrong.py", "5", "arg-type"),
        ("wrong.py", "6", "arg-type"),
        ("wrong.py", "7", "arg-type"),
        ("wrong.py", "8", "call-arg"),
    ], done.out + done.err
