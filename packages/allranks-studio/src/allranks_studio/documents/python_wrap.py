"""Move nodes of a Python pipeline into a function of their own."""

import ast
from collections.abc import Mapping

from allranks.errors import InputError, Problem
from allranks_studio.documents import edits
from allranks_studio.documents.canvas import InputPort
from allranks_studio.documents.edits import FromInput, FromOutput, Value
from allranks_studio.documents.patches import Patch
from allranks_studio.documents.python_editor import Editor
from allranks_studio.documents.python_outline import Pipeline
from allranks_studio.documents.python_source import laid_out
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
    nested = node_at(wrapped(graph, names, edit.name, ""), edit.name)
    for value in [*interface.inputs.values(), *interface.outputs.values()]:
        editor.code(value, "", around)  # nodes whose outputs are used get variables
    arguments = [f"{name}={editor.code(value, '', around)}" for name, value in interface.inputs.items()]
    call_input = editor.imported("azure.ai.ml", "Input") if interface.inputs else ""
    pipeline = editor.pipeline(around)
    function = f"{edit.name}_steps"
    editor.refuse_taken(edit.name)
    editor.refuse_taken(function)
    parameters = [_parameter(editor, call_input, each) for each in nested.inputs]
    _refuse_other_variables(pipeline, interface)
    text = _function(editor, pipeline, interface, edit.name, parameters)
    call = editor.call(f"{edit.name} = {function}(", arguments, editor.indent(pipeline))
    _replace(editor, pipeline, interface, edit.name, call)
    caller = pipeline.function.name
    editor.order(caller)
    definition = editor.module.pipelines[caller].function
    start = editor.source.block(definition)[0]
    editor.apply(Patch(start, start, text))


def _statements(pipeline: Pipeline, names: tuple[str, ...]) -> list[ast.stmt]:
    moved = [made for made in pipeline.made if made.key in names and not made.lock]
    by_line = {each.lineno: each for made in moved for each in made.statements}
    return [by_line[line] for line in sorted(by_line)]


def _refuse_other_variables(pipeline: Pipeline, interface: Wrapping) -> None:
    """Raise InputError if moved statements use variables of the function that the new one would not have."""
    statements = _statements(pipeline, interface.nodes)
    names = [each for statement in statements for each in ast.walk(statement) if isinstance(each, ast.Name)]
    stored = {each.id for each in names if isinstance(each.ctx, ast.Store)} | {*interface.inputs}
    stored |= {value.name for value in interface.inputs.values() if isinstance(value, FromInput)}
    wired = {made.variable for made in pipeline.made}
    assigned = {
        each.id
        for each in ast.walk(pipeline.function)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each.id not in wired
    }
    for name in names:
        if name.id in (assigned | {*pipeline.parameters}) - stored:
            found = f"it uses {name.id}, which stays in {pipeline.function.name}"
            raise InputError(Problem(f"line {name.lineno}", found, "", "move the lines by hand"))


def _parameter(editor: Editor, call: str, port: InputPort) -> str:
    optional = ", optional=True) = None" if port.optional else ")"
    return f"{port.name}: {call}(type={editor.source.literal(port.type)}{optional}"


def _function(editor: Editor, pipeline: Pipeline, interface: Wrapping, name: str, parameters: list[str]) -> str:
    """Return the text of the new function."""
    source, newline = editor.source, editor.source.newline
    outer = source.text[source.start_of_line(pipeline.function.lineno) : source.span(pipeline.function)[0]]
    inputs: dict[Value, str] = {value: port for port, value in interface.inputs.items()}
    body = "".join(_changed(editor, pipeline, each, inputs) for each in _statements(pipeline, interface.nodes))
    if not body.endswith(("\n", "\r")):
        body += newline
    decorator = next(each for each in pipeline.function.decorator_list if "pipeline" in ast.dump(each))
    decorated = source.code(decorator.func if isinstance(decorator, ast.Call) else decorator)
    title = source.literal(name.replace("_", " ").capitalize())
    ordered = sorted(parameters, key=lambda each: each.endswith("= None"))
    head = f"{outer}def {name}_steps("
    lines = [
        f"{outer}@{decorated}(name={source.literal(name)}, display_name={title})",
        f"{head}{laid_out(ordered, head, '):', source)}):",
    ]
    text = newline.join(lines) + newline + body
    if interface.outputs:
        entries = []
        for port, value in interface.outputs.items():
            variable = next(made.variable for made in pipeline.made if made.key == value.node)
            entries.append(f"{source.literal(port)}: {variable}.outputs.{value.port}")
        line = f"{editor.indent(pipeline)}return {{"
        text += f"{line}{laid_out(entries, line, '}', source)}}}{newline}"
    return text + newline * 2


def _changed(editor: Editor, pipeline: Pipeline, statement: ast.stmt, inputs: Mapping[Value, str]) -> str:
    """Return the lines of a statement, in which values of the outer function are parameters."""
    start, end = editor.source.block(statement)
    code = editor.text[start:end]
    found: list[Patch] = []

    def visit(node: ast.AST) -> None:
        is_use = isinstance(node, (ast.Attribute, ast.Subscript, ast.Name)) and isinstance(node.ctx, ast.Load)
        if is_use and isinstance(node, ast.expr) and (value := pipeline.value(node)) in inputs:
            found.append(editor.source.replaced(node, inputs[value]))
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(statement)
    for patch in sorted(found, reverse=True):
        code = code[: patch.start - start] + patch.text + code[patch.end - start :]
    return code


def _replace(editor: Editor, pipeline: Pipeline, interface: Wrapping, name: str, call: str) -> None:
    """Replace the moved statements by the call, and the uses of their outputs by its outputs."""
    source = editor.source
    statements = _statements(pipeline, interface.nodes)
    outputs = {value: port for port, value in interface.outputs.items()}
    inside = {id(each) for statement in statements for each in ast.walk(statement)}
    patches = [
        source.replaced(each, f"{name}.outputs.{outputs[value]}")
        for each in ast.walk(pipeline.function)
        if isinstance(each, (ast.Attribute, ast.Subscript))
        and id(each) not in inside
        and isinstance(value := pipeline.value(each), FromOutput)
        and value in outputs
    ]
    blocks = [source.block(each) for each in statements]
    patches += [Patch(start, end, "") for start, end in blocks[:-1]]
    patches.append(Patch(*blocks[-1], f"{editor.indent(pipeline)}{call}{source.newline}"))
    editor.apply(*patches)
