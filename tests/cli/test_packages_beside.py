"""Commands of packages beside allranks: those that are installed run, and for the others a message says what to do."""

import re
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

import pytest

import allranks
from allranks import InputError, packages
from allranks.version import __version__
from allranks_command import called, write

ROOT = Path(__file__).parents[2]


def install(patch: pytest.MonkeyPatch, name: str, value: str, version: str = __version__) -> None:
    entry = packages.EntryPoint(name, value, "allranks-other", version)
    patch.setattr(packages, "entry_points", lambda **_: [entry])


def test_what_is_installed_is_found_as_importlib_finds_it() -> None:
    for group in (packages.COMMANDS, packages.HOOKS):
        found = {(each.name, each.value, each.package, each.version) for each in packages.entry_points(group=group)}
        others = entry_points(group=group)
        assert found == {(each.name, each.value, each.dist.name, each.dist.version) for each in others}
        assert len(found) >= 3


def test_a_command_that_no_package_has_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "entry_points", lambda **_: [])
    done = called("migrate", "a.py", folder=tmp_path)
    assert done.code == 2
    assert "allranks migrate: the package allranks-migrate is not installed" in done.err
    assert f'pip install "allranks[migrate]=={__version__}"' in done.err
    assert "migrate" not in called("--help", folder=tmp_path).out


def test_faults_without_the_package_that_injects_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "entry_points", lambda **_: [])
    done = called("run", "a.py", "--fault", "kill=1", folder=tmp_path)
    assert done.code == 2
    assert "--fault kill=1" in done.err
    assert f'pip install "allranks[lab]=={__version__}"' in done.err


def test_a_client_without_the_package_that_has_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "entry_points", lambda **_: [])
    for name in ("LocalClient", "load_ipython_extension"):
        with pytest.raises(InputError, match=f"allranks.{name}: the package allranks-client is not installed"):
            getattr(allranks, name)
    done = called("run", "--as-azure", write(tmp_path, "submit.py", ""), folder=tmp_path)
    assert done.code == 2
    assert "allranks run --as-azure" in done.err
    assert f'pip install "allranks[client]=={__version__}"' in done.err


def test_a_package_of_another_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, "migrate", "nowhere:migrate", "9.9.9")
    done = called("migrate", "a.py", folder=tmp_path)
    assert done.code == 2
    assert f"allranks-other 9.9.9 is for another version of allranks than this one, {__version__}" in done.err


def test_a_package_that_cannot_be_imported_leaves_the_other_commands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, "other", "no_such_module:other")
    done = called("other", folder=tmp_path)
    assert done.code == 2
    assert "allranks-other cannot be imported: ModuleNotFoundError: No module named 'no_such_module'" in done.err
    assert called("why", "no-network", folder=tmp_path).code == 0


def test_a_command_of_somebody_else_s_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = ModuleType("of_somebody_else")
    module.greet = lambda: print("hello")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    install(monkeypatch, "greet", f"{module.__name__}:greet", "3.1")
    assert called("greet", folder=tmp_path).out == "hello\n"
    assert re.search(r"greet +A command of allranks-other\.", called("--help", folder=tmp_path).out)


@pytest.mark.parametrize(
    "package", sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml")), ids=lambda path: path.name
)
def test_a_package_of_ours_has_the_version_of_allranks(package: Path) -> None:
    text = (package / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{__version__}"' in text
    assert f'"allranks=={__version__}"' in text
    assert f'"{package.name}=={__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
