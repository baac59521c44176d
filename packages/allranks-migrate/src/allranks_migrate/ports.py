"""Read the arguments of v1 jobs, and the data that they read and write, as inputs and outputs."""

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from allranks_migrate import constructs
from allranks_migrate.context import UNKNOWN, Context, as_list, to_name, unique
from allranks_migrate.jobs import Input, Output
from allranks_migrate.operations import Made, Unknown

VARIABLE = re.compile(r"\$\{?\w+")
_MODES = {"as_mount": "", "as_download": "download", "as_upload": "upload", "as_hdfs": "", "as_direct": "direct"}
_METHODS = (
    *_MODES, "as_named_input", "as_input", "as_dataset", "read_delimited_files", "register_on_complete",
    "parse_delimited_files", "parse_parquet_files",
)  # fmt: skip
READS = ("as_input", "read_delimited_files")
"""Methods of an output that a step reads."""

_INPUT, _OUTPUT = "${{{{inputs.{}}}}}", "${{{{outputs.{}}}}}"


def type_of(value: Any) -> str:
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "string")


def _reference(name: str, value: Any) -> str:
    """Return an input as a word of a command, quoted if necessary."""
    return _INPUT.format(name) if shlex.quote(str(value)) == str(value) else f"'{_INPUT.format(name)}'"


def with_literals(command: str, inputs: Mapping[str, Input]) -> str:
    """Return a command in which the literals of v1 replace the inputs that were made from them."""
    for name, port in inputs.items():
        if port.default is not None:
            command = command.replace(_reference(name, port.default), shlex.quote(str(port.default)))
    return command


class Ports:
    """The inputs and outputs of a job, collected from its arguments and from its lists of inputs and outputs."""

    def __init__(self, made: Made, context: Context, job: str) -> None:
        self.made, self.context, self.job = made, context, job
        self.inputs: dict[str, Input] = {}
        self.outputs: dict[str, Output] = {}
        self.of_object: dict[int, str] = {}

    def arguments(self, words: Iterable[Any]) -> str:
        """Return the arguments of a script. A literal after a flag becomes an input of the flag's name."""
        written: list[str] = []
        flag = ""
        for word in words:
            is_flag = isinstance(word, str) and word.startswith("-") and not re.fullmatch(r"-[\d.]+", word)
            is_text = isinstance(word, str) and word and not is_flag and not VARIABLE.search(word)
            if flag and (is_text or isinstance(word, (int, float))) and "'" not in str(word):
                name = self.name(flag)
                self.inputs[name] = Input(type_of(word), default=word)
                written.append(_reference(name, word))
            else:
                written.append(self.word(word, flag))
            flag = word if is_flag else ""
        return " ".join(written)

    def command(self, words: Iterable[Any]) -> str:
        """Return a command, whose texts are not quoted."""
        return " ".join(str(word) if isinstance(word, (str, int, float)) else self.word(word) for word in words)

    def name(self, text: str) -> str:
        """Return a name that no port has."""
        return unique(to_name(text, "value"), self.inputs.keys() | self.outputs.keys())

    def word(self, word: Any, flag: str = "") -> str:
        """Return an argument as a word of the command."""
        if isinstance(word, Unknown):
            name = self.name(flag or word.text)
            self.context.report(self.made.line, f"argument {word.text}", UNKNOWN, f"set the input {name}")
            return self.parameter(name, "string")
        if isinstance(word, tuple) and word:  # a parameter, with a DataPathComputeBinding
            return self.word(word[0], flag)
        if isinstance(word, Made):
            return self.port(word, flag)
        return str(word) if VARIABLE.search(str(word)) else shlex.quote(str(word))

    def parameter(self, name: str, kind: str, default: Any = None, mode: str = "") -> str:
        """Add an input that is bound to one of the pipeline."""
        parameter = f"{name}_value" if name in self.context.jobs.values() else name  # a step is a variable
        self.context.parameters.setdefault(parameter, default)
        self.inputs[name] = Input(kind, mode, parameter=parameter)
        return _INPUT.format(name)

    def add_listed(self) -> None:
        """Add the ports in the lists of inputs and outputs that are not among the arguments."""
        for key in ("inputs", "side_inputs", "outputs", "output"):
            for value in as_list(self.made.get(key)):
                if isinstance(value, Made):
                    self.port(value, "")

    def port(self, value: Made, flag: str) -> str:
        """Return the reference to the port of an object of v1."""
        if value.kind == "PipelineParameter":
            default = value.get("default_value", 1)
            if isinstance(default, Made):
                return self.port(default, flag)
            name = to_name(str(value.get("name", 0)), "value")
            return self.parameter(name, type_of(default), None if isinstance(default, Unknown) else default)
        root, name, mode = input_data(value)
        fixed = value.get("path_on_compute", 0 if value.kind in _MODES else None)
        if isinstance(fixed, str):
            fix = "take the path from the argument"
            self.context.report(self.made.line, f"path_on_compute {fixed}", "azure-ai-ml chooses the path", fix)
        key = id(root)
        source = self.context.written.get(key)
        if root.kind in constructs.PORTS and (source is None or source[0] == self.job) and value.kind not in READS:
            return self.output(root, mode)
        if key not in self.of_object:
            variable = self.context.script.variables.get(key, "data")
            name = self.name(name or flag or (source[1] if source else variable))
            kind, path = ("uri_folder", "") if source else _data(root, self.context)
            self.of_object[key] = _INPUT.format(name)
            if source or path:
                self.inputs[name] = Input(kind, mode, path=path, source=source)
            else:
                what = f"data {self.context.script.variables.get(key, root.kind)}"
                self.context.report(root.line, what, "its place is not in this file", f"set the input {name}")
                self.parameter(name, kind, mode=mode)
        return self.of_object[key]

    def output(self, root: Made, mode: str) -> str:
        name = output_name(root, self.context)
        if name not in self.outputs:
            destination = root.get("destination")
            path = ""
            if isinstance(destination, tuple) and len(destination) == 2:
                path = _datastore_path(*destination).replace("{output-name}", name).replace("{run-id}", "${{name}}")
            assets = [call.get("name", 0) for call in root.calls if call.kind == "register_on_complete"]
            if root.get("source") is not None:
                fix = f"write to the path of the output {name}, which is an argument"
                self.context.report(root.line, f"source of {root.kind}", "an output has one place", fix)
            self.outputs[name] = Output(mode, path, next((each for each in assets if isinstance(each, str)), ""))
            self.context.written[id(root)] = (self.job, name)
        return _OUTPUT.format(name)


def output_name(root: Made, context: Context) -> str:
    """Return the name of the output for an object of v1."""
    given = root.get("name", 0)
    return to_name(given if isinstance(given, str) else context.script.variables.get(id(root), "output"), "output")


def input_data(value: Made) -> tuple[Made, str, str]:
    """Return the data of an object, with the name and the mode that the job uses."""
    name = mode = ""
    while value.receiver is not None and value.kind in _METHODS:
        given = value.get("name", 0) if value.kind in ("as_named_input", "as_input") else None
        name = given if isinstance(given, str) else name
        mode = mode or _MODES.get(value.kind, "")
        value = value.receiver
    if value.kind in ("DatasetConsumptionConfig", "DataReference"):
        given = value.get("mode", 2 if value.kind == "DatasetConsumptionConfig" else 3)
        mode = given if given in ("download", "direct") else mode
    if value.kind == "DatasetConsumptionConfig":
        inner = value.get("dataset", 1)
        if isinstance(inner, Made) and inner.kind == "PipelineParameter":
            inner = inner.get("default_value", 1)
        return (inner if isinstance(inner, Made) else value), str(value.get("name", 0)), mode
    return value, name, mode


def _data(root: Made, context: Context) -> tuple[str, str]:
    """Return the type and the path of data; "" if it is not in the file."""
    method = root.kind.rpartition(".")[2]
    if "Tabular" in root.kind:
        fix = "write an MLTable file, or read the file in the script"
        context.report(root.line, root.kind, "azure-ai-ml has tables as MLTable", fix)
    path: Any = ""
    if root.kind == "[]" or method == "get_by_name":
        name, version = root.get("name", 0 if root.kind == "[]" else 1), root.get("version", 2)
        tag = f":{version}" if isinstance(version, (int, str)) and version != "latest" else "@latest"
        path = f"azureml:{name}{tag}" if isinstance(name, str) else ""
    elif root.kind == "register" and root.receiver is not None:
        return _data(root.receiver, context)
    elif method == "upload_directory":
        path = root.get("src_dir", 0)
        if not (isinstance(path, (str, Path)) and (context.base / path).is_dir()):
            fix = "upload the folder there, or name it in the pipeline"
            context.report(root.line, root.kind, "the folder that it uploads does not exist yet", fix)
            path = root.get("target", 1)
    elif root.kind in ("DataReference", "DataPath"):
        path = (root.get("datastore", 0), root.get("path_on_datastore", 2 if root.kind == "DataReference" else 1) or "")
    elif method == "path":
        path = (root.receiver, root.get("path", 0) or "")
    elif method.startswith("from_"):
        paths = root.get("path", 0)
        path = paths[0] if isinstance(paths, list) and paths else paths
    if isinstance(path, tuple) and len(path) == 2:
        path = _datastore_path(*path)
    text = str(path) if isinstance(path, (str, Path)) else ""
    is_file = method.startswith("from_") and Path(text).suffix and "*" not in text
    return "uri_file" if is_file else "uri_folder", text


def _datastore_path(datastore: Any, path: Any) -> str:
    name: Any = None
    if isinstance(datastore, Unknown) and "get_default_datastore" not in datastore.text:
        return ""
    if isinstance(datastore, Made) and "get_default_datastore" not in datastore.kind:
        name = datastore.get("datastore_name", 1) or (datastore.values[-1] if datastore.values else None)
    store = name if isinstance(name, str) else "workspaceblobstore"
    return f"azureml://datastores/{store}/paths/{path.strip('/')}" if isinstance(path, str) else ""
