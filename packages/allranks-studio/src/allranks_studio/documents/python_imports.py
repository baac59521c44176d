"""Imports and loaded components at the top of a Python file: add names in its style, and remove unused ones."""

import ast
import os
import re
import sys
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path

from allranks.azure.dsl import load_code
from allranks_studio.documents.components import spec_of
from allranks_studio.documents.patches import Patch
from allranks_studio.documents.python_outline import decorator_of, root_of
from allranks_studio.documents.python_source import Bracket, Source, laid_out

LIBRARY = "allranks.library"


def imported(source: Source, module: str, name: str) -> tuple[str, list[Patch]]:
    """Return the name in this file of a name of a module, and the patches that import it."""
    same = [each for each in source.tree.body if isinstance(each, ast.ImportFrom) and each.module == module]
    for each in same:
        for alias in each.names:
            if alias.name == name:
                return alias.asname or name, []
    if same and same[-1].names[0].name != "*":
        return name, [_extended(source, same[-1], name)]
    statement = f"from {module} import {name}{source.newline}"
    imports = [each for each in source.tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    package, standard = module.partition(".")[0], sys.stdlib_module_names
    near = [each for each in imports if _module(each).partition(".")[0] == package]
    others = [each for each in imports if _module(each) != "__future__"]
    near = near or [each for each in others if (_module(each).partition(".")[0] in standard) == (package in standard)]
    before = next((each for each in near if _module(each) > module), None)
    if before is None and not near and package in standard and imports == others != []:
        before, statement = imports[0], statement + source.newline
    if before is not None:
        start = source.block(before)[0]
        return name, [Patch(start, start, statement)]
    first = [
        each for each in source.tree.body[:1] if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
    ]
    after = [*first, *imports, *near][-1:]
    place = source.block(after[0])[1] if after else 0
    return name, [Patch(place, place, statement if near or not after else source.newline + statement)]


def _module(node: ast.Import | ast.ImportFrom) -> str:
    return node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name


def _order(name: str) -> tuple[int, str]:
    """Return the key by which isort and ruff sort names: constants, classes, others."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2), name


def _extended(source: Source, node: ast.ImportFrom, name: str) -> Patch:
    names = [alias.name for alias in node.names]
    later = [place for place, each in enumerate(names) if _order(each) > _order(name)]
    is_sorted = names == sorted(names, key=_order)
    place = later[0] if is_sorted and later else len(names)
    bracket = _names(source, node)
    if source.text[bracket.start - 1] == "(":
        return bracket.added(name, place)
    texts = [*bracket.texts[:place], name, *bracket.texts[place:]]
    start, _ = source.span(node)
    line = ", ".join(texts)
    if bracket.start - start + len(line) <= source.width:
        return Patch(bracket.start, bracket.end, line)
    rows = laid_out(texts, "(" * source.width, "", source, hangs=False)  # a head that leaves no room in one line
    return Patch(bracket.start, bracket.end, f"({rows.strip(' ')})")


def _names(source: Source, node: ast.ImportFrom) -> Bracket:
    """Return the names of an import: the inside of its parentheses, if it has some."""
    spans = [source.span(alias) for alias in node.names]
    end = source.span(node)[1]
    if source.text[end - 1] == ")":
        start = source.text.index("(", source.span(node)[0]) + 1
        return Bracket(source, start, end - 1, spans, hangs=False)
    return Bracket(source, spans[0][0], end, spans)


def used_names(source: Source) -> set[str]:
    """Return the names that the code uses, besides those that it imports."""
    return {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def without(source: Source, name: str) -> list[Patch]:
    """Return the patches that remove an import of a name, or the statement or function that defines it."""
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name and decorator_of(node):
            start, end = source.block(node)
            following = re.compile(r"\s*(?:\r\n|\n|\r)(?=\S)").match(source.text, end)
            return [Patch(start, following.end() if following else end, "")]
        if isinstance(node, ast.ImportFrom):
            for place, alias in enumerate(node.names):
                if (alias.asname or alias.name) == name:
                    is_only = len(node.names) == 1
                    return [Patch(*source.block(node), "")] if is_only else [_names(source, node).removed(place)]
        elif isinstance(node, ast.Assign) and root_of(node.targets[0]) == name and _loaded(node) is not None:
            return [Patch(*source.block(node), "")]
    return []


def _loaded(node: ast.stmt) -> ast.expr | None:
    """Return the path of ``NAME = load_component(PATH)``."""
    call = node.value if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) else None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "load_component"):
        return None
    return call.args[0] if call.args else next((each.value for each in call.keywords if each.arg == "source"), None)


def component(source: Source, reference: str, file: Path) -> tuple[str, list[Patch]]:
    """Return the name of a component's function in this file, and the patches that import or load it.

    reference: as the palette names it; file: the path of the text

    Raise InputError if there is no such component.
    """
    spec, (origin, _, name) = spec_of(reference, file).resolve(), reference.partition(":")
    if origin == "library":
        return imported(source, LIBRARY, name)
    if origin == "registered":
        reference = name.removeprefix("azureml:")
        variable = _free(re.split("[:@]", reference)[0].rpartition("/")[2], source)
        return variable, _registered(source, variable, f"azureml:{reference}")
    variable, loads = _free(spec.parent.name, source), [*_loads(source, file)]
    for node, _, folder, relative in loads:
        if (folder / relative).resolve() == spec:
            return root_of(node.targets[0]), []
    patches: list[Patch] = []
    if loads:
        after, base, folder, _ = loads[-1]
    else:
        path, patches = imported(source, "pathlib", "Path")
        after, base, folder = None, f"{path}(__file__).parent / ", file.parent
    place = source.literal(Path(os.path.relpath(spec, folder)).as_posix())
    _, more = imported(source, "azure.ai.ml", "load_component")
    return variable, [*patches, *more, _appended(source, f"{variable} = load_component({base}{place})", after)]


def _loads(source: Source, file: Path) -> Iterator[tuple[ast.Assign, str, Path, str]]:
    """Yield the statements that load a component: with the code before its path, as in ``HERE / "a.yaml"``, the folder
    that this code means, and the path."""
    near = [folder for parent in file.parents[:4] for folder in (parent, *sorted(parent.glob("*/")))]
    for node in source.tree.body:
        given = path = _loaded(node)
        code = ""
        if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Div):
            path, code = given.right, f"{source.code(given.left)} / "
        name = str(path.value) if isinstance(path, ast.Constant) else "?"
        found = next((folder for folder in near if (folder / name).is_file()), None)
        if isinstance(node, ast.Assign) and found is not None:
            yield node, code, found, name


def _registered(source: Source, variable: str, reference: str) -> list[Patch]:
    code = f"{variable} = {load_code(reference)}"
    clients = [node for node in source.tree.body if isinstance(node, ast.Assign) and "MLClient" in ast.dump(node.value)]
    if clients:
        code = code.replace("ml_client.", f"{root_of(clients[-1].targets[0])}.")
        return [_appended(source, code, clients[-1])]
    code = f"ml_client = MLClient.from_config(DefaultAzureCredential()){source.newline}{code}"
    _, patches = imported(source, "azure.ai.ml", "MLClient")
    _, more = imported(source, "azure.identity", "DefaultAzureCredential")
    return [*patches, *more, _appended(source, code, None)]


def _appended(source: Source, statement: str, after: ast.stmt | None) -> Patch:
    """Return the patch that adds a statement of the module after another one, by default after the imports."""
    imports = [each for each in source.tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    last = after or (imports[-1] if imports else None)
    end = source.block(last)[1] if last is not None else 0
    return Patch(end, end, f"{'' if after else source.newline}{statement}{source.newline}")


def _free(name: str, source: Source) -> str:
    base, taken = name if name.isidentifier() else "component", source.taken
    return next(each for each in chain([base], (f"{base}_{n}" for n in count(2))) if each not in taken)
