"""Pipelines in Python, with azure-ai-ml's DSL."""

import ast
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks_studio.documents import edits, python_imports
from allranks_studio.documents.canvas import Graph
from allranks_studio.documents.components import declared, spec_of
from allranks_studio.documents.edits import Edit, FromOutput
from allranks_studio.documents.patches import Patch
from allranks_studio.documents.python_editor import Editor, in_use, taken_names
from allranks_studio.documents.python_layout import set_compute, set_distribution, set_layout
from allranks_studio.documents.python_outline import Made, Pipeline, is_layout, parsed, root_of
from allranks_studio.documents.python_wrap import wrap
from allranks_studio.documents.rewiring import node_at
from allranks_studio.documents.source import Outline

_CONTROL = ("condition", "do_while", "parallel_for")


class Python:
    """A `Language`."""

    def outline(self, text: str) -> Outline:
        return parsed(text).outline()

    def taken(self, text: str) -> Collection[str]:
        """Return the names that a new node cannot have."""
        return taken_names(parsed(text).source)

    def patches(self, text: str, edit: Edit, graph: Graph, path: Path) -> Sequence[Patch]:
        editor = Editor(text, graph, path)
        _apply(editor, edit)
        return _between(text, editor.result())


def _between(before: str, after: str) -> list[Patch]:
    """Return the patches that make one text of another, by lines, and by characters within a line."""
    ours, theirs = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in ours:
        starts.append(starts[-1] + len(line))
    patches = []
    for kind, first, last, start, end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if kind != "equal":
            old, new = "".join(ours[first:last]), "".join(theirs[start:end])
            head = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
            rest = zip(reversed(old[head:]), reversed(new[head:]), strict=False)
            tail = next((n for n, (a, b) in enumerate(rest) if a != b), min(len(old), len(new)) - head)
            place = starts[first]
            patches.append(Patch(place + head, place + len(old) - tail, new[head : len(new) - tail]))
    return patches


def _apply(editor: Editor, edit: Edit) -> None:
    match edit:
        case edits.AddNode():
            _add_node(editor, edit)
        case edits.DeleteNode(path):
            _delete_node(editor, path)
        case edits.RenameNode(path, name):
            _rename(editor, path, name)
        case edits.DuplicateNode(path, name):
            _duplicate(editor, path, name)
        case edits.SetInput():
            _set_input(editor, edit)
        case edits.ResetInput(path, name):
            _reset_input(editor, path, name)
        case edits.SetLayout():
            set_layout(editor, edit)
        case edits.SetDistribution():
            set_distribution(editor, edit)
        case edits.SetCompute():
            set_compute(editor, edit)
        case edits.AddInput():
            _add_input(editor, edit)
        case edits.DeleteInput(path, name):
            _delete_input(editor, path, name)
        case edits.AddOutput():
            _add_output(editor, edit)
        case edits.DeleteOutput(path, name):
            _delete_output(editor, path, name)
        case edits.WrapNodes():
            wrap(editor, edit)


def _add_node(editor: Editor, edit: edits.AddNode) -> None:
    editor.refuse_taken(edit.name)
    name, patches = python_imports.component(editor.source, edit.component, editor.path)
    editor.apply(*patches)
    _, kinds = declared(spec_of(edit.component, editor.path))
    given = [f"{port}={editor.code(value, kinds.get(port, ''), edit.graph)}" for port, value in edit.inputs.items()]
    pipeline = editor.pipeline(edit.graph)
    editor.append(pipeline, editor.call(f"{edit.name} = {name}(", given, editor.indent(pipeline)))


def _delete_node(editor: Editor, path: str) -> None:
    pipeline, made = editor.made(path)
    function, variables = pipeline.function.name, {each.variable for each in (made, made.base) if each} - {""}
    while uses := _uses(editor, pipeline := editor.module.pipelines[function], made := editor.made(path)[1], variables):
        _remove_use(editor, pipeline, uses[-1])  # the last one, so that the lines of the others stay
    for statement in reversed(made.statements):
        editor.remove(editor.module.pipelines[function], _same(editor, function, statement))


def _uses(editor: Editor, pipeline: Pipeline, made: Made, variables: set[str]) -> list[ast.Name]:
    """Return the uses of variables, except in the node's own statements, in their order."""
    own = {id(each) for statement in made.statements for each in ast.walk(statement)}
    found = [each for name in variables for each in editor.names_in(pipeline, name) if id(each) not in own]
    return sorted(found, key=lambda each: (each.lineno, each.col_offset))


def _same(editor: Editor, function: str, statement: ast.stmt) -> ast.stmt:
    """Return a statement that was found before later statements were removed."""
    body = editor.module.pipelines[function].function.body
    return next(each for each in body if each.lineno == statement.lineno)


def _remove_use(editor: Editor, pipeline: Pipeline, name: ast.Name) -> None:
    """Remove what uses a name: an input of a call, an output of the pipeline, or an argument of `after`."""
    parents = {id(child): node for node in ast.walk(pipeline.function) for child in ast.iter_child_nodes(node)}
    code: ast.AST = name
    while isinstance(parents[id(code)], (ast.Attribute, ast.Subscript)):
        code = parents[id(code)]
    owner, source = parents[id(code)], editor.source
    call = parents[id(owner)] if isinstance(owner, ast.keyword) and code is not name else None
    if isinstance(owner, ast.keyword) and isinstance(call, ast.Call) and root_of(call.func) not in _CONTROL:
        editor.apply(source.arguments(call).removed(len(call.args) + call.keywords.index(owner)))
    elif isinstance(owner, ast.Dict) and owner is pipeline.result and isinstance(code, ast.expr):
        place = owner.values.index(code)
        key = owner.keys[place]
        _remove_entry(editor, pipeline, place)
        if isinstance(key, ast.Constant):
            _delete_uses_of_output(editor, str(key.value), pipeline.function.name)
    elif isinstance(owner, ast.Call) and root_of(owner.func) == "after" and code is name and len(owner.args) > 2:
        editor.apply(source.arguments(owner).removed(owner.args.index(name)))
    elif isinstance(owner, ast.Call) and root_of(owner.func) == "after" and isinstance(parents[id(owner)], ast.Expr):
        editor.remove(pipeline, parents[id(owner)])  # type: ignore[arg-type]
    else:
        raise in_use(name.id, name.lineno)


def _remove_entry(editor: Editor, pipeline: Pipeline, place: int) -> None:
    result = pipeline.result
    assert result is not None
    if len(result.keys) == 1:
        editor.remove(pipeline, pipeline.function.body[-1])
    else:
        editor.apply(editor.source.entries(result).removed(place))


def _rename(editor: Editor, path: str, name: str) -> None:
    pipeline, made = editor.made(path)
    given = [each for each in made.settings if isinstance(each, ast.Assign) and _target(each) == "name"]
    if given:
        editor.apply(editor.source.replaced(given[-1].value, editor.source.literal(name)))
        return
    editor.refuse_taken(name)
    if not made.variable:
        start = editor.source.span(made.statement)[0]
        editor.apply(Patch(start, start, f"{name} = "))
        return
    editor.apply(*(editor.source.replaced(each, name) for each in editor.names_in(pipeline, made.variable)))


def _target(statement: ast.Assign) -> str:
    target = statement.targets[0]
    return target.attr if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) else ""


def _duplicate(editor: Editor, path: str, name: str) -> None:
    editor.refuse_taken(name)
    pipeline, made = editor.made(path)
    if made.base is not None:
        raise InputError(Problem(f"step {path}", "a sweep cannot be duplicated here", "", "copy its lines by hand"))
    source, statements = editor.source, made.statements
    names = {id(each) for each in editor.names_in(pipeline, made.variable)} if made.variable else set()
    copies = []
    for statement in statements:
        if isinstance(statement, ast.Assign) and _target(statement) == "name":
            continue
        start = source.span(statement)[0]
        patches = [source.replaced(each, name) for each in ast.walk(statement) if id(each) in names]  # type: ignore[arg-type]
        code = source.code(statement)
        for patch in sorted(patches, reverse=True):
            code = code[: patch.start - start] + patch.text + code[patch.end - start :]
        copies.append(code if made.variable else f"{name} = {code}")
    editor.insert_after(pipeline, statements[-1], f"{source.newline}{editor.indent(pipeline)}".join(copies))


def _argument(editor: Editor, made: Made, name: str) -> ast.expr | None:
    """Return the code of an input, also if the call of a pipeline function gives it by its place."""
    inner = editor.module.nested(made)
    by_place = dict(zip(inner.parameters, made.call.args, strict=False)) if inner else {}
    return made.inputs.get(name) or by_place.get(name)


def _set_input(editor: Editor, edit: edits.SetInput) -> None:
    port = next((port for port in node_at(editor.graph, edit.node).inputs if port.name == edit.input), None)
    code = editor.code(edit.value, port.type if port is not None else "", edit.node.rpartition(".")[0])
    pipeline, made = editor.made(edit.node)
    before = _argument(editor, made, edit.input)
    if before is not None:
        editor.apply(editor.source.replaced(before, code))
    else:
        editor.apply(editor.source.arguments((made.base or made).call).added(f"{edit.input}={code}"))
    if isinstance(edit.value, FromOutput):
        editor.order(pipeline.function.name)


def _reset_input(editor: Editor, path: str, name: str) -> None:
    pipeline, made = editor.made(path)
    call = (made.base or made).call
    for place, keyword in enumerate(call.keywords):
        if keyword.arg == name:
            editor.apply(editor.source.arguments(call).removed(len(call.args) + place))
            return
    for statement in made.settings:
        if isinstance(statement, ast.Assign) and statement.value is made.inputs.get(name):
            editor.remove(pipeline, statement)
            return
    raise InputError(Problem(f"step {path}, input {name}", "the call does not name it", "", "edit the code"))


def _add_input(editor: Editor, edit: edits.AddInput) -> None:
    editor.refuse_taken(edit.name)
    annotation = f"{editor.imported('azure.ai.ml', 'Input')}(type={editor.source.literal(edit.type)})"
    default = f" = {editor.source.literal(edit.default)}" if edit.default is not None else ""
    pipeline = editor.pipeline(edit.graph)
    parameters = pipeline.parameters.values()
    # A parameter without a default comes before those with one.
    place = next((n for n, (_, given) in enumerate(parameters) if given is not None and not default), len(parameters))
    function = pipeline.function.args
    place = place if place < len(parameters) or function.vararg or function.kwarg else None  # type: ignore[assignment]
    editor.apply(editor.source.parameters(pipeline.function).added(f"{edit.name}: {annotation}{default}", place))


def _delete_input(editor: Editor, path: str, name: str) -> None:
    function = editor.pipeline(path).function.name
    while uses := editor.names_in(editor.module.pipelines[function], name):
        _remove_input_use(editor, editor.module.pipelines[function], uses[0])
    pipeline = editor.module.pipelines[function]
    editor.apply(editor.source.parameters(pipeline.function).removed([*pipeline.parameters].index(name)))
    while found := _argument_of(editor, function, name):
        editor.apply(editor.source.arguments(found[0]).removed(found[1]))


def _argument_of(editor: Editor, function: str, name: str) -> tuple[ast.Call, int] | None:
    """Return a call of a function that names an argument, and the argument's place."""
    for call in ast.walk(editor.source.tree):
        if isinstance(call, ast.Call) and root_of(call.func) == function:
            for place, keyword in enumerate(call.keywords):
                if keyword.arg == name:
                    return call, len(call.args) + place
    return None


def _remove_input_use(editor: Editor, pipeline: Pipeline, name: ast.Name) -> None:
    for call in ast.walk(pipeline.function):
        for place, keyword in enumerate(call.keywords if isinstance(call, ast.Call) else ()):
            if keyword.value is name and isinstance(call, ast.Call) and not is_layout(call):
                editor.apply(editor.source.arguments(call).removed(len(call.args) + place))
                return
    raise in_use(name.id, name.lineno)


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


def _delete_output(editor: Editor, path: str, name: str) -> None:
    pipeline = editor.pipeline(path)
    keys = [each.value if isinstance(each, ast.Constant) else "" for each in getattr(pipeline.result, "keys", ())]
    if name not in keys:
        found = "the function does not return it in a dictionary"
        raise InputError(Problem(f"output {name}", found, "", "edit the code"))
    function = pipeline.function.name
    _remove_entry(editor, pipeline, keys.index(name))
    if path:
        _delete_uses_of_output(editor, name, function)


def _delete_uses_of_output(editor: Editor, name: str, function: str) -> None:
    """Remove the uses of an output of a nested pipeline, in all functions that call it."""
    for caller in editor.module.pipelines:
        while use := _use_of_output(editor.module.pipelines[caller], name, function):
            _remove_use(editor, editor.module.pipelines[caller], use)


def _use_of_output(pipeline: Pipeline, name: str, function: str) -> ast.Name | None:
    nodes = {made.key for made in pipeline.made if root_of(made.call.func) == function}
    for code in ast.walk(pipeline.function):
        if isinstance(code, (ast.Attribute, ast.Subscript)):
            value = pipeline.value(code)
            if isinstance(value, FromOutput) and value.node in nodes and value.port == name:
                return next(each for each in ast.walk(code) if isinstance(each, ast.Name))
    return None
