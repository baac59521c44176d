"""Deferred modules: empty while a package is imported, and real as soon as something of them is used."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from allranks.deferred_imports import DeferredImports, Placeholder, forget
from pipeline_files import write

HEAVY = """
class Base:
    name = "base"
    def __init__(self, number=0):
        self.number = number
def double(value):
    return 2 * value
NAMES = ["a", "b"]
"""


USER = """
from deferring import heavy
from deferring.large import inner
from deferring.heavy import Base, NAMES
def check(value: Base | None) -> bool:
    return isinstance(value, Base)
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package whose modules import from a heavy one, and from a heavy package."""
    write(tmp_path, "deferring/__init__.py", "from deferring.heavy import Base, double\nfrom deferring import user\n")
    write(tmp_path, "deferring/heavy.py", HEAVY)
    write(tmp_path, "deferring/large/__init__.py", "")
    write(tmp_path, "deferring/large/inner.py", "VALUE = 5\n")
    write(tmp_path, "deferring/user.py", USER)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "deferring"]:
        forget(name)


def imported(*names: str) -> Any:
    with DeferredImports(names):
        import deferring  # type: ignore[import-not-found]
    return deferring


def test_a_deferred_module_is_not_loaded_until_something_of_it_is_used() -> None:
    deferring = imported("deferring.heavy")
    assert "deferring.heavy" not in sys.modules
    assert isinstance(vars(deferring)["double"], Placeholder)
    assert deferring.double(4) == 8
    assert "deferring.heavy" in sys.modules


def test_a_name_behaves_as_the_real_one() -> None:
    deferring = imported("deferring.heavy")
    assert deferring.Base.__name__ == "Base"
    assert deferring.Base.name == "base"
    assert list(deferring.user.NAMES) == ["a", "b"]
    assert "a" in deferring.user.NAMES
    assert deferring.user.NAMES[1] == "b"

    class Derived(deferring.Base):  # type: ignore[misc, name-defined]
        pass

    from deferring.heavy import Base  # type: ignore[import-not-found]

    assert Derived.__mro__[1] is Base
    assert issubclass(Derived, deferring.Base)
    assert deferring.user.check(Base(1))
    assert not deferring.user.check(1)


def test_a_module_that_others_have_imported_gets_the_names_of_the_real_one() -> None:
    deferring = imported("deferring.heavy", "deferring.large")
    assert deferring.user.heavy.double(1) == 2
    assert deferring.user.inner.VALUE == 5


def test_afterwards_it_is_imported_as_any_other() -> None:
    imported("deferring.heavy")
    from deferring.heavy import double

    assert type(double).__name__ == "function"


def test_a_module_that_does_not_exist_is_not_replaced() -> None:
    with DeferredImports(["deferring.missing"]), pytest.raises(ModuleNotFoundError):
        import deferring.missing  # type: ignore[import-not-found]  # noqa: F401


def test_what_is_needed_at_once_is_loaded_at_once(tmp_path: Path) -> None:
    write(tmp_path, "deferring/user.py", "from deferring.heavy import Base\nclass Own(Base):\n    pass\n")
    deferring = imported("deferring.heavy")
    assert "deferring.heavy" in sys.modules
    assert deferring.user.Own(3).number == 3
