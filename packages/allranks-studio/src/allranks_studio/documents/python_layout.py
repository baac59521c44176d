"""The layout, the distribution and the compute of a node in Python: `layout(...)`, or objects of the SDK."""

import ast
from pathlib import Path

from allranks.catalog import shipped_specs
from allranks.errors import InputError, Problem
from allranks.sdk import bounded_yaml
from allranks_studio.documents import edits, python_imports
from allranks_studio.documents.edits import Value
from allranks_studio.documents.patches import Patch
from allranks_studio.documents.python_editor import Editor
from allranks_studio.documents.python_outline import Pipeline, is_layout, root_of
from allranks_studio.documents.rewiring import node_at

_COUNTS = ("instance_count", "process_count_per_instance")
_WITH_PROCESSES = ("pytorch", "mpi")
_CLASSES = {
    "pytorch": "PyTorchDistribution",
    "mpi": "MpiDistribution",
    "tensorflow": "TensorFlowDistribution",
    "ray": "RayDistribution",
}


def set_layout(editor: Editor, edit: edits.SetLayout) -> None:
    """Change the layout of a node in the style that the file has for it."""
    pipeline, made = editor.made(edit.node)
    if made.hidden:
        found = "an if statement sets the layout here"
        raise InputError(Problem(f"line {made.hidden[0]}", found, "", "edit that line"))
    layout = node_at(editor.graph, edit.node).layout
    distribution = layout.distribution if layout is not None else "none"
    values: dict[str, Value] = {_COUNTS[0]: edit.instances}
    if distribution in _WITH_PROCESSES:
        values[_COUNTS[1]] = edit.processes
    around = edit.node.rpartition(".")[0]
    codes = {name: editor.code(value, "integer", around) for name, value in values.items()}
    if made.layouts:
        for name, code in codes.items():
            _, made = editor.made(edit.node)
            if len(made.layouts) > 1:
                line = made.layouts[-1].lineno
                raise InputError(Problem(f"line {line}", f"the layout of {edit.node} is set twice", "", "remove one"))
            _set_argument(editor, made.layouts[0], name, code)
        return
    of_objects = ("resources", "distribution", "set_resources")
    objects = [each for each in made.settings if _setting(each)[:1] and _setting(each)[0] in of_objects]
    if objects or not _uses_allranks(editor):
        before = dict(zip(_COUNTS, (layout.instances, layout.processes) if layout else (), strict=False))
        for name, code in codes.items():
            if values[name] != before.get(name):
                _set_object(editor, edit.node, name, code, distribution)
        return
    pipeline, made = editor.named(edit.node)
    calls = [each for each in ast.walk(editor.source.tree) if isinstance(each, ast.Call) and is_layout(each)]
    given = [f"{name}={code}" for name, code in codes.items()]
    if any(len(each.args) > 1 for each in calls):
        given = [*codes.values()]
    call = editor.imported("allranks", "layout")
    pipeline, made = editor.made(edit.node)
    code = editor.call(f"{call}(", [made.variable, *given], editor.indent(pipeline))
    editor.insert_after(pipeline, made.statements[-1], code)


def _uses_allranks(editor: Editor) -> bool:
    imports = [each for each in editor.source.tree.body if isinstance(each, ast.ImportFrom)]
    return any((each.module or "").partition(".")[0] == "allranks" for each in imports)


def _set_argument(editor: Editor, call: ast.Call, name: str, code: str) -> None:
    """Set a count in a call: of `layout`, in which it may have no name, or of a class."""
    place = _COUNTS.index(name) + 1 if is_layout(call) else len(call.args) + 1
    given = {each.arg: each.value for each in call.keywords}
    if name in given:
        editor.apply(editor.source.replaced(given[name], code))
    elif place < len(call.args):
        editor.apply(editor.source.replaced(call.args[place], code))
    else:
        is_positional = place == len(call.args) > 1 and is_layout(call)
        index = place if is_positional else None
        editor.apply(editor.source.arguments(call).added(code if is_positional else f"{name}={code}", index))


def _setting(statement: ast.stmt) -> tuple[str, ...]:
    """Return what a statement sets: ("resources", "instance_count") for ``train.resources.instance_count = 2``."""
    code: ast.AST | None = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        code = statement.value.func
    names: list[str] = []
    while isinstance(code, ast.Attribute):
        names.insert(0, code.attr)
        code = code.value
    return tuple(names)


def _set_object(editor: Editor, path: str, name: str, code: str, distribution: str) -> None:
    """Set a count by the SDK's objects."""
    _, made = editor.named(path)
    section = "resources" if name == _COUNTS[0] else "distribution"
    for statement in made.settings:
        setting = _setting(statement)
        value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
        if value is not None and setting == (section, name):
            editor.apply(editor.source.replaced(value, code))
            return
        if isinstance(value, ast.Call) and setting in ((section,), (f"set_{section}",)):
            _set_argument(editor, value, name, code)
            return
    module, kind = "azure.ai.ml", _CLASSES.get(distribution, "")
    if section == "resources":
        module, kind = "azure.ai.ml.entities", "JobResourceConfiguration"
    _assign(editor, path, section, f"{editor.imported(module, kind)}({name}={code})")


def _assign(editor: Editor, path: str, key: str, code: str) -> None:
    """Replace the value of ``step.key = ...``, or add this statement after the call that makes the node."""
    pipeline, made = editor.named(path)
    for statement in made.settings:
        if _setting(statement) == (key,) and isinstance(statement, ast.Assign):
            editor.apply(editor.source.replaced(statement.value, code))
            return
    # Before a call of `layout`, which copies the distribution.
    first = [each for each in made.settings if not (isinstance(each, ast.Expr) and is_layout(each.value))]  # type: ignore[arg-type]
    after = first[-1] if first and first[-1].lineno == made.statements[-1].lineno else made.statement
    editor.insert_after(pipeline, after, f"{made.variable}.{key} = {code}")


def set_distribution(editor: Editor, edit: edits.SetDistribution) -> None:
    """Change the distribution: to the variant of the library's component, or with an object of the SDK."""
    _, made = editor.named(edit.node)
    call = (made.base or made).call
    layout = node_at(editor.graph, edit.node).layout
    around = edit.node.rpartition(".")[0]
    sets_object = any(_setting(each)[:1] == ("distribution",) for each in made.settings)
    variant = "" if sets_object else _variant(_library_name(editor, call), edit.distribution)
    if variant:
        local = editor.imported(python_imports.LIBRARY, variant)
        _, made = editor.made(edit.node)
        editor.apply(editor.source.replaced((made.base or made).call.func, local))
    elif edit.distribution == "none":
        found = "its component has no variant without a distribution"
        raise InputError(Problem(f"step {edit.node}", found, "another distribution"))
    else:
        given = ""
        if layout is not None and edit.distribution != "ray":
            is_workers = edit.distribution == "tensorflow"
            count = editor.code(layout.instances if is_workers else layout.processes, "integer", around)
            given = f"{'worker_count' if is_workers else _COUNTS[1]}={count}"
        kind = editor.imported("azure.ai.ml", _CLASSES[edit.distribution])
        _assign(editor, edit.node, "distribution", f"{kind}({given})")
    _, made = editor.made(edit.node)
    if made.layouts and edit.distribution not in _WITH_PROCESSES:
        arguments, layout_call = editor.source.arguments(made.layouts[0]), made.layouts[0]
        names = [each.arg for each in layout_call.keywords]
        if _COUNTS[1] in names:
            editor.apply(arguments.removed(len(layout_call.args) + names.index(_COUNTS[1])))
        elif len(layout_call.args) > 2:
            editor.apply(arguments.removed(2))


def _library_name(editor: Editor, call: ast.Call) -> str:
    """Return the name in the library of the component that a call makes a node of; "" if it is of none."""
    for node in editor.source.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == python_imports.LIBRARY:
            for alias in node.names:
                if (alias.asname or alias.name) == root_of(call.func):
                    return alias.name
    return ""


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
    code = editor.source.literal(edit.compute)
    if not edit.node:
        _set_default(editor, edit.compute)
        return
    pipeline, made = editor.made(edit.node)
    statements = [each for each in made.settings if _setting(each) == ("compute",)]
    if edit.compute:
        _assign(editor, edit.node, "compute", code)
    for statement in statements if not edit.compute else ():
        editor.remove(pipeline, statement)


def _set_default(editor: Editor, compute: str) -> None:
    code, tree = editor.source.literal(compute), editor.source.tree
    pipeline: Pipeline = editor.pipeline("")
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign) and _setting(statement) == ("settings", "default_compute"):
            block = editor.source.block(statement)
            editor.apply(editor.source.replaced(statement.value, code) if compute else Patch(*block, ""))
            return
    (decorator,) = [each for each in pipeline.function.decorator_list if "pipeline" in ast.dump(each)][:1]
    if not isinstance(decorator, ast.Call):
        end = editor.source.span(decorator)[1]
        editor.apply(Patch(end, end, f"(default_compute={code})" if compute else ""))
        return
    arguments = editor.source.arguments(decorator)
    names = [each.arg for each in decorator.keywords]
    for name in ("default_compute", "default_compute_target", "compute"):
        if name in names:
            place = names.index(name)
            value = decorator.keywords[place].value
            editor.apply(
                editor.source.replaced(value, code) if compute else arguments.removed(len(decorator.args) + place)
            )
            return
    if compute:
        editor.apply(arguments.added(f"default_compute={code}"))
