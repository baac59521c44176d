"""The documentation of Python's standard library, read from its sources without importing them."""

import ast
import inspect
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks_steps.messages import bad_input

LIBRARY = Path(sysconfig.get_path("stdlib"))


@dataclass(frozen=True)
class Documented:
    """A documented function, method or class.

    name:      such as json.dumps
    package:   its top-level package or module
    kind:      function, method or class
    arguments: names of its arguments, without self
    summary:   the first paragraph of its documentation, as one line
    """

    name: str
    package: str
    kind: str
    arguments: tuple[str, ...]
    summary: str


def read(packages: Sequence[str]) -> list[Documented]:
    """Return the documented public names of these packages, sorted.

    Raise InputError if a package does not exist or has no documentation.
    """
    found: dict[str, Documented] = {}
    for package in packages:
        files = _files(package)
        if not files:
            fix = "name packages of the standard library"
            raise bad_input("input packages", f"{LIBRARY} has no package {package!r}", fix=fix)
        before = len(found)
        for file in files:
            for documented in _read_file(file, package):
                found.setdefault(documented.name, documented)
        if len(found) == before:
            raise bad_input("input packages", f"no docstring in {package!r}", fix="name packages that have some")
    return [found[name] for name in sorted(found)]


def _files(package: str) -> list[Path]:
    module = LIBRARY / f"{package}.py"
    if module.is_file():
        return [module]
    folder = LIBRARY / package
    files = folder.rglob("*.py") if package.isidentifier() else ()
    return sorted(file for file in files if not {"test", "tests"} & set(file.relative_to(folder).parts))


def _read_file(file: Path, package: str) -> Iterator[Documented]:
    parts = file.relative_to(LIBRARY).with_suffix("").parts
    module = ".".join(part for part in parts if part != "__init__")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    yield from _read_body(tree.body, module, package, "function")


def _read_body(body: Sequence[ast.stmt], prefix: str, package: str, kind: str) -> Iterator[Documented]:
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or node.name.startswith("_"):
            continue
        name = f"{prefix}.{node.name}"
        summary = _summary(ast.get_docstring(node))
        if isinstance(node, ast.ClassDef):
            if summary:
                yield Documented(name, package, "class", (), summary)
            yield from _read_body(node.body, name, package, "method")
        elif summary:
            arguments = tuple(argument.arg for argument in (*node.args.posonlyargs, *node.args.args))
            yield Documented(name, package, kind, tuple(a for a in arguments if a not in ("self", "cls")), summary)


def _summary(docstring: str | None) -> str:
    """Return the first paragraph; "" if there is none, or it is not a sentence of some words."""
    paragraph = inspect.cleandoc(docstring or "").partition("\n\n")[0]
    text = " ".join(paragraph.split())
    return text if 20 <= len(text) <= 240 else ""
