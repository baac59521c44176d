"""prepare_text: which files are read and how they are divided, tokens that give the text back, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from component_processes import execute

VERSES = [f"{number} green bottles hanging on the wall,\n\tand if one — fell… {'x' * number}\n" for number in range(9)]


@pytest.fixture
def modules(code: Callable[[str, str], Any]) -> Any:
    """Imports a module of the component."""
    return lambda name: code("prepare_text", name)


@pytest.fixture
def verses(tmp_path: Path) -> Path:
    """Nine texts in two folders, with files that are no text."""
    folder = tmp_path / "verses"
    (folder / "more").mkdir(parents=True)
    for number, verse in enumerate(VERSES):
        (folder / ("more" if number % 2 else ".") / f"{number}.txt").write_text(verse, encoding="utf-8")
    (folder / "picture.png").write_bytes(b"\x89PNG\0\0")
    (folder / "latin.txt").write_bytes("Flöte".encode("latin-1"))
    (folder / "empty.txt").write_text("")
    (folder / ".hidden").write_text("not seen")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("not seen")
    return folder


def request(modules: Any, **changes: Any) -> Any:
    settings: dict[str, Any] = {
        "folder": None,
        "pattern": "**/*",
        "vocabulary_size": 280,
        "validation_fraction": 0.3,
        "seed": 0,
    }
    return modules("preparation").Request(**settings | changes)


def test_every_text_comes_back_from_its_tokens(modules: Any, verses: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    (verses / "own.txt").write_text("a text may say <|end|> itself\r\n")
    described = modules("preparation").prepare(request(modules, folder=verses), tmp_path / "out")
    prepared = modules("prepared_text")
    assert prepared.read_description(tmp_path / "out") == described
    tokenizer = Tokenizer.from_file(str(tmp_path / "out" / prepared.TOKENIZER))
    found = []
    for split in prepared.SPLITS:
        tokens = prepared.read_tokens(tmp_path / "out", split)
        assert len(tokens) == described.tokens[split]
        assert int(tokens.max()) < described.vocabulary_size == 280
        texts = np.split(tokens, np.flatnonzero(tokens == described.end) + 1)
        assert len(texts.pop()) == 0
        assert len(texts) == described.files[split]
        found += [tokenizer.decode(text[:-1].tolist(), skip_special_tokens=False) for text in texts]
    assert sorted(found) == sorted([*VERSES, "a text may say <|end|> itself\r\n"])
    assert described.source == "verses"
    assert described.files == {"train": 7, "validation": 3}
    assert described.skipped == {"binary": 2, "empty": 1}
    assert sum(described.bytes.values()) == sum(len(text.encode()) for text in found)


def test_preparing_again_gives_the_same_files(modules: Any, verses: Path, tmp_path: Path) -> None:
    for _ in range(2):
        modules("preparation").prepare(request(modules, folder=verses), tmp_path / "twice")
    modules("preparation").prepare(request(modules, folder=verses), tmp_path / "once")
    for folder in ("once", "twice"):
        assert len(list((tmp_path / folder).iterdir())) == 4
    for file in (tmp_path / "once").iterdir():
        assert file.read_bytes() == (tmp_path / "twice" / file.name).read_bytes()


def test_the_seed_and_the_paths_decide_the_division(modules: Any) -> None:
    divide = modules("corpus").divide
    texts = {f"{number}.txt": str(number) for number in range(50)}
    backwards = dict(reversed(texts.items()))
    first, again, other = divide(texts, 0.2, 1), divide(backwards, 0.2, 1), divide(texts, 0.2, 2)
    assert set(first["validation"]) == set(again["validation"]) != set(other["validation"])
    assert len(first["validation"]) == 10
    assert sorted(first["train"] + first["validation"]) == sorted(texts.values())


@pytest.mark.parametrize(("fraction", "count"), [(0.001, 1), (0.5, 1)])
def test_two_texts_are_one_for_each_split(modules: Any, fraction: float, count: int) -> None:
    parts = modules("corpus").divide({"a": "1", "b": "2"}, fraction, 0)
    assert {name: len(part) for name, part in parts.items()} == {"train": 1, "validation": count}


def test_the_standard_library_is_read_without_its_tests(modules: Any) -> None:
    found = modules("corpus").read(None, "json/**/*")
    assert found.source == "stdlib"
    assert {"json/__init__.py", "json/decoder.py"} <= set(found.texts)
    assert not any("test" in path for path in found.texts)
    assert not any(path.endswith(".pyc") for path in found.texts)


def test_perplexity_of_a_unigram_model(modules: Any) -> None:
    train, validation = np.array([0, 0, 0, 1], np.uint16), np.array([0, 1, 2], np.uint16)
    expected = exp(-(log(4 / 7) + log(2 / 7) + log(1 / 7)) / 3)
    assert modules("unigram").perplexity(train, validation, 3) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"folder": Path("/nowhere")}, "/nowhere is not a folder"),
        ({"pattern": "*.rst"}, "of the files that match '*.rst', none"),
        ({"pattern": "*.png"}, "of the files that match '*.png', 1 without text"),
        ({"pattern": "/etc/*"}, "is not a glob"),
        ({"pattern": "0.txt"}, "0.txt is the only text"),
        ({"vocabulary_size": 5000}, "vocabulary_size is 5000, and the training files give"),
    ],
    ids=["no folder", "no match", "no text", "no glob", "one text", "little text"],
)
def test_text_that_cannot_be_used(
    modules: Any, verses: Path, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(modules("prepared_text").BadData) as error:
        modules("preparation").prepare(request(modules, **{"folder": verses} | changes), tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [None, "{", '{"source": "stdlib"}', "[]"])
def test_a_folder_that_prepare_text_did_not_write(modules: Any, tmp_path: Path, content: str | None) -> None:
    prepared = modules("prepared_text")
    if content is not None:
        (tmp_path / "description.json").write_text(content)
    with pytest.raises(prepared.BadData, match=r"description\.json"):
        prepared.read_description(tmp_path)
    np.save(tmp_path / "train_tokens.npy", np.zeros((2, 2)))
    for split, said in (("validation", "cannot be read"), ("train", "are float64 of")):
        with pytest.raises(prepared.BadData, match=said):
            prepared.read_tokens(tmp_path, split)


@pytest.mark.slow
def test_bad_data_ends_the_process_with_a_message_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ended = execute("prepare_text", {"folder": tmp_path / "empty"}, {"text": tmp_path / "text"}, tmp_path)
    assert ended.codes == [2]
    assert f"prepare_text: {tmp_path}/empty: of the files that match '**/*', none" in ended.errors[0]
    assert "Traceback" not in ended.errors[0]
    assert list((tmp_path / "text").iterdir()) == []  # mldesigner makes the folder
