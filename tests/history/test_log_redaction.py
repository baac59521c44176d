"""Secrets in logs are masked wherever a piece of the log ends."""

from hashlib import sha256
from pathlib import Path

import pytest

from allranks.history import log_redaction
from allranks.history.log_redaction import LONGEST_LINE, mask_in_file, redacted
from allranks.secrets import same_length

MOST = 1 << 20
TOKEN = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
KEY = f"-----BEGIN RSA PRIVATE {'KEY'}-----\nMIIEabc\ndef\n-----END RSA PRIVATE KEY-----"


def in_pieces(log: bytes, size: int) -> bytes:
    return b"".join(redacted([log[start : start + size] for start in range(0, len(log), size)], ["hunter2-known"]))


@pytest.mark.parametrize("size", [1, 5, 40, 10_000])
def test_a_secret_that_continues_in_the_next_piece(size: int) -> None:
    log = f"epoch 1\nlogging in with {TOKEN}\n{KEY}\nhunter2-known \xe9".encode() + b"\xff\0"
    assert in_pieces(log, size) == "epoch 1\nlogging in with ***\n***\n*** \xe9".encode() + b"\xff\0"


@pytest.mark.parametrize("size", [1, 5, 40, 10_000])
def test_a_masked_log_can_keep_its_offsets(size: int) -> None:
    log = f"epoch \xe9\nwith {TOKEN}\n{KEY}\nhunter2-known \xe9\ncut".encode()
    pieces = [log[start : start + size] for start in range(0, len(log), size)]
    masked = b"".join(redacted(pieces, ["hunter2-known"], mask=same_length, complete=False))
    assert log.startswith(masked[:9])
    assert len(masked) == len(log) - len("cut")
    assert masked.count(b"\n") == log.count(b"\n")
    assert not [part for part in (b"MIIE", TOKEN[:8].encode(), b"hunter") if part in masked]


@pytest.mark.parametrize("at", [-20, 0, 20])
def test_a_secret_in_a_line_that_is_longer_than_what_is_held(at: int) -> None:
    before = "loss 0.5 " * ((LONGEST_LINE + at) // 9)
    assert in_pieces(f"{before}{TOKEN} after".encode(), 4096) == f"{before}*** after".encode()


def test_a_line_without_words_is_not_held_whole() -> None:
    pieces = redacted(b"." * 4096 for _ in range(1000))
    assert len(next(pieces)) <= 2 * LONGEST_LINE


def test_what_is_masked_in_a_file_keeps_its_place(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(b"a hunter2-known b\nhunter2-known-longer\nhunter")
    mask_in_file(str(log), {"hunter2-known", "hunter2-known-longer", "short"}, MOST)
    assert log.read_bytes() == b"a ************* b\n********************\nhunter"


def test_what_looks_like_a_secret_is_masked_in_a_file(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    text = f"\xe9 {'word ' * LONGEST_LINE}\nwith {TOKEN}\n{KEY}\nend".encode()
    log.write_bytes(text)
    assert mask_in_file(str(log), (), MOST) == len(text)
    masked = log.read_bytes()
    assert len(masked) == len(text)
    assert masked.endswith(b"\nend")
    assert f"\nwith {'*' * len(TOKEN)}\n***".encode() in masked
    assert b"MIIE" not in masked

    log.write_bytes(text)
    assert mask_in_file(str(log), {"with hf"}, len(text) - 1) is None
    assert log.read_bytes() == text.replace(b"with hf", b"*******")


def test_a_log_that_is_empty_or_missing_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    mask_in_file(str(tmp_path / "empty"), {"hunter2-known"}, MOST)
    mask_in_file(str(tmp_path / "missing"), {"hunter2-known"}, MOST)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_text_that_never_recurs_is_searched_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_redaction, "MOST_NEW", 2 * log_redaction.LONGEST_LINE)
    known, recurring, new = (tmp_path / name for name in ("known", "recurring", "new"))
    known.write_bytes(b"")
    secret = b"HF_TOKEN=hunter2-typed\n"
    recurring.write_bytes(b"step 123 loss 0.4\n" * 100_000 + secret)
    new.write_bytes(b"".join(b"%s\n" % sha256(b"%d" % n).hexdigest().encode() for n in range(10_000)) + secret)
    lines = log_redaction.LogLines()
    assert mask_in_file(str(recurring), (), 1 << 30, lines) == recurring.stat().st_size
    assert secret not in recurring.read_bytes()
    assert mask_in_file(str(new), (), 1 << 30, lines) is None
