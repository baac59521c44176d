"""Imports and loaded components at the top of a Python file: add names in its style, and remove unused ones."""

import ast
import os
import re
import sys
from itertools import chain, count
from pathlib import Path

from allranks.azure.dsl import load_code
from allranks_studio.documents.components import spec_of
from allranks_studio.documents.patches import Patch
from allranks_studio.documents.python_outline import decorator_of, root_of
from allranks_studio.documents.python_source import Bracket, Source

LIBRARY = "allranks.library"

_LOAD = re.compile(r"""(?P<name>\w+) = load_component\(\s*(?:source=)?(?P<base>.*?)(["'])(?P<path>.+)\3,?\s*\)""")
"""A component that is loaded, as in ``train = load_component(HERE / "train.yaml")``. base: ``HERE /``"""


def imported(source: Source, module: str, name: str) -> tuple[str, list[Patch]]:
    """Return the name in this file of a name of a module, and the patches that import it."""
    imports = [each for each in source.tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    same = [each for each in imports if isinstance(each, ast.ImportFrom) and each.module == module]
    names = {alias.name: alias.asname or alias.name for each in same for alias in each.names}
    if name in names:
        return names[name], []
    if same and "*" not in names:
        return name, [_extended(source, same[-1], name)]
    key, package = _key(module), module.partition(".")[0]
    near = [each for each in imports if _module(each).partition(".")[0] == package]
    near = near or [each for each in imports if _key(_module(each))[0] == key[0]]
    earlier = [each for each in near or imports if _key(_module(each)) < key]
    statement, gap = f"from {module} import {name}{source.newline}", "" if near else source.newline
    if earlier:
        place = source.block(earlier[-1])[1]
        return name, [Patch(place, place, gap + statement)]
    place = source.start_of_line([*near, *imports, *source.tree.body][0].lineno)  # below a comment on all imports
    return name, [Patch(place, place, statement + gap)]


def _module(node: ast.Import | ast.ImportFrom) -> str:
    return node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name


def _key(module: str) -> tuple[int, str]:
    """Return the key by which isort and ruff sort modules: by the group, and by the name."""
    package = module.partition(".")[0]
    return (0 if package == "__future__" else 1 if package in sys.stdlib_module_names else 2), module


def _extended(source: Source, node: ast.ImportFrom, name: str) -> Patch:
    names, bracket = [alias.name for alias in node.names], _names(source, node)
    place = sorted([*names, name]).index(name) if names == sorted(names) else None
    patch = bracket.added(name, place)
    has_bracket = source.text[bracket.start - 1] == "("
    return patch if has_bracket or "\n" not in patch.text else Patch(patch.start, patch.end, f"({patch.text})")


def _names(source: Source, node: ast.ImportFrom) -> Bracket:
    """Return the names of an import: the inside of its parentheses, if it has some."""
    spans = [source.span(alias) for alias in node.names]
    end = source.span(node)[1]
    if source.text[end - 1] == ")":
        return Bracket(source, source.text.index("(", source.span(node)[0]) + 1, end - 1, spans)
    return Bracket(source, spans[0][0], end, spans)


def used_names(source: Source) -> set[str]:
    """Return the names that the code uses, besides those that it imports."""
    return {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def without(source: Source, name: str) -> list[Patch]:
    """Return the patches that remove the import of a name, or the loaded component or the pipeline that defines it."""
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom):
            names = [alias.asname or alias.name for alias in node.names]
            if name in names and len(names) > 1:
                return [_names(source, node).removed(names.index(name))]
        else:
            load = _LOAD.fullmatch(source.code(node))
            names = [load["name"]] if load else []
            names += [node.name] if isinstance(node, ast.FunctionDef) and decorator_of(node) else []
        if name in names:
            return [source.removal(node)]
    return []


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
    variable, after, base, folder, patches = _free(spec.parent.name, source), None, "", file.parent, list[Patch]()
    for node in source.tree.body:
        load = _LOAD.fullmatch(source.code(node))
        near = (each for each in (*file.parents[:4], *spec.parents) if load and (each / load["path"]).is_file())
        if load and (found := next(near, None)):
            if (found / load["path"]).resolve() == spec:
                return load["name"], []
            after, base, folder = node, load["base"], found
    if after is None:
        path, patches = imported(source, "pathlib", "Path")
        base = f"{path}(__file__).parent / "
    place = source.literal(Path(os.path.relpath(spec, folder)).as_posix())
    _, more = imported(source, "azure.ai.ml", "load_component")
    return variable, [*patches, *more, _appended(source, f"{variable} = load_component({base}{place})", after)]


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
    last = after or [*source.tree.body[:1], *imports][-1]
    return source.insertion(source.block(last)[1], last, f"{'' if after else source.newline}{statement}")


def _free(name: str, source: Source) -> str:
    base, taken = name if name.isidentifier() else "component", source.taken
    return next(each for each in chain([base], (f"{base}_{n}" for n in count(2))) if each not in taken)
