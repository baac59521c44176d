"""Pipelines in YAML: the text after each edit.

azure-ai-ml reads a nested pipeline only from a file of its own. Its steps are edited there.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from allranks.checks.plan.bindings import article
from allranks.plan.ports import PRIMITIVES
from allranks.sdk import bounded_yaml
from allranks_studio.documents import edits
from allranks_studio.documents.canvas import WITH_PROCESSES, Graph, InputPort, Layout, Node, OutputPort
from allranks_studio.documents.components import declared, registered_names, spec_of
from allranks_studio.documents.edits import Edit, FromInput, FromOutput, Literal, Value
from allranks_studio.documents.intended import intended
from allranks_studio.documents.rewiring import node_at, refused
from allranks_studio.documents.source import Outline
from allranks_studio.documents.yaml_outline import bound_outputs, outline_of
from allranks_studio.documents.yaml_text import Content, YamlText


class Yaml:
    """The language of YAML files."""

    def outline(self, text: str) -> Outline:
        """Return the places in a text. Raise InputError, with the line, if it cannot be parsed."""
        return outline_of(YamlText(text))

    def edited(self, text: str, edit: Edit, graph: Graph, path: Path) -> str:
        """Return the text after one edit, whose new node has a name. Raise as `Language` does."""
        editor = _Editor(YamlText(text), graph, path)
        editor.edit(edit)
        return editor.text.text


class _Editor:
    """text: which is edited; graph: of the text before; path: of the file"""

    def __init__(self, text: YamlText, graph: Graph, path: Path) -> None:
        self.text, self.graph, self.path = text, graph, path
        schema = text.value("$schema")
        self.is_component = isinstance(schema, yaml.ScalarNode) and "component" in schema.value.lower()
        self.is_spaced = "${{ parent" in text.text and "${{parent" not in text.text

    def edit(self, edit: Edit) -> None:
        if around := getattr(edit, "graph", ""):
            raise refused(f"step {around}", "its steps are in the YAML file of its component", "", "open that file")
        is_default = isinstance(edit, edits.SetCompute) and not edit.node
        if self.text.value("jobs") is None and not is_default:
            raise refused("the file", "it contains no steps of a pipeline", "the key jobs", "edit the text")
        match edit:
            case edits.AddNode():
                self.add_node(edit)
            case edits.AddInput():
                self.add_input(edit)
            case edits.RenameNode(name, new):
                self.text.rename(("jobs", name), new)
                self.text.substitute(rf"(?<=parent\.jobs\.){re.escape(name)}(?![\w\-])", new)
            case edits.DuplicateNode(name, new):
                self.text.copy(("jobs", name), new)
                self.unbind_outputs(new)
            case edits.SetCompute("", compute):
                self.set_default_compute(compute)
            case edits.WrapNodes():
                fix = "write a file for the nested pipeline (type: pipeline, with inputs, outputs and jobs)"
                found = "azure-ai-ml reads a nested pipeline only from a YAML file of its own"
                raise refused(f"step {edit.name}", found, "a pipeline in Python, where steps can be wrapped", fix)
            case _:
                self.follow(intended(self.graph, edit))

    def follow(self, graph: Graph) -> None:
        """Write the differences of a graph that has no new steps or inputs."""
        steps = {node.name: node for node in graph.nodes}
        for node in self.graph.nodes:
            if node.name in steps and node != steps[node.name]:
                self.follow_node(node, steps[node.name])
        for output in self.graph.outputs:
            if output not in graph.outputs:
                for name in steps:
                    self.unbind_outputs(name, output.name)
                self.text.remove("outputs", output.name)
        gone = [("jobs", node.name) for node in self.graph.nodes if node.name not in steps]
        gone += [("inputs", port.name) for port in self.graph.inputs if port not in graph.inputs]
        for kind, name in gone:
            self.text.remove(kind, name)
            self.refuse_uses(kind, name)
        for output in graph.outputs:
            if output not in self.graph.outputs:
                self.add_output(output)

    def follow_node(self, old: Node, new: Node) -> None:
        self.refuse_locked(old.name)
        for before, after in zip(old.inputs, new.inputs, strict=True):
            if before.value != after.value:
                self.set_input(new.name, after)
        if new.layout is not None and old.layout != new.layout:
            self.set_layout(old, new.layout)
        if old.compute != new.compute:
            self.put_compute(("jobs", new.name, "compute"), new.compute)

    def refuse_locked(self, name: str) -> None:
        """Raise InputError if another step, which the edit would disconnect, cannot be edited."""
        lock = next((node.lock for node in self.graph.nodes if node.name == name), None)
        if lock is not None:
            raise refused(f"step {name}, line {lock.line}", lock.text)

    def add_node(self, edit: edits.AddNode) -> None:
        kind, types = declared(spec_of(edit.component, self.path))
        content: dict[str, Content] = {"type": kind, "component": written_component(edit.component, self.path)}
        if edit.inputs:
            content["inputs"] = {name: self.input(value, types.get(name, "")) for name, value in edit.inputs.items()}
        self.text.put(("jobs", edit.name), content)

    def set_input(self, name: str, port: InputPort) -> None:
        """Write the value of an input of a step. Raise InputError if one without a value is declared by its value."""
        place = ("jobs", name, "inputs", port.name)
        if port.value is None and self.is_inline(name):
            fix = "connect it, or give it another value"
            raise refused(f"step {name}, input {port.name}", "its command has it only by this value", "", fix)
        if port.value is None:
            self.text.remove(*place)
        elif isinstance(self.text.value(*place), yaml.MappingNode):
            held_at = "value" if self.text.value(*place, "value") else "path"
            self.text.put((*place, held_at), self.written(port.value))
        else:
            self.text.put(place, self.input(port.value, port.type))

    def set_layout(self, node: Node, layout: Layout) -> None:
        place, old, kind = ("jobs", node.name, "distribution"), node.layout, layout.distribution
        if old is None or node.kind not in ("command", "parallel"):
            raise refused(f"step {node.name}", f"the layout of a {node.kind} is edited in its text")
        if old.instances != layout.instances:
            self.text.put(("jobs", node.name, "resources", "instance_count"), self.written(layout.instances))
        is_other = old.distribution != kind
        if is_other and kind == "none":
            self.refuse_distribution_of_component(node.name)
        if is_other:
            self.text.remove(*place)
        if kind != "none" and (is_other or old.processes != layout.processes):
            if self.text.value(*place) is None:
                self.text.put((*place, "type"), kind)
            if kind in WITH_PROCESSES:
                self.text.put((*place, "process_count_per_instance"), self.written(layout.processes))

    def refuse_distribution_of_component(self, name: str) -> None:
        component = self.text.value("jobs", name, "component")
        reference = component.value if isinstance(component, yaml.ScalarNode) else ""
        spec = self.path.parent / reference.removeprefix("file:")
        is_own = self.text.value("jobs", name, "distribution") is not None
        if not is_own or (spec.is_file() and "distribution" in bounded_yaml.read_values(spec)):
            raise refused(f"step {name}", "the distribution is that of its component", "", "use another component")

    def set_default_compute(self, compute: str) -> None:
        if self.is_component:
            raise refused("the file", "a pipeline component has no compute", "a step or a pipeline job")
        is_own = self.text.value("compute") is not None
        self.put_compute(("compute",) if is_own else ("settings", "default_compute"), compute)

    def put_compute(self, place: Sequence[str], compute: str) -> None:
        if compute:
            self.text.put(place, compute if compute.startswith(("azureml:", "${{")) else f"azureml:{compute}")
        else:
            self.text.remove(*place)

    def add_input(self, edit: edits.AddInput) -> None:
        content: Content = edit.default
        if self.is_component:
            declared = {"type": edit.type, "default": edit.default, "min": edit.minimum, "max": edit.maximum}
            content = {key: value for key, value in declared.items() if value is not None}
            content |= {"enum": list(edit.enum)} if edit.enum else {}
        elif edit.default is None:
            found = "an input of a pipeline in YAML needs a value"
            raise refused(f"input {edit.name}", found, article(edit.type), "give it a default")
        elif edit.type not in PRIMITIVES:
            content = {"type": edit.type, "path": edit.default}
        elif edit.type == "number" and isinstance(edit.default, int):
            content = float(edit.default)
        self.text.put(("inputs", edit.name), content)

    def add_output(self, output: OutputPort) -> None:
        assert isinstance(output.value, FromOutput)
        step, binding = output.value.node, self.binding(f"parent.outputs.{output.name}")
        place = ("jobs", step, "outputs", output.value.port)
        declared = self.text.value(*place)
        is_mapping = isinstance(declared, yaml.MappingNode) and bool(declared.value)
        if is_mapping and node_at(self.graph, step).kind == "stand_in":
            found = "the outputs of this kind of step cannot be edited here"
            raise refused(f"step {step}", found, "", "edit the text")
        self.text.put(("outputs", output.name), {"type": output.type})
        self.text.put((*place, "path") if is_mapping else place, binding)

    def unbind_outputs(self, name: str, output: str = "") -> None:
        """Disconnect the outputs of a step from those of the pipeline, or from one of them."""
        step, types = self.text.value("jobs", name), {each.name: each.type for each in self.graph.outputs}
        for port, bound, _ in [*bound_outputs(self.text, step)] if step else ():
            if output not in ("", bound):
                continue
            self.refuse_locked(name)
            place = ("jobs", name, "outputs", port)
            value = self.text.value(*place)
            if isinstance(value, yaml.MappingNode) and len(value.value) > 1:
                self.text.remove(*place, "path")
            elif self.is_inline(name):
                self.text.put(place, {"type": types.get(bound, "uri_folder")})
            else:
                self.text.remove(*place)

    def refuse_uses(self, kind: str, name: str) -> None:
        """Raise InputError if the text still names a step or an input that was deleted."""
        for scalar in self.text.scalars(self.text.root):
            if re.search(rf"parent\.{kind}\.{re.escape(name)}\b", scalar.value):
                raise refused(f"text {scalar.value}", f"it names {name}, which would be deleted", "", "edit it first")

    def is_inline(self, name: str) -> bool:
        """Return whether a step has no component, so that its inputs and outputs are its command's."""
        keys = [self.text.value("jobs", name, key) for key in ("component", "trial")]
        return not any(isinstance(key, yaml.ScalarNode) for key in keys)

    def input(self, value: Value, kind: str) -> Content:
        """Return the value of an input of a step. A path is written with its type."""
        if isinstance(value, Literal) and kind and kind not in PRIMITIVES:
            return {"type": kind, "path": self.written(value)}
        return self.written(value)

    def written(self, value: Value) -> Content:
        match value:
            case Literal(literal):
                return literal
            case FromInput(name):
                return self.binding(f"parent.inputs.{name}")
            case FromOutput(node, port):
                return self.binding(f"parent.jobs.{node}.outputs.{port}")
        raise refused("the value", f"{value.text} is code", "a value, an input or an output")

    def binding(self, name: str) -> str:
        return f"${{{{ {name} }}}}" if self.is_spaced else f"${{{{{name}}}}}"


def written_component(reference: str, file: Path) -> str:
    """Return a component as a step in a file names it.

    One of the project or the library is a path relative to the file, whose code azure-ai-ml uploads when it submits the
    pipeline, unless allranks.yaml names the spec as that of a registered component.
    """
    spec, names = spec_of(reference, file), registered_names(file)
    name = next((name for name, path in names.items() if path.resolve() == spec.resolve()), "")
    if reference.startswith("registered:"):
        name = reference.removeprefix("registered:")
    if name:
        return f"azureml:{'//' if name.startswith('registries/') else ''}{name}"
    relative = Path(os.path.relpath(spec, file.parent)).as_posix()
    return relative if relative.startswith("../") else f"./{relative}"
