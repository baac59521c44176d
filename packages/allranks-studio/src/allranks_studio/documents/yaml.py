"""Pipelines in YAML: each edit as patches of the text.

azure-ai-ml reads a nested pipeline only from a file of its own. Its steps are edited there.
"""

import os
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import yaml

from allranks.checks.plan.bindings import article
from allranks.errors import InputError
from allranks.plan.ports import PRIMITIVES
from allranks.sdk import bounded_yaml
from allranks_studio.documents import edits
from allranks_studio.documents.canvas import WITH_PROCESSES, Graph, Node
from allranks_studio.documents.components import declared, registered_names, spec_of
from allranks_studio.documents.edits import Edit, FromInput, FromOutput, Literal, Value
from allranks_studio.documents.patches import Patch, applied
from allranks_studio.documents.rewiring import node_at, refused
from allranks_studio.documents.source import Outline
from allranks_studio.documents.yaml_outline import bound_outputs, outline_of, pairs
from allranks_studio.documents.yaml_text import Content, YamlText

_AFTER_INPUTS = ("outputs", "resources", "distribution", "compute", "limits", "environment_variables")
_SECTIONS = ("inputs", "outputs", "settings", "jobs")


class Yaml:
    """The language of YAML files."""

    def outline(self, text: str) -> Outline:
        """Return the places in a text. Raise InputError, with the line, if it cannot be parsed."""
        return outline_of(YamlText(text))

    def patches(self, text: str, edit: Edit, graph: Graph, path: Path) -> Sequence[Patch]:
        """Return the patches of one edit, whose new node has a name. Raise as `Language` does."""
        patches = _Edits(YamlText(text), graph, path).of(edit)
        try:
            applied(text, patches)
        except ValueError:
            found = "the text is formatted so that its parts cannot be changed at once"
            raise refused("the file", found, "one key on a line", "edit the text") from None
        return patches


class _Edits:
    def __init__(self, text: YamlText, graph: Graph, path: Path) -> None:
        self.text, self.graph, self.path = text, graph, path
        self.outline = outline_of(text)
        jobs = text.value(text.root, "jobs")
        self.jobs = {key.value: value for key, value in pairs(jobs) if isinstance(value, yaml.MappingNode)}
        self.is_spaced = "${{ parent" in text.text and "${{parent" not in text.text

    def of(self, edit: Edit) -> list[Patch]:
        if getattr(edit, "graph", ""):
            raise _elsewhere(getattr(edit, "graph", ""))
        is_default = isinstance(edit, edits.SetCompute) and not edit.node
        if "@1" in self.outline.nodes and not is_default:
            raise refused("the file", "it contains no steps of a pipeline", "the key jobs", "edit the text")
        match edit:
            case edits.AddNode():
                return self.add_node(edit)
            case edits.DeleteNode(name):
                self.job(name)
                gone = {output.name for output in self.graph.outputs if _is_of(output.value, name)}
                patches = self.text.without(self.text.root, "jobs", names=[name])
                patches += self.disconnect(lambda value: _is_of(value, name), but=name)
                patches += self.text.without(self.text.root, "outputs", names=gone)
                return self.without_other_uses(patches, "jobs", name)
            case edits.RenameNode(name, new):
                return self.rename(name, new)
            case edits.DuplicateNode(name, new):
                self.job(name)
                return self.text.copy(self.text.root, ("jobs", name), new, self.unbind_outputs(name))
            case edits.SetInput(name, port, value):
                return self.set_input(name, port, value)
            case edits.ResetInput(name, port):
                return self.unset(name, [port])
            case edits.SetLayout(name):
                return self.set_layout(edit, node_at(self.graph, name))
            case edits.SetDistribution(name, kind):
                return self.set_distribution(name, kind)
            case edits.SetCompute(name, compute):
                return self.set_compute(name, compute)
            case edits.AddInput():
                return self.add_input(edit)
            case edits.DeleteInput(_, name):
                patches = self.disconnect(lambda value: value == FromInput(name))
                patches += self.text.without(self.text.root, "inputs", names=[name])
                return self.without_other_uses(patches, "inputs", name)
            case edits.AddOutput(_, name, node, port):
                return self.add_output(name, node, port)
            case edits.DeleteOutput(_, name):
                patches = self.text.without(self.text.root, "outputs", names=[name])
                for job in self.jobs:
                    patches += self.unbind_outputs(job, name)
                return patches
            case edits.WrapNodes():
                fix = "write a file for the nested pipeline (type: pipeline, with inputs, outputs and jobs)"
                found = "azure-ai-ml reads a nested pipeline only from a YAML file of its own"
                raise refused(f"step {edit.name}", found, "a pipeline in Python, where steps can be wrapped", fix)

    def job(self, name: str) -> yaml.MappingNode:
        """Return the keys and values of a step. Raise InputError if they cannot be edited."""
        if "." in name:
            raise _elsewhere(name.rpartition(".")[0])
        if name not in self.jobs:
            raise refused(f"step {name}", "it is not in this file", f"one of {', '.join(self.jobs)}")
        lock = self.outline.nodes[name].lock
        if lock is not None:
            raise refused(f"step {name}, line {lock.line}", lock.text)
        return self.jobs[name]

    def add_node(self, edit: edits.AddNode) -> list[Patch]:
        kind, types = declared(spec_of(edit.component, self.path))
        content: dict[str, Content] = {"type": kind, "component": written_component(edit.component, self.path)}
        if kind == "command" and self.jobs and not any(self.text.value(job, "type") for job in self.jobs.values()):
            del content["type"]
        if edit.inputs:
            content["inputs"] = {name: self.input(value, types.get(name, "")) for name, value in edit.inputs.items()}
        return self.text.put(self.text.root, ("jobs", edit.name), content)

    def rename(self, name: str, new: str) -> list[Patch]:
        self.job(name)
        patches = [self.text.rename(self.text.root, ("jobs", name), new)]
        for scalar in self.text.scalars(self.text.root):
            start = scalar.start_mark.index
            raw = self.text.text[start : scalar.end_mark.index]
            for match in re.finditer(rf"parent\.jobs\.({re.escape(name)})(?![\w\-])", raw):
                patches.append(Patch(start + match.start(1), start + match.end(1), new))
        return patches

    def set_input(self, name: str, port: str, value: Value) -> list[Patch]:
        job = self.job(name)
        found = self.text.value(job, "inputs", port)
        if isinstance(found, yaml.MappingNode):
            held_at = "value" if self.text.value(found, "value") else "path"
            return self.text.put(found, (held_at,), self.written(value))
        kind = next((each.type for each in node_at(self.graph, name).inputs if each.name == port), "")
        return self.text.put(job, ("inputs", port), self.input(value, kind), _AFTER_INPUTS)

    def unset(self, name: str, ports: Collection[str]) -> list[Patch]:
        """Remove inputs of a step. Raise InputError for one that the step declares by its value."""
        job = self.job(name)
        if self.is_inline(name):
            fix = "connect it, or give it another value"
            raise refused(f"step {name}, input {', '.join(ports)}", "its command has it only by this value", "", fix)
        return self.text.without(job, "inputs", names=ports)

    def disconnect(self, is_gone: Callable[[Value | None], bool], but: str = "") -> list[Patch]:
        patches = []
        for name, place in self.outline.nodes.items():
            ports = [port for port, each in place.inputs.items() if is_gone(each.value)]
            if ports and name != but:
                patches += self.unset(name, ports)
        return patches

    def set_layout(self, edit: edits.SetLayout, node: Node) -> list[Patch]:
        job, old = self.job(edit.node), node.layout
        if old is None or node.kind not in ("command", "parallel"):
            raise refused(f"step {edit.node}", f"the layout of a {node.kind} is edited in its text")
        counts = (edit.instances, edit.processes)
        if self.is_inline(edit.node) and not all(isinstance(each, Literal) for each in counts):
            found = "azure-ai-ml takes an input as a count only for steps with a component"
            raise refused(f"step {edit.node}", found, "numbers")
        patches = []
        if edit.instances != old.instances:
            patches += self.text.put(job, ("resources", "instance_count"), self.written(edit.instances))
        if edit.processes != old.processes:
            key, value = "process_count_per_instance", self.written(edit.processes)
            if self.text.value(job, "distribution") is not None:
                patches += self.text.put(job, ("distribution", key), value)
            else:
                patches += self.text.put(job, ("distribution",), {"type": old.distribution, key: value})
        return patches

    def set_distribution(self, name: str, kind: str) -> list[Patch]:
        job, old = self.job(name), node_at(self.graph, name).layout
        component = self.text.value(job, "component")
        reference = component.value if isinstance(component, yaml.ScalarNode) else ""
        spec = self.path.parent / reference.removeprefix("file:")
        is_own = self.text.value(job, "distribution") is not None
        if kind == "none" and (not is_own or (spec.is_file() and "distribution" in bounded_yaml.read_values(spec))):
            raise refused(f"step {name}", "the distribution is that of its component", "", "use another component")
        if kind == "none":
            return self.text.without(job, names=["distribution"])
        content: dict[str, Content] = {"type": kind}
        if old is not None and kind in WITH_PROCESSES:
            content["process_count_per_instance"] = self.written(old.processes)
        return self.text.put(job, ("distribution",), content)

    def set_compute(self, name: str, compute: str) -> list[Patch]:
        owner = self.job(name) if name else self.text.root
        is_own = bool(name) or self.text.value(owner, "compute") is not None
        path = ("compute",) if is_own else ("settings", "default_compute")
        if not compute:
            return self.text.without(owner, *path[:-1], names=path[-1:])
        value = compute if compute.startswith(("azureml:", "${{")) else f"azureml:{compute}"
        return self.text.put(owner, path, value, ("jobs",))

    def add_input(self, edit: edits.AddInput) -> list[Patch]:
        content: Content = edit.default
        if "component" in str(getattr(self.text.value(self.text.root, "$schema"), "value", "")).lower():
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
        return self.text.put(self.text.root, ("inputs", edit.name), content, _SECTIONS[1:])

    def add_output(self, name: str, node: str, port: str) -> list[Patch]:
        job, binding = self.job(node), self.binding(f"parent.outputs.{name}")
        content: Content = {"type": self.output_type(node, port)}
        patches = self.text.put(self.text.root, ("outputs", name), content, _SECTIONS[2:])
        declared = self.text.value(job, "outputs", port)
        if not isinstance(declared, yaml.MappingNode) or not declared.value:
            return [*patches, *self.text.put(job, ("outputs", port), binding, _AFTER_INPUTS[1:])]
        if node_at(self.graph, node).kind == "stand_in":
            found = "the outputs of this kind of step cannot be edited here"
            raise refused(f"step {node}", found, "", "edit the text")
        return [*patches, *self.text.put(declared, ("path",), binding)]

    def output_type(self, node: str, port: str) -> str:
        return next((each.type for each in node_at(self.graph, node).outputs if each.name == port), "uri_folder")

    def unbind_outputs(self, name: str, output: str = "") -> list[Patch]:
        """Disconnect the outputs of a step from those of the pipeline, or from one of them."""
        patches, removed = list[Patch](), list[str]()
        for port, bound, _ in bound_outputs(self.text, self.jobs[name]):
            if output not in ("", bound):
                continue
            job = self.job(name)
            value = self.text.value(job, "outputs", port)
            if isinstance(value, yaml.MappingNode) and len(value.value) > 1:
                patches += self.text.without(value, names=["path"])
            elif self.is_inline(name):
                patches += self.text.put(job, ("outputs", port), {"type": self.output_type(name, port)})
            else:
                removed.append(port)
        return [*patches, *self.text.without(self.jobs[name], "outputs", names=removed)]

    def without_other_uses(self, patches: list[Patch], kind: str, name: str) -> list[Patch]:
        """Return the patches that delete a step or an input. Raise InputError if text that stays names it."""
        for scalar in self.text.scalars(self.text.root):
            start = scalar.start_mark.index
            if re.search(rf"parent\.{kind}\.{re.escape(name)}\b", scalar.value) and not any(
                patch.start <= start < patch.end for patch in patches
            ):
                found = f"{scalar.value} names {name}, which would be deleted"
                raise refused(f"line {scalar.start_mark.line + 1}", found, "", "edit it first")
        return patches

    def is_inline(self, name: str) -> bool:
        """Return whether a step has no component, so that its inputs and outputs are its command's."""
        keys = [self.text.value(self.jobs[name], key) for key in ("component", "trial")]
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


def _is_of(value: Value | None, node: str) -> bool:
    return isinstance(value, FromOutput) and value.node == node


def _elsewhere(path: str) -> InputError:
    return refused(f"step {path}", "its steps are in the YAML file of its component", "", "open that file")


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
