"""prepare_text: which documents are read and how they are divided, tokens that give the text back, and bad input."""

import json
from argparse import Namespace
from collections.abc import Callable
from itertools import chain
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from component_processes import folder_of

from allranks.errors import InputError
from allranks.runtime import argument_defaults
from allranks_steps.text import prepared_text

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


def prepare(modules: Any, folder: Path, output: Path, **changes: Any) -> prepared_text.Description:
    """Prepare a folder of texts with these changes of the spec's defaults."""
    defaults = dict(argument_defaults(folder_of("prepare_text") / "component.yaml"))
    given = {"folder": folder, "text": output, "vocabulary_size": 280, "validation_fraction": 0.3} | changes
    described: prepared_text.Description = modules("prepare_text").prepare(Namespace(**defaults | given))
    return described


def texts(folder: Path) -> dict[str, list[str]]:
    """The documents of each split, decoded from their tokens."""
    from tokenizers import Tokenizer

    described = prepared_text.read_description(folder)
    tokenizer = Tokenizer.from_file(str(folder / prepared_text.TOKENIZER))
    found = {}
    for split in prepared_text.SPLITS:
        tokens = prepared_text.read_tokens(folder, described, split)[:]
        assert len(tokens) == described.tokens[split]
        assert tokens.max() < described.vocabulary_size
        documents = np.split(tokens, np.flatnonzero(tokens == described.end) + 1)
        assert len(documents.pop()) == 0
        assert len(documents) == described.documents[split]
        found[split] = [tokenizer.decode(ids[:-1].tolist(), skip_special_tokens=False) for ids in documents]
        assert described.bytes[split] == sum(len(text.encode()) for text in found[split])
    return found


def test_every_text_comes_back_from_its_tokens(modules: Any, verses: Path, tmp_path: Path) -> None:
    (verses / "own.txt").write_text("a text may say <|end|> itself\r\n")
    described = prepare(modules, verses, tmp_path / "out", shard_tokens=50)
    assert prepared_text.read_description(tmp_path / "out") == described
    found = texts(tmp_path / "out")
    assert sorted(chain(*found.values())) == sorted([*VERSES, "a text may say <|end|> itself\r\n"])
    assert (described.source, described.vocabulary_size, described.dtype) == ("verses", 280, "uint16")
    assert described.skipped == {"binary": 2, "empty": 1}
    assert [shard.tokens for shard in described.shards["train"][:-1]] == [50] * (described.tokens["train"] // 50)


def test_large_files_and_several_processes_give_the_same_tokens(
    modules: Any, verses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.dumps({"id": number, "content": verse}) for number, verse in enumerate(VERSES)]
    (verses / "lines.jsonl").write_text("\n\n".join(lines), encoding="utf-8")
    asked: dict[str, Any] = {"text_field": "content", "seed": 3}
    prepare(modules, verses, tmp_path / "whole", **asked)
    assert sorted(chain(*texts(tmp_path / "whole").values())) == sorted([*VERSES, *VERSES])
    # The tokenizer is given: the pieces decide what one is trained on.
    asked |= {"tokenizer": tmp_path / "whole/tokenizer.json", "num_workers": 2}
    prepare(modules, verses, tmp_path / "processes", **asked)
    for file in (tmp_path / "whole").iterdir():
        assert file.read_bytes() == (tmp_path / "processes" / file.name).read_bytes()
    monkeypatch.setattr(modules("corpus"), "PIECE_BYTES", 20)
    prepare(modules, verses, tmp_path / "pieces", **asked | {"num_workers": 0})
    assert texts(tmp_path / "pieces") == texts(tmp_path / "whole")


def test_an_existing_tokenizer_with_a_large_vocabulary(modules: Any, verses: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    words = {"[UNK]": 0, "</s>": 1} | {f"word{number}": number for number in range(2, 70_000)}
    Tokenizer(models.WordLevel(words, unk_token="[UNK]")).save(str(tmp_path / "tokenizer.json"))
    described = prepare(modules, verses, tmp_path / "out", tokenizer=tmp_path / "tokenizer.json")
    assert (described.vocabulary_size, described.end, described.dtype) == (70_000, 1, "uint32")


@pytest.mark.parametrize("span", [(0, 100), (3, 7), (8, 9), (9, 9), (11, 30)])
def test_tokens_of_several_shards_are_one_sequence(modules: Any, tmp_path: Path, span: tuple[int, int]) -> None:
    writer = modules("shard_writer").ShardWriter(tmp_path, "train", "uint32", 4)
    for start, stop in ((0, 3), (3, 3), (3, 12), (12, 18)):
        writer.append(np.arange(start, stop))
    shards = writer.close()
    assert [shard.tokens for shard in shards] == [4, 4, 4, 4, 2]
    prepared_text.verify(tmp_path, shards)
    tokens = prepared_text.Tokens(
        [tmp_path / shard.file for shard in shards], [shard.tokens for shard in shards], "uint32"
    )
    assert len(tokens) == 18
    assert tokens[slice(*span)].tolist() == list(range(18))[slice(*span)]


def test_the_seed_and_the_names_decide_the_division(modules: Any) -> None:
    hashed = modules("corpus").hashed
    places = np.array([[hashed(f"{number}.txt", seed) for number in range(4000)] for seed in (0, 1)], float) / 2**64
    assert (places < 0.2).mean(axis=1) == pytest.approx(0.2, abs=0.03)
    assert (places[0] != places[1]).all()


@pytest.mark.parametrize("fraction", [0.0001, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_two_texts_are_one_for_each_split(
    modules: Any, verses: Path, tmp_path: Path, fraction: float, seed: int
) -> None:
    asked = {"pattern": "[12].txt", "validation_fraction": fraction, "seed": seed}
    for name in ("1.txt", "2.txt"):
        (verses / name).write_text(VERSES[3] + name)
    described = prepare(modules, verses, tmp_path / "out", **asked)
    assert described.documents == {"train": 1, "validation": 1}


def test_the_standard_library_is_read_without_its_tests(modules: Any) -> None:
    found = modules("corpus").find(None, "json/**/*")
    paths = {piece.path for piece in found.pieces}
    assert found.source == "stdlib"
    assert {"json/__init__.py", "json/decoder.py"} <= paths
    assert not any("test" in path or path.endswith(".pyc") for path in paths)


def test_perplexity_of_a_unigram_model(modules: Any) -> None:
    expected = exp(-(log(4 / 7) + log(2 / 7) + log(1 / 7)) / 3)
    assert modules("prepare_text").unigram_perplexity(np.array([3, 1, 0]), np.array([1, 1, 1])) == pytest.approx(
        expected
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"folder": Path("/nowhere")}, "/nowhere is not a folder"),
        ({"pattern": "*.rst"}, "of the files that match '*.rst', none"),
        ({"pattern": "*.png"}, "of the files that match '*.png', 1 without text"),
        ({"pattern": "/etc/*"}, "is not a glob"),
        ({"pattern": "0.txt"}, "0.txt is the only text"),
        ({"vocabulary_size": 5000}, "input vocabulary_size: 5000, and the training files give"),
        ({"tokenizer": Path("/nowhere")}, "input tokenizer: /nowhere is not a tokenizer.json"),
        ({"end_token": "</s>"}, "input end_token: the tokenizer has no </s>"),
        ({"pattern": "*.jsonl"}, "the line at byte 14: no 'text' (KeyError('text'))"),
        ({"pattern": "*.ndjson"}, "'text' is a int, not a string"),
    ],
)
def test_text_that_cannot_be_used(
    modules: Any, verses: Path, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    (verses / "other.jsonl").write_text('{"text": "a"}\n{"content": "b"}\n')
    (verses / "numbers.ndjson").write_text('{"text": 1}\n')
    given = {"folder": verses, "pattern": "**/*.txt"} | changes
    with pytest.raises(InputError) as error:
        prepare(modules, given.pop("folder"), tmp_path / "out", **given)
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_failure_leaves_no_shards(modules: Any, verses: Path, tmp_path: Path) -> None:
    # Only the encoding reads to the last line.
    lines = [json.dumps({"text": verse}) for verse in VERSES]
    (verses / "lines.jsonl").write_text("\n".join([*lines, "{}"]))
    prepare(modules, verses, tmp_path / "out", pattern="*.txt")
    with pytest.raises(InputError):
        prepare(modules, verses, tmp_path / "out", tokenizer=tmp_path / "out/tokenizer.json", pattern="*.jsonl")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("content", [None, "{", '{"source": "stdlib"}', "[]"])
def test_a_folder_that_prepare_text_did_not_write(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "description.json").write_text(content)
    with pytest.raises(InputError, match=r"description\.json"):
        prepared_text.read_description(tmp_path)


def test_shards_that_changed(modules: Any, verses: Path, tmp_path: Path) -> None:
    described = prepare(modules, verses, tmp_path / "out", pattern="**/*.txt")
    shard = described.shards["train"][0]
    file = tmp_path / "out" / shard.file
    content = bytearray(file.read_bytes())
    content[7] ^= 1
    file.write_bytes(content)
    prepared_text.read_tokens(tmp_path / "out", described, "train")
    with pytest.raises(InputError, match="does not match its checksum"):
        prepared_text.verify(tmp_path / "out", [shard])
    file.write_bytes(content[:-1])
    with pytest.raises(InputError, match=f"has {len(content) - 1} bytes, not the {len(content)}"):
        prepared_text.read_tokens(tmp_path / "out", described, "train")
    file.unlink()
    with pytest.raises(InputError, match="No such file"):
        prepared_text.read_tokens(tmp_path / "out", described, "train")
