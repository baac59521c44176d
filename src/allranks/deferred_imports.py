"""Import a package, deferring its unused submodules, although its other modules import from them.

What exists only to import less, with the CPU time that a user waits (minimum of 6, on 2 cores):

- `sdk/light_import.py`: `allranks check` takes 2.6 s, and 3.7 s with all of azure-ai-ml.
- `local/tracking/tracker.py`: MLflow's import takes 3.2 s, and 4.6 s with all of it.
- `cli/lazy_group.py`: `allranks --help` takes 0.16 s, and 0.84 s with the modules of all commands.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType, TracebackType
from typing import Any, Union, cast


class DeferredImports:
    """Inside of the block, the thread that entered it imports an empty module in place of each deferred one, and gets a
    `Placeholder` for each name in it. A placeholder loads the real module when it is first used.

    After the block, deferred modules are imported normally. Placeholders remain where names were imported.
    """

    def __init__(self, names: Iterable[str]) -> None:
        """names: modules, which are deferred with their submodules. Modules that do not exist are ignored"""
        self._names = frozenset(names)
        self._loaded: set[str] = set()
        self._empty: dict[str, ModuleType] = {}
        self._thread = 0

    def __enter__(self) -> DeferredImports:
        self._thread = threading.get_ident()
        sys.meta_path.insert(0, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.meta_path.remove(self)
        self._loaded.update(self._names)
        for name in list(self._empty):
            self._remove(name)

    def is_deferred(self, name: str) -> bool:
        """Return whether an import of the module returns an empty module."""
        entry = self._entry(name)
        return entry is not None and entry not in self._loaded

    def load(self, name: str) -> ModuleType:
        """Import the real module."""
        entry = self._entry(name)
        if entry is not None and entry not in self._loaded:  # needed inside of the block
            self._loaded.add(entry)
            for empty in [one for one in self._empty if self._entry(one) == entry]:
                self._remove(empty)
        return importlib.import_module(name)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return how to import a deferred module: part of the interface of `sys.meta_path`."""
        if not self.is_deferred(name) or threading.get_ident() != self._thread:
            return None
        real = PathFinder.find_spec(name, path, target)
        if real is None:
            return None
        spec = ModuleSpec(name, cast("Any", self), origin=real.origin)
        spec.submodule_search_locations = real.submodule_search_locations
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the empty module: part of the interface of loaders."""
        self._empty[spec.name] = module = _Empty(spec.name, self)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module empty: part of the interface of loaders."""

    def _remove(self, name: str) -> None:
        module = self._empty.pop(name)
        if sys.modules.get(name) is module:
            forget(name)

    def _entry(self, name: str) -> str | None:
        """Return the deferred module that is or contains a module."""
        while name and name not in self._names:
            name = name.rpartition(".")[0]
        return name or None


class Placeholder:
    """A name of a deferred module. It behaves like the real object: it can be called, subclassed, and used in
    `isinstance`. It cannot be used in an `except` clause."""

    __slots__ = ("_deferral", "_found", "_module", "_name")

    def __init__(self, deferral: DeferredImports, module: str, name: str) -> None:
        self._deferral, self._module, self._name = deferral, module, name
        self._found: Any = self

    def resolve(self) -> Any:
        if self._found is self:
            module = self._deferral.load(self._module)
            try:
                self._found = getattr(module, self._name)
            except AttributeError:  # a module inside, which the package does not import
                self._found = importlib.import_module(f"{self._module}.{self._name}")
        return self._found

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.resolve()(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        if name == "__name__":
            return self._name
        if name.startswith("__"):  # inspection by typing, for example
            raise AttributeError(name)
        return getattr(self.resolve(), name)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self.resolve(),)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self.resolve())

    def __subclasscheck__(self, other: type) -> bool:
        return issubclass(other, self.resolve())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.resolve())

    def __getitem__(self, key: Any) -> Any:
        return self.resolve()[key]

    def __contains__(self, value: Any) -> bool:
        return value in self.resolve()

    def __or__(self, other: Any) -> Any:
        return Union[self, other]  # noqa: UP007  # this is the operator

    __ror__ = __or__


class _Empty(ModuleType):
    """A deferred module. A module that has imported it keeps it, and later gets the real module's names from it."""

    def __init__(self, name: str, deferral: DeferredImports) -> None:
        super().__init__(name)
        vars(self)["_deferral"] = deferral

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        deferral: DeferredImports = vars(self)["_deferral"]
        if deferral.is_deferred(self.__name__):
            return Placeholder(deferral, self.__name__, name)
        return getattr(deferral.load(self.__name__), name)


def forget(name: str) -> None:
    """Remove a module, so that the next import loads it again."""
    module = sys.modules.pop(name, None)
    parent, _, child = name.rpartition(".")
    if parent in sys.modules and vars(sys.modules[parent]).get(child) is module:
        delattr(sys.modules[parent], child)
