"""Write the tree of a pipeline's file as a Python file with azure-ai-ml's DSL."""

import ast
import contextlib
import json
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from allranks.plan.assets import asset_id

LOOPS = {"do_while": "do_while", "if_else": "condition", "parallel_for": "parallel_for"}
"""The functions that create nodes without a component."""

_BINDING = re.compile(r"\$\{\{\s*parent\.(inputs|outputs|jobs)\.([\w.]+)\s*\}\}")
_LINE = 110
_SPACES = "Choice Randint Uniform QUniform LogUniform QLogUniform Normal QNormal LogNormal QLogNormal"
_SEARCHES = (
    "BanditPolicy MedianStoppingPolicy TruncationSelectionPolicy BayesianSamplingAlgorithm GridSamplingAlgorithm "
    "RandomSamplingAlgorithm"
)
_SDK = "Input MLClient MpiDistribution Output PyTorchDistribution RayDistribution TensorFlowDistribution load_component"
_IMPORTS = {
    "azure.ai.ml": _SDK.split(),
    "azure.ai.ml.dsl": ["pipeline"],
    "azure.ai.ml.sweep": [*_SPACES.split(), *_SEARCHES.split()],
    "azure.ai.ml.entities": ["CommandJobLimits"],
    "azure.identity": ["DefaultAzureCredential"],
    "mldesigner.dsl": [*LOOPS.values()],
}
_CLASSES = {name.lower(): name for names in _IMPORTS.values() for name in names}
"""The classes by their names in lower case, which end with the types that files name."""
_IN_FUNCTION = {*keyword.kwlist, *_CLASSES.values()}
_TAKEN = {"HERE", "Path", "job", "ml_client", "pulled", *_IN_FUNCTION}
_NOT_SET = ("type", "component", "trial", "inputs", "outputs", "search_space", "objective", "sampling_algorithm")
"""Keys of nodes that are arguments of the calls that create them, as all keys of `LOOPS` are."""


class NotExpressible(Exception):
    """The graph has something that the DSL does not have."""


def text(tree: Mapping[str, Any], specs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of a Python file for the tree of a pipeline's file.

    specs: the specs of the components by the references of the nodes

    Raise NotExpressible.
    """
    return _Writer(tree, specs).text()


def with_types(tree: Mapping[str, Any], specs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the tree with numbers and booleans as inputs, of which the service keeps the texts, unless a component
    declares a string."""
    types = _types(tree, specs)
    inputs = tree.get("inputs", {}).items()
    typed = {name: value if types.get(name) == "string" else _typed(value) for name, value in inputs}
    return {**tree, **({"inputs": typed} if typed else {})}


def input_of(value: Any) -> str:
    """Return the input of the pipeline that a node's input is bound to; "" for any other value."""
    match = _bound(value)
    return match[2] if match and match[1] == "inputs" else ""


class _Writer:
    def __init__(self, tree: Mapping[str, Any], specs: Mapping[str, Mapping[str, Any]]) -> None:
        self.tree, self.specs, self.jobs = tree, specs, tree["jobs"]
        self.types = _types(tree, specs)
        self.inputs = {
            **tree.get("inputs", {}),
            **{name: None for name in self.types if name not in tree.get("inputs", {})},
        }
        if strange := [name for name in self.inputs if name in _IN_FUNCTION or "." in name]:
            raise NotExpressible(f"an input of the pipeline is named {strange[0]}")
        taken = {*_TAKEN, *self.inputs}
        self.nodes = {name: f"{name}_step" if name in taken else name for name in self.jobs}
        self.components: dict[str, str] = {}
        for name, node in self.jobs.items():
            if (reference := _reference(node)) not in self.components and node["type"] not in LOOPS:
                path = Path(reference)
                own = path.parent.name if path.name == "component.yaml" else path.stem
                own = (re.sub(r"\W", "_", own) if reference.startswith("./") else name).upper()
                while own in {*taken, *self.components.values()}:
                    own = f"{own}_STEP"
                self.components[reference] = own

    def text(self) -> str:
        keys = ("display_name", "description", "experiment_name", "tags")
        about = {key: _literal(self.tree[key]) for key in keys if key in self.tree}
        loads = [f"{name} = {load_code(reference)}" for reference, name in self.components.items()]
        name = re.sub(r"\W+", "_", str(self.tree.get("display_name", "")).lower()).strip("_")
        free = name.isidentifier() and name not in {*_TAKEN, *self.inputs, *self.nodes.values()}
        name = name if free else "pulled"
        client = ["ml_client = MLClient.from_config(DefaultAzureCredential())"] if "ml_client." in str(loads) else []
        ordered = self.ordered()
        results = [line for step in ordered for line in self.results(step)]
        body = [line for step in ordered for line in self.node(step)]
        body += _lines("return {", results, "}") if results else []
        data = {name: _called("Input", value) for name, value in self.inputs.items() if isinstance(value, dict)}
        lines = [
            *("HERE = Path(__file__).parent", *client, "", *loads, "", "", *_call("@pipeline(", about)),
            *_lines(f"def {name}(", self.parameters(), "):"),
            *(f"    {line}" for line in body),
            *("", "", *_call(f"job = {name}(", data), *self.settings()),
        ]
        code = "\n".join(lines)
        used = {
            module: [each for each in names if f"{each}(" in code or f"{each}." in code]
            for module, names in _IMPORTS.items()
        }
        imports = "\n".join(f"from {module} import {', '.join(names)}" for module, names in used.items() if names)
        title = json.dumps(self.tree.get("display_name") or "A pipeline")[1:-1].replace('\\"', "'")
        head = f'"""{title}, as Azure ML has it: allranks run pipeline.py"""\n\nfrom pathlib import Path\n\n'
        return f"{head}{imports}\n\n{code}\n"

    def ordered(self) -> list[str]:
        """Return the names of the nodes, each after those that it refers to."""
        found: dict[str, None] = {}

        def visit(name: str, path: tuple[str, ...]) -> None:
            if name in path:
                raise NotExpressible(f"step {name} needs itself")
            for other in re.findall(r"parent\.jobs\.(\w+)", str(self.jobs[name])):
                if other not in (*found, name):
                    visit(other, (*path, name))
            found[name] = None

        for name in self.jobs:
            visit(name, ())
        return list(found)

    def node(self, name: str) -> Iterator[str]:
        """Yield the lines that create a node."""
        node, variable = self.jobs[name], self.nodes[name]
        if node["type"] in LOOPS:
            yield from _call(f"{variable} = {LOOPS[node['type']]}(", self.loop(node))
            return
        if not _reference(node):
            raise NotExpressible(f"step {name} of type {node['type']} has no component")
        ports = _ports(node, self.specs)
        arguments = {
            port: self.value(value, ports.get(port, "string")) for port, value in node.get("inputs", {}).items()
        }
        arguments |= {
            port: _called(_CLASSES[space["type"]], space, "type")
            for port, space in node.get("search_space", {}).items()
        }
        yield from _call(f"{variable} = {self.components[_reference(node)]}(", arguments)
        if node["type"] == "sweep":
            search = {key: _literal(value) for key, value in node["objective"].items()}
            search["sampling_algorithm"] = self.setting("samplingalgorithm", node.get("sampling_algorithm", "random"))
            yield from _call(f"{variable} = {variable}.sweep(", search)
        if variable != name:
            yield f"{variable}.name = {_literal(name)}"
        for key, value in node.items():
            if key == "limits" and node["type"] == "sweep":
                yield from _call(f"{variable}.set_limits(", {each: self.value(most) for each, most in value.items()})
            elif key not in _NOT_SET:
                yield f"{variable}.{key} = {self.setting(key, value)}"
        for port, value in node.get("inputs", {}).items():
            if isinstance(value, dict) and _bound(value):
                yield f"{variable}.inputs.{port}.mode = {_literal(value['mode'])}"
        for port, output in node.get("outputs", {}).items():
            if isinstance(output, dict):
                is_bound = (
                    f".mode = {_literal(output.get('mode'))}" if _bound(output) else f" = {_called('Output', output)}"
                )
                yield f"{variable}.outputs.{port}{is_bound}"

    def setting(self, key: str, value: Any) -> str:
        """Return the value of a key of a node as an expression."""
        ending = {"early_termination": "policy", "limits": "commandjoblimits"}.get(key, key)
        kind = str(value.get("type") or "").replace("_", "") if isinstance(value, dict) else ""
        if made := _CLASSES.get(kind + ending):
            return f"{made}({', '.join(f'{each}={self.value(v)}' for each, v in value.items() if each != 'type')})"
        if key == "compute" and isinstance(value, str):
            value = value.removeprefix("azureml:")
        return self.value(_typed(value) if key == "mini_batch_size" else value)

    def loop(self, node: Mapping[str, Any]) -> dict[str, str]:
        """Return the arguments of a call that creates a loop or a condition."""
        body = self.value(node.get("body"))
        given = {
            key: self.value(value) for key, value in node.items() if key not in ("type", "mapping", "limits", "items")
        }
        if "body" in node and "condition" in node and not _bound(node["condition"]):
            given["condition"] = f"{body}.outputs.{node['condition']}"
        if "items" in node:
            given["items"] = (
                _literal(json.loads(node["items"])) if not _bound(node["items"]) else self.value(node["items"])
            )
        if "mapping" in node:
            pairs = [
                f"{self.value(source) if _bound(source) else f'{body}.outputs.{source}'}: {body}.inputs.{target}"
                for source, targets in node["mapping"].items()
                for target in ([targets] if isinstance(targets, str) else targets)
            ]
            given["mapping"] = f"{{{', '.join(pairs)}}}"
        if "max_iteration_count" in (limits := node.get("limits", {})):
            given["max_iteration_count"] = self.value(limits["max_iteration_count"])
        return given

    def value(self, value: Any, kind: str = "string") -> str:
        """Return a value as an expression, with a variable for each binding. kind: the type of the port"""
        if match := _bound(value):
            name, _, port = match[2].partition(".")
            return match[2] if match[1] == "inputs" else f"{self.nodes[name]}.{port}".rstrip(".")
        if isinstance(value, dict):
            if value.keys() & {"path"} and "type" in value:
                return _called("Input", value)
            return f"{{{', '.join(f'{_literal(key)}: {self.value(each)}' for key, each in value.items())}}}"
        if isinstance(value, list):
            return f"[{', '.join(map(self.value, value))}]"
        return _literal(value if kind == "string" else _typed(value))

    def parameters(self) -> Iterator[str]:
        """Yield the parameters: first the data, then those with a value, then optional inputs without one."""
        yield from (
            f"{name}: Input(type={_literal(value['type'])})"
            for name, value in self.inputs.items()
            if isinstance(value, dict)
        )
        for name, value in self.inputs.items():
            if value is not None and not isinstance(value, dict):
                yield f"{name}={_literal(value)}"
        for name, value in self.inputs.items():
            if value is None:
                yield f"{name}: Input(type={_literal(self.types[name])}, optional=True) = None"

    def results(self, name: str) -> Iterator[str]:
        for port, value in self.jobs[name].get("outputs", {}).items():
            if (match := _bound(value)) and match[1] == "outputs":
                yield f"{_literal(match[2])}: {self.nodes[name]}.outputs.{port}"

    def settings(self) -> Iterator[str]:
        """Yield the lines that set what a call of the pipeline cannot."""
        for key, value in self.tree.get("settings", {}).items():
            yield f"job.settings.{key} = {self.setting('compute', value)}"
        for key in ("compute", "identity"):
            if key in self.tree:
                yield f"job.{key} = {self.setting(key, self.tree[key])}"
        for name, output in self.tree.get("outputs", {}).items():
            for key, value in output.items():
                if key != "type" and (key, value) != ("mode", "rw_mount"):
                    yield f"job.outputs.{name}.{key} = {_literal(value)}"


def _ports(node: Mapping[str, Any], specs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the types of the inputs that a node's component declares."""
    ports = specs.get(_reference(node), {}).get("inputs", {})
    return {name: str(port.get("type") or "string") for name, port in ports.items()}


def _types(tree: Mapping[str, Any], specs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the types of the pipeline's inputs that steps are bound to, by what their components declare."""
    types: dict[str, str] = {}
    for node in tree["jobs"].values():
        for port, value in node.get("inputs", {}).items():
            if name := input_of(value):
                types.setdefault(name, _ports(node, specs).get(port, "string"))
    return types


def _bound(value: Any) -> re.Match[str] | None:
    """Return the parts of a binding: its kind, and the path; None for any other value."""
    path = value.get("path") if isinstance(value, dict) else value
    return _BINDING.fullmatch(path) if isinstance(path, str) else None


def _typed(value: Any) -> Any:
    """Return the number or the boolean that a text is, if the SDK sends the same text for it; else the value."""
    with contextlib.suppress(ValueError, SyntaxError):
        found = ast.literal_eval(value)
        if isinstance(found, (bool, int, float)) and str(found) == value:
            return found
    return value


def _reference(node: Mapping[str, Any]) -> str:
    reference = node.get("trial" if node["type"] == "sweep" else "component")
    return reference if isinstance(reference, str) else ""


def load_code(reference: str) -> str:
    """Return the call that loads a component, given the reference of a node. It may use `HERE` and `ml_client`."""
    if not reference.startswith("azureml:"):
        return f"load_component(HERE / {_literal(reference.removeprefix('./'))})"
    asset = asset_id.parse(reference, asset_id.COMPONENT)
    version = f"version={_literal(asset.version)}" if asset.version else f"label={_literal(asset.label or 'latest')}"
    registry = f"MLClient(DefaultAzureCredential(), registry_name={_literal(asset.registry)})"
    return f"{registry if asset.registry else 'ml_client'}.components.get({_literal(asset.name)}, {version})"


def _call(beginning: str, arguments: Mapping[str, str]) -> Iterator[str]:
    return _lines(beginning, (f"{name}={value}" for name, value in arguments.items()), ")")


def _lines(beginning: str, items: Iterable[str], end: str) -> Iterator[str]:
    """Yield one line with the items, or a line for each of them if it would be too long."""
    listed = list(items)
    line = f"{beginning}{', '.join(listed)}{end}"
    yield from [line] if len(line) <= _LINE else [beginning, *(f"    {each}," for each in listed), end]


def _called(name: str, given: Mapping[str, Any], *but: str) -> str:
    return f"{name}({', '.join(f'{key}={_literal(value)}' for key, value in given.items() if key not in but)})"


def _literal(value: Any) -> str:
    """Return a value as Python writes it, with double quotes."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(key)}: {_literal(each)}' for key, each in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
