"""Documents on real files, read by the warm process."""

import os
import shutil
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks_studio.documents import edits, reading
from allranks_studio.documents.codec import edits_from
from allranks_studio.documents.document import Conflict, Document, Refused
from allranks_studio.documents.edits import FromInput, FromOutput, Literal
from allranks_studio.documents.reading import Reader
from bounded import until

ROOT = Path(__file__).parents[4]
PIPELINES = sorted([*(ROOT / "pipelines").glob("*.py"), *(ROOT / "template" / "pipelines").glob("*.py")])
TEXT = '''\
"""Two steps."""

from azure.ai.ml import Input
from azure.ai.ml.dsl import pipeline

from allranks.library import prepare_images, register_model


@pipeline(name="two")
def two(name: Input(type="string") = "digits"):
    prepare = prepare_images(seed=3)
    register = register_model(model=Input(type="mlflow_model", path="m"), metrics=prepare.outputs.images, name=name)
'''


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    reader = Reader(seconds=120)
    yield reader
    reader.close()


def opened(folder: Path, reader: Reader, text: str = TEXT) -> Document:
    (folder / "two.py").write_bytes(text.encode())
    return Document(folder, "two.py", reader)


def messages(document: Document) -> list[str]:
    return [finding["found"] for finding in document.state()["findings"]]


def test_edits_are_written_and_undone(tmp_path: Path, reader: Reader) -> None:
    document, file = opened(tmp_path, reader), tmp_path / "two.py"
    file.chmod(0o640)
    state = document.state()
    assert [node["path"] for node in state["graph"]["nodes"]] == ["prepare", "register"]
    assert (state["name"], state["undo"], state["current"], state["read_only"]) == ("two", "", True, False)
    group = [
        edits.AddNode("", "library:train_image_classifier", "", {"data": FromOutput("prepare", "images")}),
        edits.SetInput("register", "model", FromOutput("train", "model")),
        edits.SetInput("train", "num_train_epochs", Literal(2)),
    ]
    document.edit(document.digest, group)
    after = file.read_text()
    assert after.endswith("""\
    prepare = prepare_images(seed=3)
    train = train_image_classifier(data=prepare.outputs.images, num_train_epochs=2)
    register = register_model(model=train.outputs.model, metrics=prepare.outputs.images, name=name)
""")
    state = document.state()
    assert (state["text"], state["undo"]) == (after, "add node train and 2 more")
    assert state["changed"] == [6, 12, 13]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    document.undo(document.digest)
    assert file.read_text() == TEXT
    assert document.state()["redo"] == "add node train and 2 more"
    document.redo(document.digest)
    assert file.read_text() == after


def test_impossible_edits_write_nothing(tmp_path: Path, reader: Reader) -> None:
    document = opened(tmp_path, reader)
    good = edits.SetInput("prepare", "seed", Literal(4))
    for bad, message in [
        (edits.SetInput("prepare", "seed", Literal(-4)), "-4"),
        (edits.SetInput("prepare", "seed", Literal("many")), "many"),
        (edits.SetInput("prepare", "seed", FromInput("name")), "is a string, and is bound to an integer"),
        (edits.SetInput("register", "name", FromOutput("prepare", "images")), "is a uri_folder, and is bound"),
        (edits.SetInput("prepare", "seed", FromOutput("prepare", "images")), "wait for each other"),
        (edits.DeleteNode("train"), "no such step"),
        (edits.AddNode("", "library:nothing"), "does not exist"),
        (edits.RenameNode("prepare", "register"), "exists"),
    ]:
        with pytest.raises((InputError, Refused), match=message):
            document.edit(document.digest, [good, bad])
    with pytest.raises(Refused) as refused:
        document.edit(document.digest, [good, edits.AddNode("", "library:prepare_text", "", {"nothing": Literal(1)})])
    assert "nothing" in refused.value.problems[0]["found"]
    assert (tmp_path / "two.py").read_text() == TEXT
    assert document.state()["undo"] == ""


def test_edit_with_another_meaning_is_refused(tmp_path: Path, reader: Reader) -> None:
    hidden = "    inputs = prepare.inputs\n    inputs.seed = 5 if len('ab') == 2 else 6\n"
    document = opened(tmp_path, reader, TEXT.replace("(seed=3)", "()") + hidden)
    for edit in (edits.SetInput("prepare", "seed", Literal(4)), edits.RenameNode("prepare", "inputs")):
        with pytest.raises((InputError, Refused)):
            document.edit(document.digest, [edit])
    document = opened(tmp_path, reader, TEXT + hidden)
    with pytest.raises(InputError, match="sets another value"):
        document.edit(document.digest, [edits.SetInput("prepare", "seed", Literal(4))])
    assert (tmp_path / "two.py").read_text() == TEXT + hidden


def test_other_programs_change_the_file(tmp_path: Path, reader: Reader) -> None:
    document, file = opened(tmp_path, reader), tmp_path / "two.py"
    digest = document.digest
    assert not document.refresh()
    file.write_text(TEXT.replace("seed=3", "seed=7"))
    with pytest.raises(Conflict):
        document.edit(digest, [edits.SetInput("prepare", "seed", Literal(4))])
    assert document.state()["undo"] == "a change of the file"
    with pytest.raises(Conflict):
        document.write(digest, "")
    document.edit(document.digest, [edits.SetInput("prepare", "seed", Literal(4))])
    document.undo(document.digest)
    document.undo(document.digest)
    assert file.read_text() == TEXT


def test_last_graph_stays_while_the_text_has_an_error(tmp_path: Path, reader: Reader) -> None:
    document = opened(tmp_path, reader)
    document.write(document.digest, TEXT.replace("seed=3)", "seed=3"))
    state = document.state()
    assert not state["current"]
    assert len(state["graph"]["nodes"]) == 2
    assert state["findings"][0]["line"] == 11
    with pytest.raises(InputError, match="has errors"):
        document.edit(document.digest, [edits.DeleteNode("prepare")])
    document.write(document.digest, TEXT.replace("seed=3", "seed=5"))
    assert document.state()["current"]
    assert document.state()["undo"] == "typing"


def test_findings_are_of_nodes_and_lines(tmp_path: Path, reader: Reader) -> None:
    text = TEXT.replace("register_model", "train_image_classifier").partition("    register")[0]
    document = opened(tmp_path, reader, text + "    train = train_image_classifier(max_steps=1)\n")
    (found,) = document.state()["findings"]
    assert (found["node"], found["port"], found["line"]) == ("train", "data", 12)
    # The only output that fits.
    value = {"kind": "output", "node": "prepare", "port": "images"}
    assert found["edits"] == [{"op": "set_input", "node": "train", "input": "data", "value": value}]
    document.edit(document.digest, edits_from(found["edits"]))
    assert document.state()["text"].endswith("train_image_classifier(max_steps=1, data=prepare.outputs.images)\n")
    assert document.state()["findings"] == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os\nos._exit(3)\n", "exit code 3"),
        ("raise SystemExit(0)\n", "ends Python"),
        ("print('x' * 100000, flush=True)\ninput()\n", "EOFError"),
        ("1 / 0\n", "division by zero"),
        ("x = [bytes(1 << 30) for _ in range(64)]\n", "MemoryError"),
        ("def f():\n    f()\nf()\n", "recursion"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "exit code -11"),
    ],
)
def test_code_of_the_file_harms_nothing(tmp_path: Path, reader: Reader, code: str, message: str) -> None:
    document = opened(tmp_path, reader, code)
    assert message in " ".join(messages(document))
    document.write(document.digest, TEXT)
    assert document.state()["current"]


STOPS_IN_ITS_ANSWER = """
import os, signal
from multiprocessing.connection import Connection
from pathlib import Path

def send(self, data):
    Path(__file__).with_name("begun").write_text(str(os.getpid()))
    os.write(self.fileno(), data[:3])
    os.kill(os.getpid(), signal.SIGSTOP)

Connection._send = send
"""


def test_file_that_hangs_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(seconds=0.5)
    (tmp_path / "two.py").write_text("import os, time\nif os.fork() == 0:\n    time.sleep(600)\nwhile True: pass\n")
    document = Document(tmp_path, "two.py", reader)
    assert "more than" in messages(document)[0]
    monkeypatch.setattr(reading, "_ALLOWANCE", 0.5)  # the process has started
    document.write(document.digest, STOPS_IN_ITS_ANSWER)
    assert "more than" in messages(document)[0]
    child = Path("/proc", (tmp_path / "begun").read_text(), "cmdline")
    assert not (child.exists() and child.read_bytes())  # a zombie has none
    reader.close()


HANGS = "from pathlib import Path\nPath(__file__).with_name('begun').touch()\nwhile True: pass\n"


@pytest.mark.parametrize("code", [HANGS, STOPS_IN_ITS_ANSWER])
def test_reader_that_is_closed_ends_its_reading(tmp_path: Path, code: str) -> None:
    reader, file = Reader(seconds=600), tmp_path / "two.py"
    file.write_text(code)
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(reader.read, file, file.read_bytes())
        until((tmp_path / "begun").exists)
        reader.close()
        assert isinstance(reading.exception(60), OSError)


def test_text_stands_in_the_place_of_the_file(tmp_path: Path, reader: Reader) -> None:
    document = opened(tmp_path, reader)
    (tmp_path / "beside.py").write_text("SEED = 11\n")
    code = TEXT.replace(
        "from allranks.library", "from beside import SEED\nassert SEED in open(__file__).read()\nfrom allranks.library"
    )
    code = code.replace("SEED in open", '"two" in open').replace("seed=3", "seed=SEED")
    document.write(document.digest, code)
    assert document.graph is not None
    (seed,) = [port for port in document.graph.nodes[0].inputs if port.name == "seed"]
    assert seed.value == edits.Expression("SEED")
    assert {file.name for file in tmp_path.iterdir()} == {"two.py", "beside.py"}  # nor a bytecode cache


def test_bytes_are_kept(tmp_path: Path, reader: Reader) -> None:
    text = "# -*- coding: latin-1 -*-\n" + TEXT.replace("Two steps", "Zwei Läufe")
    data = text.replace("\n", "\r\n").encode("latin-1").removesuffix(b"\r\n")
    (tmp_path / "two.py").write_bytes(data)
    document = Document(tmp_path, "two.py", reader)
    document.edit(document.digest, [edits.SetInput("prepare", "seed", FromInput("name"))][:0])
    document.edit(document.digest, [edits.SetInput("prepare", "seed", Literal(44))])
    assert (tmp_path / "two.py").read_bytes() == data.replace(b"seed=3", b"seed=44")
    (tmp_path / "two.py").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    document.refresh()
    document.edit(document.digest, [edits.SetInput("prepare", "seed", Literal(44))])
    assert (tmp_path / "two.py").read_bytes() == b"\xef\xbb\xbf" + TEXT.replace("seed=3", "seed=44").encode()


def test_what_cannot_be_opened(tmp_path: Path, reader: Reader) -> None:
    (tmp_path / "binary.py").write_bytes(b"\0\1\2")
    (tmp_path / "latin.py").write_bytes(b"a = '\xe4'\n")
    (tmp_path / "other.py").write_bytes(b"# coding: other\n")
    (tmp_path / "notes.md").write_text("a")
    for path, message in [
        ("binary.py", "not text"),
        ("latin.py", "not text"),
        ("other.py", "unknown encoding"),
        ("notes.md", "cannot be edited"),
    ]:
        with pytest.raises(InputError, match=message):
            Document(tmp_path, path, reader)
    with pytest.raises(FileNotFoundError):
        Document(tmp_path, "none.py", reader)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_read_only_file(tmp_path: Path, reader: Reader) -> None:
    document = opened(tmp_path, reader)
    tmp_path.chmod(0o500)
    try:
        assert document.state()["read_only"]
        with pytest.raises(PermissionError):
            document.edit(document.digest, [edits.DeleteNode("prepare")])
    finally:
        tmp_path.chmod(0o700)


def test_full_disk_leaves_the_file(tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    document = opened(tmp_path, reader)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchmod", full)
    with pytest.raises(OSError, match="No space"):
        document.edit(document.digest, [edits.DeleteNode("prepare")])
    assert [file.name for file in tmp_path.iterdir()] == ["two.py"]
    assert (tmp_path / "two.py").read_text() == TEXT
    assert document.state()["undo"] == ""


def test_steps_of_one_nested_pipeline_change_together(tmp_path: Path, reader: Reader) -> None:
    shutil.copy(ROOT / "pipelines" / "train_until_good.py", tmp_path)
    document = Document(tmp_path, "train_until_good.py", reader)
    document.edit(document.digest, [edits.SetInput("one_round.validate", "split", Literal("test"))])
    assert document.state()["text"].count('split="test"') == 1
    assert document.state()["text"].count('split="validation"') == 0


def exporting(folder: Path, reader: Reader) -> Document:
    text = "".join(line for line in TEXT.splitlines(keepends=True) if "register =" not in line)
    return opened(folder, reader, text.replace("seed=3", "source=name"))


def test_export(tmp_path: Path, reader: Reader) -> None:
    document = exporting(tmp_path, reader)
    assert document.export("python") == document.state()["text"]
    assert "source: ${{parent.inputs.name}}" in document.export("yaml")
    assert document.export("submit").startswith("allranks submit two.py")
    with pytest.raises(InputError, match="no such form"):
        document.export("xml")


@pytest.mark.recipe
def test_export_of_what_would_be_sent_and_run(tmp_path: Path, reader: Reader) -> None:
    document = exporting(tmp_path, reader)
    assert '"${{parent.inputs.name}}"' in document.export("request")
    assert "prepare_images" in document.export("plan")


@pytest.mark.recipe
@pytest.mark.parametrize("file", PIPELINES, ids=lambda file: file.stem)
def test_each_pipeline_opens_and_stays(file: Path, reader: Reader) -> None:
    document = Document(file.parent, file.name, reader)
    assert document.graph is not None, messages(document)
    assert document.state()["text"].encode() == file.read_bytes()


def test_steps_of_a_nested_pipeline_in_yaml_are_edited_in_its_file(tmp_path: Path, reader: Reader) -> None:
    spec = ROOT / "components" / "image_classification" / "prepare_images" / "component.yaml"
    schema = "https://azuremlschemas.azureedge.net/latest/pipelineComponent.schema.json"
    text = f"$schema: {schema}\ntype: pipeline\nname: inner\njobs:\n  prepare:\n    component: {spec}\n"
    (tmp_path / "inner.yml").write_text(text)
    document = Document(tmp_path, "inner.yml", reader)
    source = edits.SetInput("prepare", "source", FromInput("source"))
    document.edit(
        document.digest, [edits.AddInput("", "source", "string", "digits", enum=("digits", "moons, 2")), source]
    )
    inputs = "inputs:\n  source:\n    type: string\n    default: digits\n    enum:\n    - digits\n    - moons, 2\n"
    assert document.graph is not None
    assert document.graph.inputs[0].enum == ("digits", "moons, 2")
    assert document.state()["text"] == text.replace("jobs:", f"{inputs}jobs:") + (
        "    inputs:\n      source: ${{parent.inputs.source}}\n"
    )
