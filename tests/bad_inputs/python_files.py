"""Python files and notebooks that cannot be read, and values for their inputs."""

from __future__ import annotations

import json

from bad_inputs.row import Row

DSL = """\
from azure.ai.ml import Input, command, dsl

train = command(
    name="train",
    command="echo ${{inputs.data}} ${{inputs.lr}} ${{inputs.size}}",
    environment="azureml:cpu:1",
    inputs={
        "data": Input(type="uri_file"),
        "lr": Input(type="number", min=0, max=1),
        "size": Input(type="string", enum=["small", "large"]),
    },
)

"""
PIPELINE = """\
@dsl.pipeline()
def one(data: Input(type="uri_file"), lr: float = 0.1, size: str = "small"):
    step = train(data=data, lr=lr, size=size)
"""
RIGHT = {"right.py": DSL + PIPELINE, "data.csv": "1,2\n"}


def _of(text: str | bytes, *said: str) -> Row:
    return Row("run file.py", said, files={"file.py": text})


def _set(values: str, *said: str) -> Row:
    words = "".join(f" --set {value}" for value in values.split())
    return Row(f"run right.py{words}", said, files=RIGHT)


def _notebook(*cells: str, **keys: object) -> str:
    code = [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []} for cell in cells]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5} | keys)


def _cells(text: str | bytes, *said: str) -> Row:
    return Row("run file.ipynb", said, files={"file.ipynb": text})


ROWS = {
    "a file that is not there": Row(
        "run rihgt.py", ("rihgt.py", "there is no such file", "did you mean right.py?"), files=RIGHT
    ),
    "a folder": Row(
        "run code", ("code", "it is a folder", "name one of its files: main.py"), files={"code/main.py": ""}
    ),
    "another kind of file": Row(
        "run notes.txt", ("notes.txt", "'.txt' is not known", ".py", ".yml"), files={"notes.txt": "a"}
    ),
    "an error in a module that the file imports": Row(
        "run file.py",
        ("helper.py:2", "ZeroDivisionError", "correct that file, which file.py:3 imports"),
        files={"file.py": "import sys\n\nimport helper\n", "helper.py": "x = 1\ny = x / 0\n"},
    ),
    "no Python": _of("x = (\n", "file.py:1", "it is not Python: '(' was never closed"),
    "no UTF-8 in Python": _of(b"x = '\xff'\n", "file.py", "it is not Python", "utf-8"),
    "null bytes": _of(b"x = 1\x00\n", "file.py", "it is not Python", "null bytes"),
    "a binary named as Python": _of(b"\x7fELF\x02\x01\x01\x00" * 9, "file.py", "it is not Python"),
    "wrong indentation in Python": _of(
        "def f():\nreturn 1\n", "file.py:2", "it is not Python: expected an indented block"
    ),
    "a module that is not there": _of(
        "import numpie\n", "file.py:1", "no module numpie", "put numpie.py beside the file"
    ),
    "a name that a module lacks": _of("from azure.ai.ml import dls\n", "file.py:1", "ImportError", "dls"),
    "an exception": _of("x = {}\nx['lr']\n", "file.py:2", "KeyError: 'lr'"),
    "an exception in the pipeline": _of(
        DSL + "@dsl.pipeline()\ndef one():\n    raise ValueError('no learning rate')\n",
        "file.py:16",
        "ValueError: no learning rate",
    ),
    "an exit": _of("raise SystemExit(0)\n", "file.py:1", "it ends Python", "a file that only defines pipelines"),
    "an infinite recursion": _of(
        "def f():\n    f()\nf()\n", "file.py:", "RecursionError: maximum recursion depth exceeded"
    ),
    "a question": _of("name = input()\n", "file.py:1", "EOFError"),
    "an exception with a long text": _of("raise ValueError('x' * 100_000)\n", "file.py:1", "ValueError: xxx", "..."),
    "an exception with a colour": _of("raise ValueError('\\x1b[31mred')\n", "file.py:1", "ValueError: red"),
    "no memory": _of("raise MemoryError\n", "file.py:1", "MemoryError"),
    "an empty file in Python": _of("", "file.py", "it has no pipeline", "@dsl.pipeline"),
    "no pipeline": _of("x = 1\n", "file.py", "it has no pipeline", "@dsl.pipeline"),
    "two pipelines": _of(
        DSL + PIPELINE + PIPELINE.replace("one", "two"),
        "it has 2 pipelines: one, two",
        "name one: file.py:one or file.py:two",
    ),
    "another function": Row(
        "run file.py:tow",
        ("there is no tow", "did you mean file.py:two?"),
        files={"file.py": DSL + PIPELINE.replace("one", "two")},
    ),
    "a function of no Python file": Row(
        "run job.yml:f",
        ("job.yml:f", "job.yml is not a Python file", "the file alone"),
        files={"job.yml": "command: a"},
    ),
    "no function": Row("run right.py:", ("right.py:", "there is no name after the colon", "FILE:NAME"), files=RIGHT),
    "a component called wrongly": _of(DSL + "@dsl.pipeline()\ndef one():\n    train(dta='x')\n", "file.py:16", "dta"),
    "a command of the SDK with a wrong key": _of(
        "from azure.ai.ml import command\njob = command(comand='echo')\n", "step file, key command", "it is empty"
    ),
    "no command in the SDK": _of(
        "from azure.ai.ml import command\njob = command(environment='azureml:cpu:1')\n", "command"
    ),
    "an import of itself": _of("import file\nfile.train\n", "file.py:2", "AttributeError"),
    "a path with a null byte": Row("run right.py --set data=a\\0b", ("data",), files=RIGHT),
    "an input without a value": Row("run right.py", ("data", "no value", "--set data="), files=RIGHT),
    "a type": _set("data=data.csv lr=fast", "input lr", "'fast'", "a number"),
    "a number that is none": _set("data=data.csv lr=nan", "input lr", "'nan'", "a number"),
    "a number without end": _set("data=data.csv lr=inf", "input lr", "'inf'", "a number"),
    "a range": _set("data=data.csv lr=2", "step step, key inputs.lr", "is 2", "at most 1", "--set lr=VALUE"),
    "a range below": _set("data=data.csv lr=-1", "key inputs.lr", "is -1", "at least 0"),
    "a choice": _set("data=data.csv size=tiny", "key inputs.size", "tiny", "small", "large"),
    "a path": _set("data=date.csv", "date.csv does not exist"),
    "an unknown input": _set("data=data.csv lrr=1", "input lrr", "no input lrr", "did you mean lr?"),
    "no value": _set("data=data.csv lr", "--set lr", "NAME=VALUE", "for example: --set epochs=5"),
    "no name": _set("data=data.csv =1", "--set =1", "NAME=VALUE"),
    "one name twice": _set("data=data.csv lr=1 lr=0", "--set lr=0", "given twice", "remove one of them"),
    "several at once": _set(
        "data=data.csv lr=2 size=tiny", "key inputs.lr", "key inputs.size", "2 problems; nothing was started."
    ),
    "a notebook that is not JSON": _cells("hello", "file.ipynb:1", "it is not JSON", "save it again with Jupyter"),
    "an empty notebook": _cells("", "file.ipynb:1", "it is not JSON"),
    "a notebook in another encoding": _cells("{}".encode("utf-16"), "file.ipynb", "it is not UTF-8"),
    "a notebook of 10,000 brackets": _cells("[" * 10_000, "file.ipynb", "it is not JSON"),
    "JSON that is no notebook": _cells('{"a": 1}', "file.ipynb", "it has no cells", "a notebook of format 4"),
    "a list that is no notebook": _cells("[1]", "file.ipynb", "it has no cells"),
    "metadata that is a list": _cells(_notebook("x = 1", metadata=[1]), "file.ipynb"),
    "cells in R": _cells(
        _notebook("x <- 1", metadata={"kernelspec": {"language": "R"}}), "file.ipynb", "its cells are in R", "Python"
    ),
    "a cell that raises": _cells(_notebook("x = 1", "x['a']"), "file.ipynb, cell 2, line 1", "TypeError"),
    "a cell that is no Python": _cells(_notebook("x = 1", "y = ("), "file.ipynb, cell 2, line 1", "it is not Python"),
    "a notebook without a pipeline": _cells(_notebook("x = 1"), "file.ipynb", "it has no pipeline"),
}
