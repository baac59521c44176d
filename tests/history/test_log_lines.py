"""The lines of a log are masked as the whole text would be, also if most of them are not searched."""

import re
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from allranks import secrets
from allranks.history.log_redaction import LogLines
from allranks.secrets import redact, same_length, short

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Put together here, so that nobody's search for secrets finds one in this file.
TOKENS = [
    "hf_" + LETTERS,
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "sk-" + LETTERS[:20] + "T3BlbkFJ" + LETTERS[:20],
    "GR1348941" + LETTERS[:20],
    "sq0csp-" + LETTERS[:43],
    "pypi-AgEIcHlwaS5vcmc" + LETTERS + LETTERS,
    LETTERS + "JQQJ99" + LETTERS[:26],
    "sha512-" + LETTERS + LETTERS[:34] + "==",
    LETTERS + LETTERS[:34] + "==",
    "//registry.npmjs.org/:_authToken=" + "npm_" + LETTERS[:36],
    "eyJ" + LETTERS + ".eyJ" + LETTERS + ".sig",
    f"-----BEGIN RSA PRIVATE {'KEY'}-----\nMIIE{LETTERS}\n-----END RSA PRIVATE KEY-----",
]
WORDS = [
    "password",
    "token",
    "key",
    "secret",
    "HF_TOKEN=",
    "--hf-token",
    "bearer",
    "basic",
    "authorization",
    "sig=",
    "aws",
    "https://me:pw@host",
]
WORDS += ["%26sig=", "%3fsig%3d", "aws key", "none", "loss", "=", ":", '"', "'", "-----BEGIN", "@", "é", "█", "\x1b[0m"]
ENDS = ["\n", "\n", "\r", "\r\n", " \n", "\n\n", "  \n  ", "\xa0\n", "\n\u2028", "\x85"]
NUMBERS = ["1", "26", "3.5e-05", "12345678:", "2026-11-25"]

logs = st.lists(st.sampled_from([*TOKENS, *WORDS, *ENDS * 3, *NUMBERS * 2, *" " * 4]), max_size=14).map("".join)


@given(pieces=st.lists(logs, min_size=1, max_size=4), digits=st.permutations("0123456789"))
@example(pieces=["loss 1\npassword:\n\nhunter2\nloss 2"], digits="1234567890")
@example(pieces=["password\n= hunter2\n"], digits="1234567890")
@example(pieces=["loss 1\npassword: \nhunter2\npassword:\r\nhunter2"], digits="1234567890")
@example(pieces=["loss 1\npassword:\xa0\nhunter2", "loss 1\npassword\n\u2028: hunter2"], digits="1234567890")
@pytest.mark.parametrize("mask", [short, same_length])
def test_each_piece_is_masked_as_a_whole(mask: secrets.Mask, pieces: list[str], digits: str) -> None:
    lines = LogLines()
    other_digits = str.maketrans("0123456789", "".join(digits))
    for text in [*(piece.translate(other_digits) for piece in pieces), *pieces, *pieces]:
        assert lines.redact(text.encode(), mask).decode() == redact(text, mask=mask)


def test_the_literal_digits_of_every_shape_are_known() -> None:
    """A line would else be taken for another one that differs from it in a digit, and keep its secret."""
    for shape in secrets._SHAPES:
        literals = re.sub(r"\\.|\{\d*,?\d*\}", " ", shape.pattern.pattern)  # without escapes and counts
        literals = re.sub(r"\[[^\]]*?\]", lambda match: match[0].replace("0-9", ""), literals)
        for literal in re.findall(r"[\w%-]*[0-9][\w%-]*", literals):
            assert secrets.may_have_secret(re.sub("[0-9]", "0", literal)), (shape.kind, literal)


def test_lines_that_differ_in_their_numbers_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []

    def search(line: str) -> bool:
        searched.append(line)
        return secrets.may_have_secret(line)

    monkeypatch.setattr("allranks.history.log_redaction.may_have_secret", search)
    lines = LogLines()
    log = b"".join(b"step %04d loss 0.%03d\n" % (step, step % 999) for step in range(2000))
    for _ in range(3):
        assert lines.redact(log, short) == log
    assert sorted(searched) == ["\n", "step 0000 loss 0.000", "step 0000 loss 0.000\n"]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allranks.history.log_redaction._MOST", 100_000)
    lines = LogLines()
    most = 0
    for number in range(2000):
        name = "".join(LETTERS[int(digit)] for digit in str(number)).encode()
        for log in (name, name * 20_000 if number == 1000 else name * 2):
            assert lines.redact(log, short) == log
        most = max(most, sum(map(sys.getsizeof, lines._without_secret)))
    assert 20_000 < most <= 100_000


def test_long_lines_that_recur_are_searched_once() -> None:
    log = b"step 00001 loss 0.123456 ".ljust(100, b".") * 20_000
    lines = LogLines()
    for start in range(0, len(log), 20_010):
        lines.redact(log[start : start + 20_010], short)
    assert len(lines._without_secret) <= 11  # a piece may start at each 10th byte of the block, and the last is shorter
