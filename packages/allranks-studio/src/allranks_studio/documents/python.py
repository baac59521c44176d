"""Pipelines in Python, with azure-ai-ml's DSL."""

import ast
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from allranks_studio.documents import edits, python_imports
from allranks_studio.documents.canvas import Graph
from allranks_studio.documents.components import declared, spec_of
from allranks_studio.documents.edits import Edit, FromOutput
from allranks_studio.documents.patches import applied
from allranks_studio.documents.python_editor import Editor, in_use
from allranks_studio.documents.python_layout import set_compute, set_distribution, set_layout
from allranks_studio.documents.python_outline import Pipeline, last_name, parsed, root_of, set_by
from allranks_studio.documents.python_wrap import wrap
from allranks_studio.documents.rewiring import node_at, refused
from allranks_studio.documents.source import Outline

_WHOLE = ("condition", "do_while", "parallel_for", "layout")
"""Functions whose calls need all their arguments."""


class Python:
    """A `Language`."""

    def outline(self, text: str) -> Outline:
        return parsed(text).outline()

    def edited(self, text: str, edit: Edit, graph: Graph, path: Path) -> str:
        editor = Editor(text, graph, path)
        _EDITS[type(edit)](editor, edit)
        return editor.result()


def _add_node(editor: Editor, edit: edits.AddNode) -> None:
    _, kinds = declared(spec_of(edit.component, editor.path))
    given = [f"{port}={editor.code(value, kinds.get(port, ''), edit.graph)}" for port, value in edit.inputs.items()]
    name, patches = python_imports.component(editor.source, edit.component, editor.path)
    editor.apply(*patches)
    editor.refuse_taken(edit.name)  # also as the name of its own component
    pipeline = editor.pipeline(edit.graph)
    editor.append(pipeline, editor.call(f"{edit.name} = {name}(", given, editor.indent(pipeline)))


def _delete_node(editor: Editor, edit: edits.DeleteNode) -> None:
    def uses(pipeline: Pipeline) -> list[ast.Name]:
        made = editor.made(edit.node)[1]
        own = {each for statement in made.statements for each in ast.walk(statement)}
        return [each for each in editor.names_in(pipeline, made.variable) if each not in own]

    _disconnect(editor, editor.made(edit.node)[0].function.name, uses)
    pipeline, made = editor.made(edit.node)
    editor.remove(pipeline, *made.statements)


def _disconnect(editor: Editor, function: str, uses: Callable[[Pipeline], Sequence[ast.expr]]) -> None:
    """Remove what uses code in a function."""
    while found := uses(pipeline := editor.module.pipelines[function]):
        _remove_use(editor, pipeline, found[-1])


def _remove_use(editor: Editor, pipeline: Pipeline, code: ast.expr) -> None:
    """Remove what uses code: an input of a call, an output of the pipeline, or an argument of `after`."""
    parents = {child: node for node in ast.walk(pipeline.function) for child in ast.iter_child_nodes(node)}
    while isinstance(owner := parents[code], (ast.Attribute, ast.Subscript)):
        code = owner
    around = parents[owner]
    if isinstance(owner, ast.keyword) and isinstance(around, ast.Call) and last_name(around) not in _WHOLE:
        editor.argument(around, owner.arg or "", "")
    elif isinstance(owner, ast.Dict) and owner is pipeline.result:
        _remove_output(editor, pipeline, owner.values.index(code))
    elif isinstance(owner, ast.Call) and last_name(owner) == "after" and isinstance(around, ast.Expr):
        place = owner.args.index(code)
        if place and len(owner.args) > 2:
            editor.apply(editor.source.arguments(owner).removed(place))
        else:
            editor.remove(pipeline, around)
    else:
        raise in_use(root_of(code), code.lineno)


def _remove_output(editor: Editor, pipeline: Pipeline, place: int) -> None:
    """Remove an output of a pipeline, and its uses in the functions that call the pipeline."""
    function, result = pipeline.function.name, pipeline.result
    assert result is not None
    name = str(getattr(result.keys[place], "value", ""))
    if len(result.keys) > 1:
        editor.apply(editor.source.entries(result).removed(place))
    else:
        editor.remove(pipeline, pipeline.function.body[-1])

    def uses(pipeline: Pipeline) -> list[ast.expr]:
        nodes = [made.key for made in pipeline.made if root_of(made.call.func) == function]
        return pipeline.uses(pipeline.function, [FromOutput(node, name) for node in nodes])

    for caller in editor.module.pipelines:
        _disconnect(editor, caller, uses)


def _rename(editor: Editor, edit: edits.RenameNode) -> None:
    pipeline, made = editor.made(edit.node)
    if (given := made.setting("name")) is not None:
        editor.apply(editor.source.replaced(given.value, editor.source.literal(edit.name)))
    elif made.variable:
        editor.refuse_taken(edit.name)
        editor.apply(*(editor.source.replaced(each, edit.name) for each in editor.names_in(pipeline, made.variable)))
    else:
        editor.assign(made, edit.name)


def _duplicate(editor: Editor, edit: edits.DuplicateNode) -> None:
    editor.refuse_taken(edit.name)
    pipeline, made = editor.made(edit.node)
    if node_at(editor.graph, edit.node).kind == "sweep":
        raise refused(f"step {edit.node}", "a sweep cannot be duplicated here", "", "copy its lines by hand")
    statements = (each for each in ast.walk(pipeline.function) if isinstance(each, ast.stmt))  # also in an `if`
    for statement in statements:
        if pipeline.node_set_by(statement) is made and statement not in made.statements:
            raise in_use(made.variable, statement.lineno)
    source, copies = editor.source, []
    names = editor.names_in(pipeline, made.variable) if made.variable else []
    for statement in made.statements:
        if set_by(statement) != ("name",):
            inside = [*ast.walk(statement)]
            patches = (source.replaced(each, edit.name) for each in names if each in inside)
            code = applied(source.text, patches, *source.span(statement))
            copies.append(code if made.variable else f"{edit.name} = {code}")
    editor.insert_after(made.statements[-1], f"{source.newline}{editor.indent(pipeline)}".join(copies))


def _set_input(editor: Editor, edit: edits.SetInput | edits.ResetInput) -> None:
    code = ""
    if isinstance(edit, edits.SetInput):
        kinds = {port.name: port.type for port in node_at(editor.graph, edit.node).inputs}
        code = editor.code(edit.value, kinds.get(edit.input, ""), edit.node.rpartition(".")[0])
    pipeline, made = editor.made(edit.node)
    setting = made.setting("inputs", edit.input)
    if setting is not None and code:
        editor.apply(editor.source.replaced(setting.value, code))
    elif setting is not None:
        editor.remove(pipeline, setting)
    else:
        inner = editor.module.nested(made)
        names = [*inner.parameters] if inner else []  # which the call may give by their places
        place = names.index(edit.input) if edit.input in names else -1
        editor.argument(made.call, edit.input, code, place)
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
    pipeline = editor.pipeline(edit.graph)
    if edit.name not in pipeline.parameters:
        raise refused(f"input {edit.name}", "the function does not declare it", "", "edit the code")
    function = pipeline.function.name

    def calls(name: str | None) -> list[ast.Call]:
        found = [each for each in ast.walk(editor.source.tree) if isinstance(each, ast.Call)]
        named = [each for each in found if name in [keyword.arg for keyword in each.keywords]]
        return [each for each in named if root_of(each.func) == function]

    for call in calls(None):  # with **, which may contain the input
        raise in_use(edit.name, call.lineno)
    _disconnect(editor, function, lambda pipeline: editor.names_in(pipeline, edit.name))
    pipeline = editor.module.pipelines[function]
    editor.apply(editor.source.parameters(pipeline.function).removed([*pipeline.parameters].index(edit.name)))
    while found := calls(edit.name):
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
        editor.insert_after(last, f"return {{{entry}}}")


def _delete_output(editor: Editor, edit: edits.DeleteOutput) -> None:
    pipeline = editor.pipeline(edit.graph)
    if edit.name not in pipeline.outputs:
        raise refused(f"output {edit.name}", "the function does not return it in a dictionary", "", "edit the code")
    _remove_output(editor, pipeline, [*pipeline.outputs].index(edit.name))


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
