"""Move nodes of a Python pipeline into a function of their own."""

import ast

from allranks.errors import InputError, Problem
from allranks_studio.documents import edits
from allranks_studio.documents.canvas import InputPort
from allranks_studio.documents.edits import FromInput, FromOutput
from allranks_studio.documents.patches import Patch
from allranks_studio.documents.python_editor import Editor
from allranks_studio.documents.python_outline import Pipeline, decorator_of
from allranks_studio.documents.rewiring import graph_at, node_at
from allranks_studio.documents.wrapping import Wrapping, wrapped, wrapping


def wrap(editor: Editor, edit: edits.WrapNodes) -> None:
    """Move nodes into a new function, which is called in their place."""
    around = edit.nodes[0].rpartition(".")[0]
    names = [path.rpartition(".")[2] for path in edit.nodes]
    for path, name in zip(edit.nodes, names, strict=True):
        if editor.made(path)[1].key != name:
            raise InputError(Problem(f"step {path}", "the code gives it another name", "", "move the lines by hand"))
    graph = graph_at(editor.graph, around)
    interface = wrapping(graph, names)
    nested = node_at(wrapped(graph, names, edit.name), edit.name)
    for value in [*interface.inputs.values(), *interface.outputs.values()]:
        editor.code(value, "", around)  # nodes whose outputs are used get variables
    arguments = [f"{name}={editor.code(value, '', around)}" for name, value in interface.inputs.items()]
    call_input = editor.imported("azure.ai.ml", "Input") if interface.inputs else ""
    pipeline = editor.pipeline(around)
    function = f"{edit.name}_steps"
    editor.refuse_taken(edit.name)
    editor.refuse_taken(function)
    _refuse_other_variables(pipeline, interface)
    parameters = [
        _parameter(editor, call_input, each) for each in sorted(nested.inputs, key=lambda port: port.optional)
    ]
    text = _function(editor, pipeline, interface, edit.name, parameters)
    call = editor.call(f"{edit.name} = {function}(", arguments, editor.indent(pipeline))
    _replace(editor, pipeline, interface, edit.name, call)
    editor.order(pipeline.function.name)
    start = editor.source.block(editor.module.pipelines[pipeline.function.name].function)[0]
    editor.apply(Patch(start, start, text))


def _statements(pipeline: Pipeline, interface: Wrapping) -> list[ast.stmt]:
    moved = [made for made in pipeline.made if made.key in interface.nodes and not made.lock]
    return sorted({each for made in moved for each in made.statements}, key=lambda each: each.lineno)


def _refuse_other_variables(pipeline: Pipeline, interface: Wrapping) -> None:
    """Raise InputError if moved statements use variables of the function that the new one would not have."""
    moved = [each for statement in _statements(pipeline, interface) for each in _variables(statement)]
    known = {each.id for each in moved if isinstance(each.ctx, ast.Store)} | {made.variable for made in pipeline.made}
    known |= {*interface.inputs, *(each.name for each in interface.inputs.values() if isinstance(each, FromInput))}
    own = {each.id for each in _variables(pipeline.function) if isinstance(each.ctx, ast.Store)}
    for name in moved:
        if name.id in {*own, *pipeline.parameters} - known:
            found = f"it uses {name.id}, which stays in {pipeline.function.name}"
            raise InputError(Problem(f"line {name.lineno}", found, "", "move the lines by hand"))


def _variables(code: ast.AST) -> list[ast.Name]:
    return [each for each in ast.walk(code) if isinstance(each, ast.Name)]


def _parameter(editor: Editor, call: str, port: InputPort) -> str:
    optional = ", optional=True) = None" if port.optional else ")"
    return f"{port.name}: {call}(type={editor.source.literal(port.type)}{optional}"


def _function(editor: Editor, pipeline: Pipeline, interface: Wrapping, name: str, parameters: list[str]) -> str:
    """Return the text of the new function."""
    source, newline = editor.source, editor.source.newline
    outer = source.text[source.start_of_line(pipeline.function.lineno) : source.span(pipeline.function)[0]]
    decorator = decorator_of(pipeline.function)
    assert decorator is not None
    decorated = source.code(decorator.func if isinstance(decorator, ast.Call) else decorator)
    title = source.literal(name.replace("_", " ").capitalize())
    lines = [
        f"{outer}@{decorated}(name={source.literal(name)}, display_name={title})",
        editor.call(f"{outer}def {name}_steps(", parameters, tail="):"),
        *(_changed(editor, pipeline, each, interface).rstrip("\r\n") for each in _statements(pipeline, interface)),
    ]
    if interface.outputs:
        variables = {made.key: made.variable for made in pipeline.made}
        entries = [
            f"{source.literal(port)}: {variables[value.node]}.outputs.{value.port}"
            for port, value in interface.outputs.items()
        ]
        lines.append(editor.call(f"{editor.indent(pipeline)}return {{", entries, tail="}"))
    return newline.join([*lines, "", "", ""])


def _changed(editor: Editor, pipeline: Pipeline, statement: ast.stmt, interface: Wrapping) -> str:
    """Return the lines of a statement, in which values of the outer function are parameters."""
    inputs = {value: port for port, value in interface.inputs.items()}
    found: list[Patch] = []

    def visit(node: ast.AST) -> None:
        is_use = isinstance(node, (ast.Attribute, ast.Subscript, ast.Name)) and isinstance(node.ctx, ast.Load)
        if is_use and isinstance(node, ast.expr) and (value := pipeline.value(node)) in inputs:
            found.append(editor.source.replaced(node, inputs[value]))
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(statement)
    return editor.source.changed(editor.source.block(statement), found)


def _replace(editor: Editor, pipeline: Pipeline, interface: Wrapping, name: str, call: str) -> None:
    """Replace the moved statements by the call, and the uses of their outputs by its outputs."""
    source = editor.source
    statements = _statements(pipeline, interface)
    outputs = {value: port for port, value in interface.outputs.items()}
    inside = {each for statement in statements for each in ast.walk(statement)}
    patches = [
        source.replaced(each, f"{name}.outputs.{outputs[value]}")
        for each in ast.walk(pipeline.function)
        if isinstance(each, (ast.Attribute, ast.Subscript))
        and each not in inside
        and isinstance(value := pipeline.value(each), FromOutput)
        and value in outputs
    ]
    *others, last = map(source.block, statements)
    patches += [Patch(*each, "") for each in others]
    editor.apply(*patches, Patch(*last, f"{editor.indent(pipeline)}{call}{source.newline}"))
