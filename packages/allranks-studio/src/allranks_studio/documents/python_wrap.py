"""Move nodes of a Python pipeline into a function of their own."""

import ast
from collections.abc import Collection, Mapping, Sequence
from textwrap import dedent

from allranks_studio.documents import edits
from allranks_studio.documents.canvas import InputPort
from allranks_studio.documents.edits import Value
from allranks_studio.documents.patches import Patch, applied
from allranks_studio.documents.python_editor import Editor, in_use
from allranks_studio.documents.python_imports import used_names
from allranks_studio.documents.python_outline import Pipeline, decorator_of
from allranks_studio.documents.python_source import Source
from allranks_studio.documents.rewiring import graph_at, node_at, refused
from allranks_studio.documents.wrapping import Wrapping, wrapped, wrapping


def wrap(editor: Editor, edit: edits.WrapNodes) -> None:
    """Move nodes into a new function, which is called in their place."""
    around, names = edit.nodes[0].rpartition(".")[0], [path.rpartition(".")[2] for path in edit.nodes]
    graph = graph_at(editor.graph, around)
    interface, nested = wrapping(graph, names), node_at(wrapped(graph, names, edit.name), edit.name)
    for path in edit.nodes:
        editor.named(path)
    arguments = [f"{name}={editor.code(value, '', around)}" for name, value in interface.inputs.items()]
    call = editor.imported("azure.ai.ml", "Input") if interface.inputs else ""
    editor.refuse_taken(edit.name)
    editor.refuse_taken(f"{edit.name}_steps")
    pipeline, source = editor.pipeline(around), editor.source
    moved = {each for made in pipeline.made if made.key in interface.nodes for each in made.statements}
    statements = [each for each in pipeline.function.body if each in moved]
    parameters = [_parameter(source, call, each) for each in sorted(nested.inputs, key=lambda port: port.optional)]
    inputs: dict[Value, str] = {value: port for port, value in interface.inputs.items()}
    blocks = [applied(source.text, _with_codes(pipeline, each, inputs), *source.block(each)) for each in statements]
    results = [f"{source.literal(name)}: {editor.code(each, '', around)}" for name, each in interface.outputs.items()]
    function = _function(editor, pipeline, edit.name, parameters, blocks, results)
    _refuse_other_variables(function, pipeline, interface)
    start = source.block(pipeline.function)[0]
    outputs: dict[Value, str] = {value: f"{edit.name}.outputs.{port}" for port, value in interface.outputs.items()}
    patches = [Patch(start, start, function)]
    variables = {made.variable for made in pipeline.made if made.statement in moved}
    for each in pipeline.function.body:
        if each in moved:
            patches.append(Patch(*source.block(each), ""))
        else:
            _refuse_lost(pipeline, each, variables, outputs)
            patches += _with_codes(pipeline, each, outputs)
    indent = editor.indent(pipeline)
    code = editor.call(f"{edit.name} = {edit.name}_steps(", arguments, indent)
    end = source.block(statements[-1])[1]
    editor.apply(*patches, Patch(end, end, f"{indent}{code}{source.newline}"))
    editor.order(pipeline.function.name)


def _parameter(source: Source, call: str, port: InputPort) -> str:
    optional = ", optional=True) = None" if port.optional else ")"
    return f"{port.name}: {call}(type={source.literal(port.type)}{optional}"


def _function(
    editor: Editor,
    pipeline: Pipeline,
    name: str,
    parameters: Sequence[str],
    blocks: Sequence[str],
    results: Sequence[str],
) -> str:
    """Return the text of the new function. blocks: its statements; results: the entries of what it returns"""
    source = editor.source
    outer = source.text[source.start_of_line(pipeline.function.lineno) : source.span(pipeline.function)[0]]
    decorator = decorator_of(pipeline.function)
    assert decorator is not None
    decorated = source.code(decorator.func if isinstance(decorator, ast.Call) else decorator)
    title = source.literal(name.replace("_", " ").capitalize())
    lines = [
        f"{outer}@{decorated}(name={source.literal(name)}, display_name={title})",
        editor.call(f"{outer}def {name}_steps(", parameters, tail="):"),
        *(each.rstrip("\r\n") for each in blocks),
        *([editor.call(f"{editor.indent(pipeline)}return {{", results, tail="}")] if results else []),
    ]
    return source.newline.join([*lines, "", "", ""])


def _refuse_other_variables(function: str, pipeline: Pipeline, interface: Wrapping) -> None:
    """Raise InputError if the new function uses variables of the old one that it does not have."""
    new = Source(dedent(function))
    others = _assigned(pipeline.function) - _assigned(new.tree) | {*pipeline.parameters} - {*interface.inputs}
    for name in sorted(others & used_names(new)):
        found = f"they use {name}, which stays in {pipeline.function.name}"
        raise refused("the steps", found, "", "move the lines by hand")


def _refuse_lost(pipeline: Pipeline, statement: ast.stmt, variables: Collection[str], known: Collection[Value]) -> None:
    """Raise InputError if a statement uses a variable whose step has moved, and not only as one of the known values."""
    kept = {name for use in pipeline.uses(statement, known) for name in ast.walk(use)}
    for each in ast.walk(statement):
        if isinstance(each, ast.Name) and each.id in variables and each not in kept:
            raise in_use(each.id, each.lineno)


def _assigned(code: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(code) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _with_codes(pipeline: Pipeline, code: ast.AST, codes: Mapping[Value, str]) -> list[Patch]:
    """Return the patches that use other code for values."""
    found = pipeline.uses(code, codes)
    return [pipeline.source.replaced(each, codes[pipeline.value(each)]) for each in found]
