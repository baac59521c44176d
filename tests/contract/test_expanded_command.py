"""Simple commands are expanded as bash expands them."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allranks.contract.expanded_command import Expanded, expand

BASH = shutil.which("bash") or "/bin/bash"
ENVIRONMENT = {"A": "one", "B": "two  words\n", "C": "", "D_1": " x=1 ", "E": "a*b", "F": "ü$A\"'", "G": "back\\slash"}

PIECES = st.sampled_from(
    [
        "a", "--x", "=", " ", "  ", "\t", "\\\n", "\n", "'", '"', "\\", "$", "$A", "${A}", "$B", '"$B"', "${B}",
        "$C", "$D_1", "$E", '"$E"', "$F", "$G", '"${F}"', "$UNSET", "${A:-x}", "$(true)", "`", "#", "~", ":~", "=~",
        "{", "}", "{a,b}", "*", "?", "[", "]", "|", "&", ";", "<", ">", "(", ")", "!", "N=1", "M=$A", "A=2", "$_",
        "$1", "$$", "'q u'", '"d q"', '"\\$A"', '"\\x"', "''", '""', "\\ ", "ü", "-", ".", "/", "%", "@", ",", "^",
        "+=", "$'a\\n'", '$"a"', "1", "\r", "\f",
    ]
)  # fmt: skip


def expanded(text: str, environment: dict[str, str] = ENVIRONMENT) -> Expanded | None:
    return expand(text, environment)


def by_bash(arguments: str) -> list[str]:
    """Return the words that bash passes to a program with these arguments."""
    output = subprocess.run(
        [BASH, "-c", f"printf '%s\\0' . {arguments}"], env=ENVIRONMENT, capture_output=True, check=True
    ).stdout
    return output.decode().split("\0")[1:-1]


@given(st.lists(PIECES, max_size=8).map("".join))
def test_words_are_those_of_bash(arguments: str) -> None:
    found = expanded(f"program {arguments}")
    if found is not None:
        assert list(found.words[1:]) == by_bash(arguments)


@given(
    st.lists(st.sampled_from(["N=", "M=", "$A", "$B", '"$B"', "'x y'", "a", " ", "~", ":", "$E", "\\ "]), max_size=8)
)
def test_assignments_are_those_of_bash(pieces: list[str]) -> None:
    text = "".join(pieces)
    found = expanded(f"{text} /usr/bin/env -0")
    if found is None or found.words[0] != "/usr/bin/env":
        return
    output = subprocess.run([BASH, "-c", f"{text} /usr/bin/env -0"], env=ENVIRONMENT, capture_output=True, check=True)
    values = dict(line.partition("=")[::2] for line in output.stdout.decode().split("\0") if line)
    if len(found.words) == 2:
        assert {name: value for name, value in values.items() if name in found.assignments} == found.assignments


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("python train.py --a b \\\n  --c d\n", ["python", "train.py", "--a", "b", "--c", "d"]),
        ("\npython train.py\n\n", ["python", "train.py"]),
        ("python train.py --name \"$B\" '$A' $A", ["python", "train.py", "--name", "two  words\n", "$A", "one"]),
        ("python train.py $C $UNSET ''", ["python", "train.py", ""]),
        ("python train.py --price '5$' \"6 $\" \\$A", ["python", "train.py", "--price", "5$", "6 $", "$A"]),
    ],
)
def test_commands_of_components_are_read(text: str, words: list[str]) -> None:
    found = expanded(text)
    assert found is not None
    assert list(found.words) == words


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A=1",
        "cd x && python train.py",
        "python train.py\npython test.py",
        "python train.py | tee log",
        "python train.py > log",
        "python train.py $(nproc)",
        "python train.py *.txt",
        "python train.py $E",
        "python train.py ~/data",
        "python train.py ${A:-1}",
        "python train.py $RANDOM",
        "python train.py # a comment",
        "python - <<E\nprint()\nE",
        "PATH=/bin python train.py",
        "A=1 B=$A python train.py",
        "python 'train.py",
    ],
)
def test_anything_else_is_left_to_bash(text: str) -> None:
    assert expanded(text) is None
