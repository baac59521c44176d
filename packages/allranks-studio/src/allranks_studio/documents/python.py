"""Pipelines in Python, with azure-ai-ml's DSL."""

import ast
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks_studio.documents import edits, python_imports
from allranks_studio.documents.canvas import Graph
from allranks_studio.documents.components import declared, spec_of
from allranks_studio.documents.edits import Edit, FromOutput
from allranks_studio.documents.patches import Patch
from allranks_studio.documents.python_editor import Editor, in_use
from allranks_studio.documents.python_layout import set_compute, set_distribution, set_layout
from allranks_studio.documents.python_outline import Pipeline, last_name, parsed, root_of, set_by
from allranks_studio.documents.python_wrap import wrap
from allranks_studio.documents.rewiring import node_at
from allranks_studio.documents.source import Outline

_WHOLE = ("condition", "do_while", "parallel_for", "layout")
"""Functions whose calls need all their arguments."""


class Python:
    """A `Language`."""

    def outline(self, text: str) -> Outline:
        return parsed(text).outline()

    def patches(self, text: str, edit: Edit, graph: Graph, path: Path) -> Sequence[Patch]:
        editor = Editor(text, graph, path)
        _EDITS[type(edit)](editor, edit)
        ours, theirs = text.splitlines(keepends=True), editor.result().splitlines(keepends=True)
        starts = [*accumulate(map(len, ours), initial=0)]
        return [
            Patch(starts[first], starts[last], "".join(theirs[start:end]))
            for kind, first, last, start, end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
            if kind != "equal"
        ]


def _add_node(editor: Editor, edit: edits.AddNode) -> None:
    editor.refuse_taken(edit.name)
    name, patches = python_imports.component(editor.source, edit.component, editor.path)
    editor.apply(*patches)
    _, kinds = declared(spec_of(edit.component, editor.path))
    given = [f"{port}={editor.code(value, kinds.get(port, ''), edit.graph)}" for port, value in edit.inputs.items()]
    pipeline = editor.pipeline(edit.graph)
    editor.append(pipeline, editor.call(f"{edit.name} = {name}(", given, editor.indent(pipeline)))


def _delete_node(editor: Editor, edit: edits.DeleteNode) -> None:
    pipeline, made = editor.made(edit.node)
    variables = {each.variable for each in (made, made.base) if each} - {""}

    def uses(pipeline: Pipeline) -> Sequence[ast.Name]:
        own = {id(each) for statement in editor.made(edit.node)[1].statements for each in ast.walk(statement)}
        found = [each for name in variables for each in editor.names_in(pipeline, name) if id(each) not in own]
        return sorted(found, key=lambda each: (each.lineno, each.col_offset))

    _disconnect(editor, pipeline.function.name, uses)
    pipeline, made = editor.made(edit.node)
    editor.remove(pipeline, *made.statements)


def _disconnect(editor: Editor, function: str, uses: Callable[[Pipeline], Sequence[ast.Name]]) -> None:
    """Remove what uses names in a function: the last one first, so that the lines of the others stay."""
    while found := uses(pipeline := editor.module.pipelines[function]):
        _remove_use(editor, pipeline, found[-1])


def _remove_use(editor: Editor, pipeline: Pipeline, name: ast.Name) -> None:
    """Remove what uses a name: an input of a call, an output of the pipeline, or an argument of `after`."""
    parents = {id(child): node for node in ast.walk(pipeline.function) for child in ast.iter_child_nodes(node)}
    code: ast.AST = name
    while isinstance(parents[id(code)], (ast.Attribute, ast.Subscript)):
        code = parents[id(code)]
    owner = parents[id(code)]
    call = parents[id(owner)]
    is_value = (code is name) == (name.id in pipeline.parameters)
    if isinstance(owner, ast.keyword) and isinstance(call, ast.Call) and is_value and last_name(call) not in _WHOLE:
        editor.argument(call, owner.arg or "", "")
    elif isinstance(owner, ast.Dict) and owner is pipeline.result and isinstance(code, ast.expr):
        key = owner.keys[place := owner.values.index(code)]
        _remove_entry(editor, pipeline, place)
        if isinstance(key, ast.Constant):
            _delete_uses_of_output(editor, str(key.value), pipeline.function.name)
    elif isinstance(owner, ast.Call) and root_of(owner.func) == "after" and code is name and len(owner.args) > 2:
        editor.apply(editor.source.arguments(owner).removed(owner.args.index(name)))
    elif isinstance(owner, ast.Call) and root_of(owner.func) == "after" and isinstance(call, ast.Expr):
        editor.remove(pipeline, call)
    else:
        raise in_use(name.id, name.lineno)


def _remove_entry(editor: Editor, pipeline: Pipeline, place: int) -> None:
    result = pipeline.result
    assert result is not None
    if len(result.keys) == 1:
        editor.remove(pipeline, pipeline.function.body[-1])
    else:
        editor.apply(editor.source.entries(result).removed(place))


def _rename(editor: Editor, edit: edits.RenameNode) -> None:
    pipeline, made = editor.made(edit.node)
    if (given := made.setting("name")) is not None:
        editor.apply(editor.source.replaced(given.value, editor.source.literal(edit.name)))
        return
    editor.refuse_taken(edit.name)
    if made.variable:
        editor.apply(*(editor.source.replaced(each, edit.name) for each in editor.names_in(pipeline, made.variable)))
    else:
        start = editor.source.span(made.statement)[0]
        editor.apply(Patch(start, start, f"{edit.name} = "))


def _duplicate(editor: Editor, edit: edits.DuplicateNode) -> None:
    editor.refuse_taken(edit.name)
    pipeline, made = editor.made(edit.node)
    if made.base is not None:
        raise InputError(
            Problem(f"step {edit.node}", "a sweep cannot be duplicated here", "", "copy its lines by hand")
        )
    source, copies = editor.source, []
    names = editor.names_in(pipeline, made.variable) if made.variable else []
    for statement in made.statements:
        if set_by(statement) != ("name",):
            inside = [*ast.walk(statement)]
            code = source.changed(source.span(statement), (source.replaced(n, edit.name) for n in names if n in inside))
            copies.append(code if made.variable else f"{edit.name} = {code}")
    editor.insert_after(pipeline, made.statements[-1], f"{source.newline}{editor.indent(pipeline)}".join(copies))


def _set_input(editor: Editor, edit: edits.SetInput | edits.ResetInput) -> None:
    code = ""
    if isinstance(edit, edits.SetInput):
        kinds = {port.name: port.type for port in node_at(editor.graph, edit.node).inputs}
        code = editor.code(edit.value, kinds.get(edit.input, ""), edit.node.rpartition(".")[0])
    pipeline, made = editor.made(edit.node)
    settings = [each.setting("inputs", edit.input) for each in (made, made.base) if each]
    setting = next(filter(None, settings), None)
    if setting is not None and code:
        editor.apply(editor.source.replaced(setting.value, code))
    elif setting is not None:
        editor.remove(pipeline, setting)
    else:
        inner = editor.module.nested(made)
        names = [*inner.parameters] if inner else []  # which the call may give by their places
        place = names.index(edit.input) if edit.input in names else -1
        editor.argument((made.base or made).call, edit.input, code, place)
    if isinstance(edit, edits.SetInput) and isinstance(edit.value, FromOutput):
        editor.order(pipeline.function.name)


def _add_input(editor: Editor, edit: edits.AddInput) -> None:
    editor.refuse_taken(edit.name)
    literal = editor.source.literal
    bounds = {"min": edit.minimum, "max": edit.maximum}
    settings = [f"type={literal(edit.type)}"]
    settings += [f"{key}={literal(bound)}" for key, bound in bounds.items() if bound is not None]
    settings += [f"enum=[{', '.join(map(literal, edit.enum))}]"] if edit.enum else []
    annotation = f"{editor.imported('azure.ai.ml', 'Input')}({', '.join(settings)})"
    default = f" = {literal(edit.default)}" if edit.default is not None else ""
    pipeline = editor.pipeline(edit.graph)
    parameters = pipeline.parameters.values()
    # A parameter without a default comes before those with one.
    place = next((n for n, (_, given) in enumerate(parameters) if given is not None and not default), len(parameters))
    editor.apply(editor.source.parameters(pipeline.function).added(f"{edit.name}: {annotation}{default}", place))


def _delete_input(editor: Editor, edit: edits.DeleteInput) -> None:
    function = editor.pipeline(edit.graph).function.name
    _disconnect(editor, function, lambda pipeline: editor.names_in(pipeline, edit.name))
    pipeline = editor.module.pipelines[function]
    editor.apply(editor.source.parameters(pipeline.function).removed([*pipeline.parameters].index(edit.name)))

    def calls() -> list[ast.Call]:
        found = [each for each in ast.walk(editor.source.tree) if isinstance(each, ast.Call)]
        named = [each for each in found if edit.name in [keyword.arg for keyword in each.keywords]]
        return [each for each in named if root_of(each.func) == function]

    while found := calls():
        editor.argument(found[0], edit.name, "")


def _add_output(editor: Editor, edit: edits.AddOutput) -> None:
    code = editor.code(FromOutput(edit.node, edit.port), "", edit.graph)
    pipeline = editor.pipeline(edit.graph)
    entry = f"{editor.source.literal(edit.name)}: {code}"
    if pipeline.result is not None:
        editor.apply(editor.source.entries(pipeline.result).added(entry))
    elif isinstance(last := pipeline.function.body[-1], ast.Return):
        raise in_use("the outputs", last.lineno)
    else:
        editor.insert_after(pipeline, last, f"return {{{entry}}}")


def _delete_output(editor: Editor, edit: edits.DeleteOutput) -> None:
    pipeline = editor.pipeline(edit.graph)
    keys = [each.value if isinstance(each, ast.Constant) else "" for each in getattr(pipeline.result, "keys", ())]
    if edit.name not in keys:
        found = "the function does not return it in a dictionary"
        raise InputError(Problem(f"output {edit.name}", found, "", "edit the code"))
    _remove_entry(editor, pipeline, keys.index(edit.name))
    _delete_uses_of_output(editor, edit.name, pipeline.function.name)


def _delete_uses_of_output(editor: Editor, name: str, function: str) -> None:
    """Remove the uses of an output of a nested pipeline, in all functions that call it."""

    def uses(pipeline: Pipeline) -> list[ast.Name]:
        nodes = {made.key for made in pipeline.made if root_of(made.call.func) == function}
        codes = (each for each in ast.walk(pipeline.function) if isinstance(each, (ast.Attribute, ast.Subscript)))
        values = ((code, pipeline.value(code)) for code in codes)
        found = [c for c, v in values if isinstance(v, FromOutput) and v.node in nodes and v.port == name]
        return [each for code in found for each in ast.walk(code) if isinstance(each, ast.Name)]

    for caller in editor.module.pipelines:
        _disconnect(editor, caller, uses)


_EDITS: Mapping[type, Callable[[Editor, Any], None]] = {
    edits.AddNode: _add_node,
    edits.DeleteNode: _delete_node,
    edits.RenameNode: _rename,
    edits.DuplicateNode: _duplicate,
    edits.SetInput: _set_input,
    edits.ResetInput: _set_input,
    edits.SetLayout: set_layout,
    edits.SetDistribution: set_distribution,
    edits.SetCompute: set_compute,
    edits.AddInput: _add_input,
    edits.DeleteInput: _delete_input,
    edits.AddOutput: _add_output,
    edits.DeleteOutput: _delete_output,
    edits.WrapNodes: wrap,
}
