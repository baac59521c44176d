"""What `LocalClient`, `--as-azure` and `%load_ext` say where the package allranks-client is missing."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import allranks
from allranks.api import client
from allranks.version import __version__
from allranks_command import called, write


@pytest.mark.parametrize("name", ["LocalClient", "load_ipython_extension"])
def test_the_package_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(client, "version", version)
    with pytest.raises(allranks.InputError) as caught:
        getattr(allranks, name)
    assert str(caught.value).splitlines() == [
        f"allranks.{name}: the package allranks-client is not installed",
        f"  expected: allranks-client {__version__}",
        f'  fix: pip install "allranks[client]=={__version__}"',
    ]


def test_the_package_is_of_another_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(client, "version", lambda _: "9.9.9")
    done = called("run", "--as-azure", write(tmp_path, "submit.py", ""), folder=tmp_path)
    assert done.code == 2
    assert "allranks run --as-azure\n  found     allranks-client 9.9.9 is for another version of allranks" in done.err
    assert f'pip install "allranks[client]=={__version__}"' in done.err
