"""The layout, the distribution and the compute of a node in Python: `layout(...)`, or objects of the SDK."""

import ast
from pathlib import Path

from allranks.catalog import shipped_specs
from allranks.errors import InputError, Problem
from allranks.sdk import bounded_yaml
from allranks_studio.documents import edits, python_imports
from allranks_studio.documents.canvas import WITH_PROCESSES
from allranks_studio.documents.patches import Patch
from allranks_studio.documents.python_editor import Editor
from allranks_studio.documents.python_outline import decorator_of, is_layout, root_of, set_by
from allranks_studio.documents.rewiring import node_at

_INSTANCES, _PROCESSES = "instance_count", "process_count_per_instance"
_CLASSES = {
    "pytorch": "PyTorchDistribution",
    "mpi": "MpiDistribution",
    "tensorflow": "TensorFlowDistribution",
    "ray": "RayDistribution",
}


def set_layout(editor: Editor, edit: edits.SetLayout) -> None:
    """Change the layout of a node in the style that the file has for it."""
    _, made = editor.made(edit.node)
    if made.hidden:
        found = "an if statement sets the layout here"
        raise InputError(Problem(f"line {made.hidden[0]}", found, "", "edit that line"))
    if len(made.layouts) > 1:
        line = made.layouts[-1].lineno
        raise InputError(Problem(f"line {line}", f"the layout of {edit.node} is set twice", "", "remove one"))
    before = node_at(editor.graph, edit.node).layout
    around = edit.node.rpartition(".")[0]
    codes = {_INSTANCES: editor.code(edit.instances, "integer", around)}
    if before is not None and before.distribution in WITH_PROCESSES:
        codes[_PROCESSES] = editor.code(edit.processes, "integer", around)
    if made.layouts:
        for place, (name, code) in enumerate(codes.items(), 1):
            editor.argument(editor.made(edit.node)[1].layouts[0], name, code, place)
    elif not _uses_allranks(editor) or any(_is_of_objects(each) for each in made.settings):
        if before is None or edit.instances != before.instances:
            _set_object(editor, edit.node, "resources", _INSTANCES, codes[_INSTANCES])
        if before is not None and _PROCESSES in codes and edit.processes != before.processes:
            _set_object(editor, edit.node, "distribution", _PROCESSES, codes[_PROCESSES], _CLASSES[before.distribution])
    else:
        _add_call(editor, edit.node, codes)


def _uses_allranks(editor: Editor) -> bool:
    imports = [each for each in editor.source.tree.body if isinstance(each, ast.ImportFrom)]
    return any((each.module or "").partition(".")[0] == "allranks" for each in imports)


def _is_of_objects(statement: ast.stmt) -> bool:
    return set_by(statement)[:1] in (("resources",), ("distribution",), ("set_resources",))


def _add_call(editor: Editor, path: str, codes: dict[str, str]) -> None:
    """Add a call of `layout`, with the counts by place if the file has a call that gives them so."""
    editor.named(path)
    has_places = any(is_layout(each) and len(each.args) > 1 for each in ast.walk(editor.source.tree))
    given = [code if has_places else f"{name}={code}" for name, code in codes.items()]
    function = editor.imported("allranks", "layout")
    pipeline, made = editor.made(path)
    call = editor.call(f"{function}(", [made.variable, *given], editor.indent(pipeline))
    editor.insert_after(pipeline, made.statements[-1], call)


def _set_object(
    editor: Editor, path: str, section: str, name: str, code: str, kind: str = "JobResourceConfiguration"
) -> None:
    """Set a count of an object of the SDK, which is added if the node has none. kind: its class"""
    _, made = editor.named(path)
    if (setting := made.setting(section, name)) is not None:
        editor.apply(editor.source.replaced(setting.value, code))
        return
    for statement in made.settings:
        value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
        if isinstance(value, ast.Call) and set_by(statement) in ((section,), (f"set_{section}",)):
            editor.argument(value, name, code)
            return
    module = "azure.ai.ml.entities" if section == "resources" else "azure.ai.ml"
    _assign(editor, path, section, f"{editor.imported(module, kind)}({name}={code})")


def _assign(editor: Editor, path: str, key: str, code: str) -> None:
    """Replace the value of ``step.key = ...``, or add this statement after the call that makes the node."""
    pipeline, made = editor.named(path)
    if (setting := made.setting(key)) is not None:
        editor.apply(editor.source.replaced(setting.value, code))
        return
    # Before a call of `layout`, which copies the distribution.
    first = [each for each in made.settings if not (isinstance(each, ast.Expr) and is_layout(each.value))]
    after = first[-1] if first and first[-1].lineno == made.statements[-1].lineno else made.statement
    editor.insert_after(pipeline, after, f"{made.variable}.{key} = {code}")


def set_distribution(editor: Editor, edit: edits.SetDistribution) -> None:
    """Change the distribution: to the variant of the library's component, or with an object of the SDK."""
    _, made = editor.named(edit.node)
    name = _library_name(editor, (made.base or made).call)
    sets_object = any(set_by(each)[:1] == ("distribution",) for each in made.settings)
    if variant := "" if sets_object else _variant(name, edit.distribution):
        local = editor.imported(python_imports.LIBRARY, variant)
        _, made = editor.made(edit.node)
        editor.apply(editor.source.replaced((made.base or made).call.func, local))
    elif edit.distribution == "none":
        found = "its component has no variant without a distribution"
        raise InputError(Problem(f"step {edit.node}", found, "another distribution"))
    else:
        layout, given = node_at(editor.graph, edit.node).layout, ""
        if layout is not None and edit.distribution != "ray":
            is_workers = edit.distribution == "tensorflow"
            count = layout.instances if is_workers else layout.processes
            code = editor.code(count, "integer", edit.node.rpartition(".")[0])
            given = f"{'worker_count' if is_workers else _PROCESSES}={code}"
        kind = editor.imported("azure.ai.ml", _CLASSES[edit.distribution])
        _assign(editor, edit.node, "distribution", f"{kind}({given})")
    _, made = editor.made(edit.node)
    if made.layouts and edit.distribution not in WITH_PROCESSES:
        editor.argument(made.layouts[0], _PROCESSES, "", 2)


def _library_name(editor: Editor, call: ast.Call) -> str:
    """Return the name in the library of the component that a call makes a node of; "" if it is of none."""
    imports = [each for each in editor.source.tree.body if isinstance(each, ast.ImportFrom)]
    aliases = [alias for each in imports if each.module == python_imports.LIBRARY for alias in each.names]
    return {alias.asname or alias.name: alias.name for alias in aliases}.get(root_of(call.func), "")


def _variant(name: str, distribution: str) -> str:
    """Return the component of the same family with a distribution; "" if there is none."""
    specs = shipped_specs()
    if name not in specs:
        return ""

    def base(spec: Path) -> Path:
        return spec.parent.parent if (spec.parent.parent / spec.name).is_file() else spec.parent

    words = {"none": "single"}
    for each, spec in specs.items():
        # Another variant of this distribution may train in another way, as that of Horovod.
        is_plain = base(spec) == spec.parent or each.endswith(f"_{words.get(distribution, distribution)}")
        if is_plain and base(spec) == base(specs[name]) and _distribution(spec) == distribution:
            return each
    return ""


def _distribution(spec: Path) -> str:
    section = bounded_yaml.load_file(spec).get("distribution") or {}
    return str(section.get("type") or "none").lower()


def set_compute(editor: Editor, edit: edits.SetCompute) -> None:
    """Set or remove the compute of a node, or the default of the pipeline."""
    code = editor.source.literal(edit.compute) if edit.compute else ""
    if not edit.node:
        _set_default(editor, code)
    elif code:
        _assign(editor, edit.node, "compute", code)
    else:
        pipeline, made = editor.made(edit.node)
        editor.remove(pipeline, *(each for each in made.settings if set_by(each) == ("compute",)))


def _set_default(editor: Editor, code: str) -> None:
    for statement in ast.walk(editor.source.tree):
        if isinstance(statement, ast.Assign) and set_by(statement) == ("settings", "default_compute"):
            block = editor.source.block(statement)
            editor.apply(editor.source.replaced(statement.value, code) if code else Patch(*block, ""))
            return
    decorator = decorator_of(editor.pipeline("").function)
    if isinstance(decorator, ast.Call):
        given = [each.arg for each in decorator.keywords]
        names = [name for name in ("default_compute", "default_compute_target", "compute") if name in given]
        editor.argument(decorator, (names or ["default_compute"])[0], code)
    elif decorator is not None and code:
        end = editor.source.span(decorator)[1]
        editor.apply(Patch(end, end, f"(default_compute={code})"))
