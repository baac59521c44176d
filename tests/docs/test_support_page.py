"""docs/reference/support.md, the checks of `make` and CI name the versions that pyproject.toml allows."""

import re
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if ":: Python :: 3." in name]


def bounds(requirements: list[str], package: str) -> list[str]:
    (found,) = (each for each in map(Requirement, requirements) if each.name == package)
    return [bound.version for bound in sorted(found.specifier, key=str, reverse=True)]


def test_the_table_is_that_of_the_project() -> None:
    sdk, _ = bounds(PROJECT["dependencies"], "azure-ai-ml")
    (torch,) = bounds(PROJECT["optional-dependencies"]["torch"], "torch")
    page = (ROOT / "docs/reference/support.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (3\.\d+) \| (\S+) \| (\S+) or later \|", page, re.MULTILINE)
    assert rows == [(python, sdk, torch) for python in PYTHONS]


def test_the_same_versions_of_python_are_named_everywhere() -> None:
    first, last = (int(PYTHONS[place].removeprefix("3.")) for place in (0, -1))
    assert [f"3.{minor}" for minor in range(first, last + 1)] == PYTHONS
    for file in (ROOT / "pyproject.toml", *ROOT.glob("packages/*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        assert project["requires-python"] == f">=3.{first},<3.{last + 1}"
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["quick"]["strategy"]["matrix"]["python"] == PYTHONS
    assert f"(3, {first}) <= version <= (3, {last})" in (ROOT / "install/venv.sh").read_text(encoding="utf-8")


def test_the_sdk_is_bounded_to_the_minor_version_that_is_tested() -> None:
    lower, upper = bounds(PROJECT["dependencies"], "azure-ai-ml")
    assert int(upper.split(".")[1]) == int(lower.split(".")[1]) + 1
