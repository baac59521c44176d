"""Python files and notebooks that cannot be read, and values for their inputs."""

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
    "an error in a module that the file imports": Row(
        "run file.py",
        ("helper.py:2", "ZeroDivisionError", "correct that file, which file.py:3 imports"),
        files={"file.py": "import sys\n\nimport helper\n", "helper.py": "x = 1\ny = x / 0\n"},
    ),
    "no UTF-8 in Python": _of(b"x = '\xff'\n", "file.py", "it is not Python", "utf-8"),
    "a name that a module lacks": _of("from azure.ai.ml import dls\n", "file.py:1", "ImportError", "dls"),
    "an infinite recursion": _of(
        "def f():\n    f()\nf()\n", "file.py:", "RecursionError: maximum recursion depth exceeded"
    ),
    "a question": _of("name = input()\n", "file.py:1", "EOFError"),
    "an exception with a long text": _of("raise ValueError('x' * 100_000)\n", "file.py:1", "ValueError: xxx", "..."),
    "an exception with a colour": _of("raise ValueError('\\x1b[31mred')\n", "file.py:1", "ValueError: red"),
    "two pipelines": _of(
        DSL + PIPELINE + PIPELINE.replace("one", "two"),
        "it has 2 pipelines: one, two",
        "name one: file.py:one or file.py:two",
    ),
    "a command of the SDK with a wrong key": _of(
        "from azure.ai.ml import command\njob = command(comand='echo')\n", "step file, key command", "it is empty"
    ),
    "a path with a null byte": Row("run right.py --set data=a\\0b", ("data",), files=RIGHT),
    "an input without a value": Row("run right.py", ("data", "no value", "--set data="), files=RIGHT),
    "a range": _set("data=data.csv lr=2", "step step, key inputs.lr", "is 2", "at most 1", "--set lr=VALUE"),
    "no value": _set("data=data.csv lr", "--set lr", "NAME=VALUE", "for example: --set epochs=5"),
    "no name": _set("data=data.csv =1", "--set =1", "NAME=VALUE"),
    "one name twice": _set("data=data.csv lr=1 lr=0", "--set lr=0", "given twice", "remove one of them"),
    "several at once": _set(
        "data=data.csv lr=2 size=tiny", "key inputs.lr", "key inputs.size", "2 problems; nothing was started."
    ),
    "a notebook of 10,000 brackets": _cells("[" * 10_000, "file.ipynb", "it is not JSON"),
    "a notebook without a pipeline": _cells(_notebook("x = 1"), "file.ipynb", "it has no pipeline"),
}
