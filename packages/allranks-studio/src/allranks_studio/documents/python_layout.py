"""The layout, the distribution and the compute of a node in Python: `layout(...)`, or objects of the SDK."""

import ast
from itertools import takewhile
from pathlib import Path

from allranks.catalog import shipped_specs
from allranks.sdk import bounded_yaml
from allranks_studio.documents import edits, python_imports
from allranks_studio.documents.canvas import WITH_PROCESSES
from allranks_studio.documents.patches import Patch
from allranks_studio.documents.python_editor import Editor
from allranks_studio.documents.python_outline import decorator_of, is_layout, set_by
from allranks_studio.documents.rewiring import node_at, refused

_INSTANCES, _PROCESSES = "instance_count", "process_count_per_instance"
_CLASSES = {
    "pytorch": "PyTorchDistribution",
    "mpi": "MpiDistribution",
    "tensorflow": "TensorFlowDistribution",
    "ray": "RayDistribution",
}
_OBJECTS = (("resources",), ("distribution",), ("set_resources",))


def set_layout(editor: Editor, edit: edits.SetLayout) -> None:
    """Change the layout of a node in the style that the file has for it."""
    _, made = editor.made(edit.node)
    before, around = node_at(editor.graph, edit.node).layout, edit.node.rpartition(".")[0]
    assert before is not None
    codes = {_INSTANCES: editor.code(edit.instances, "integer", around)}
    if before.distribution in WITH_PROCESSES:
        codes[_PROCESSES] = editor.code(edit.processes, "integer", around)
    if made.layouts:
        for place, (name, code) in enumerate(codes.items(), 1):
            editor.argument(editor.made(edit.node)[1].layouts[-1], name, code, place)
    elif "from allranks" not in editor.text or any(set_by(each)[:1] in _OBJECTS for each in made.settings):
        if edit.instances != before.instances:
            _set_object(editor, edit.node, "resources", _INSTANCES, codes[_INSTANCES])
        if _PROCESSES in codes and edit.processes != before.processes:
            _set_object(editor, edit.node, "distribution", _PROCESSES, codes[_PROCESSES], _CLASSES[before.distribution])
    else:
        _add_call(editor, edit.node, codes)


def _add_call(editor: Editor, path: str, codes: dict[str, str]) -> None:
    """Add a call of `layout`, with the counts by place if the file has a call that gives them so."""
    editor.named(path)
    has_places = any(is_layout(each) and len(each.args) > 1 for each in ast.walk(editor.source.tree))
    given = [code if has_places else f"{name}={code}" for name, code in codes.items()]
    function = editor.imported("allranks", "layout")
    pipeline, made = editor.made(path)
    call = editor.call(f"{function}(", [made.variable, *given], editor.indent(pipeline))
    editor.insert_after(made.statements[-1], call)


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
    _, made = editor.named(path)
    if (setting := made.setting(key)) is not None:
        editor.apply(editor.source.replaced(setting.value, code))
        return
    # Before a call of `layout`, which copies the distribution.
    *_, after = takewhile(lambda each: not (isinstance(each, ast.Expr) and is_layout(each.value)), made.statements)
    editor.insert_after(after, f"{made.variable}.{key} = {code}")


def set_distribution(editor: Editor, edit: edits.SetDistribution) -> None:
    """Change the distribution: to the variant of the library's component, or with an object of the SDK."""
    _, made = editor.named(edit.node)
    node = node_at(editor.graph, edit.node)
    is_object = any(set_by(each)[:1] == ("distribution",) for each in made.settings)
    is_object = is_object or not isinstance(made.call.func, ast.Name)
    if variant := "" if is_object else _variant(node.component.removeprefix("allranks_"), edit.distribution):
        editor.apply(editor.source.replaced(made.call.func, editor.imported(python_imports.LIBRARY, variant)))
    elif edit.distribution == "none":
        raise refused(f"step {edit.node}", "its component has no variant without a distribution", "another one")
    else:
        given = ""
        if node.layout is not None and edit.distribution in WITH_PROCESSES:
            given = f"{_PROCESSES}={editor.code(node.layout.processes, 'integer', edit.node.rpartition('.')[0])}"
        kind = editor.imported("azure.ai.ml", _CLASSES[edit.distribution])
        _assign(editor, edit.node, "distribution", f"{kind}({given})")
    _, made = editor.made(edit.node)
    if made.layouts and edit.distribution not in WITH_PROCESSES:
        editor.argument(made.layouts[-1], _PROCESSES, "", 2)


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
            source = editor.source
            editor.apply(source.replaced(statement.value, code) if code else source.removal(statement))
            return
    decorator = decorator_of(editor.pipeline("").function)
    if isinstance(decorator, ast.Call):
        given = [each.arg for each in decorator.keywords]
        names = [name for name in ("default_compute", "default_compute_target", "compute") if name in given]
        editor.argument(decorator, (names or ["default_compute"])[0], code)
    elif decorator is not None and code:
        end = editor.source.span(decorator)[1]
        editor.apply(Patch(end, end, f"(default_compute={code})"))
