"""`allranks environments check`: nothing is wrong with ours, and each mistake is found with its line and its fix."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from allranks.checks.environment import check
from allranks.checks.environment.packages import lock_command
from allranks.errors import InputError, Problem
from allranks.images.find import find_environments, read_environment

OURS = Path(__file__).parents[2] / "environments"
NAMES = (
    "cpu",
    "deepspeed",
    "finetuning",
    "gradient-boosting",
    "horovod",
    "lightning-transformers",
    "openmpi-ofed",
    "pytorch",
    "ray",
    "tensorflow",
    "tensorflow-horovod",
)
BOUND = pytest.mark.timeout(300)


@dataclass(frozen=True)
class Fault:
    """A mistake in the environment pytorch.

    file:  where it is made
    old:   a pattern for what stands there; the line of its first match is the mistake's, but for `after`
    new:   what stands there instead
    after: how many lines behind it the mistake is seen
    found: a part of what is said of it
    fix:   a part of the fix
    """

    file: str
    old: str
    new: str
    found: str
    fix: str
    after: int = 0


FAULTS = {
    "an image without a fixed tag": Fault(
        "Dockerfile", r"BASE_IMAGE=.*", "BASE_IMAGE=ubuntu:latest", "BASE_IMAGE=ubuntu:latest", "name the tag"
    ),
    "a range instead of a version": Fault(
        "requirements.txt", r"^numpy==[^ ]+", "numpy>=2", "numpy>=2", "environments/lock.sh pytorch"
    ),
    "a package without a checksum": Fault(
        "requirements.txt",
        r"^mpi4py==4.1.2 \\\n(    --hash.*\n)+",
        "mpi4py==4.1.2\n",
        "mpi4py==4.1.2 without",
        "environments/lock.sh pytorch",
    ),
    "a version in the table that is not installed": Fault(
        "Dockerfile",
        r"TORCH_VERSION=.*",
        "TORCH_VERSION=2.12.0",
        "TORCH_VERSION=2.12.0",
        "environments/lock.sh pytorch",
    ),
    "a package that pip is given by name": Fault(
        "Dockerfile",
        r"^COPY requirements",
        "RUN pip install pandas\nCOPY requirements",
        "installs pandas",
        "requirements.in",
    ),
    "another version expected than there is": Fault(
        "expect.yaml", r'ofed: \{version: "25.10"', 'ofed: {version: "24.10"', "ofed 24.10", "write 25.10"
    ),
    "a package expected that is not installed": Fault(
        "expect.yaml", r"packages: \{", 'packages: {horovod-torch: "1.0.0", ', "horovod-torch", "remove the expectation"
    ),
    "an expectation that nobody knows": Fault("expect.yaml", r"  commands:", "  comands:", "'comands'", "name one of"),
    "a tag that was changed by hand": Fault(
        "environment.yaml", r'  ofed: "25.10"', '  ofed: "25.1"', "tag ofed: 25.1", "sync pytorch"
    ),
    "a description that was changed by hand": Fault(
        "environment.yaml", r"^description: .*\n", "description: PyTorch 2.2\n", "PyTorch 2.2", "sync pytorch"
    ),
    "a version that was changed by hand": Fault(
        "environment.yaml", r"^version: .*", 'version: "9"', "version '9'", "sync pytorch"
    ),
    "base stages that are not the base's": Fault(
        "Dockerfile", r"    && python3 -m venv /opt/python", "    && python3 -m venv /opt/py", "/opt/py", "sync pytorch"
    ),
    "a token in the image": Fault(
        "Dockerfile", r"^COPY requirements", "ENV HF_TOKEN=abc\nCOPY requirements", "HF_TOKEN", "secret mount"
    ),
    "a password in an index's address": Fault(
        "device-cpu.txt", r"https://", "https://me:pass@", "a password in an address", "secret mount"
    ),
    "another configuration of sshd than ours": Fault(
        "setup_mpi.sh", r"^StrictModes no", "StrictModes yes", "StrictModes yes", "sync pytorch"
    ),
    "ssh that is not configured": Fault(
        "Dockerfile",
        r"^COPY setup_mpi.sh /opt/\nRUN /opt/setup_mpi.sh .*",
        "COPY setup_mpi.sh /opt/",
        "not run",
        "add: RUN",
    ),
    "a download that is not compared": Fault(
        "Dockerfile", r"    && sha256sum --check.*\n", "", "without a checksum", "sha256sum --check", after=-4
    ),
    "a branch instead of a commit": Fault(
        "Dockerfile", r"PLUGINS_COMMIT=.*", "PLUGINS_COMMIT=master", "PLUGINS_COMMIT=master", "write the commit"
    ),
    "a name that is not the folder's": Fault(
        "environment.yaml", r"^name: .*", "name: torch", "name 'torch'", "name: pytorch"
    ),
    "a key that Azure ML does not know": Fault(
        "environment.yaml", r"^name: ", "conda: x\nname: ", "Unknown field", "correct the file"
    ),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The base and one environment on it, to be spoilt."""
    for name in ("openmpi-ofed", "pytorch"):
        shutil.copytree(OURS / name, tmp_path / name)
    shutil.copy(OURS / "lock.sh", tmp_path)
    return tmp_path


def spoil(root: Path, fault: Fault) -> int:
    """Makes the mistake; gives back the line at which it must be found."""
    path = root / "pytorch" / fault.file
    text = path.read_text()
    match = re.search(fault.old, text, re.MULTILINE)
    assert match, f"{fault.old} is not in {fault.file}"
    path.write_text(text[: match.start()] + fault.new + text[match.end() :])
    return text[: match.start()].count("\n") + 1 + fault.after


def problems(root: Path, name: str = "pytorch") -> list[Problem]:
    return check(read_environment(root / name), root)


@BOUND
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_wrong_with_ours(name: str) -> None:
    assert problems(OURS, name) == []


def test_these_are_all() -> None:
    assert tuple(environment.name for environment in find_environments(OURS)) == NAMES


@BOUND
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_mistake_is_found_with_its_line_and_its_fix(root: Path, fault: Fault) -> None:
    line = spoil(root, fault)
    where = f"{root / 'pytorch' / fault.file}:{line}"
    found = [problem for problem in problems(root) if fault.found in problem.found and fault.fix in problem.fix]
    assert [problem.where.partition(", key")[0] for problem in found] == [where], problems(root)
    assert found[0].expected


def test_a_project_without_our_lock_script_is_told_how_to_pin(root: Path) -> None:
    (root / "lock.sh").unlink()
    spoil(root, FAULTS["a range instead of a version"])
    fixes = [problem.fix for problem in problems(root) if problem.found == "numpy>=2"]
    assert fixes == [f"run: {lock_command(root / 'pytorch')}"]
    assert "uv pip compile" in fixes[0]


@pytest.mark.parametrize("name", ["pytorch", "vision-pytorch"])
def test_a_registered_name_is_the_folder_s_with_any_prefix(root: Path, name: str) -> None:
    path = root / "pytorch/environment.yaml"
    path.write_text(path.read_text().replace("name: allranks-pytorch", f"name: {name}"))
    assert [problem for problem in problems(root) if problem.where.startswith(f"{path}")] == []


def test_a_folder_without_environments(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no environment"):
        find_environments(tmp_path)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no environment 'torch'"):
        find_environments(OURS, ("torch",))
