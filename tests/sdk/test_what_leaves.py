"""The list of what leaves the machine: no secrets, no caches, nothing from outside, and ignored as the SDK ignores."""

import os
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from allranks.errors import InputError
from allranks.sdk import files, upload_exclusions
from allranks.sdk.files import FileList, copy_links, list_merged, list_path
from allranks.sdk.session import session
from pipeline_files import write

KEY_TEXT = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\n-----END OPENSSH PRIVATE KEY-----\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """The code of a project, with a file that goes."""
    write(tmp_path, "project/pyproject.toml", "")
    write(tmp_path, "project/code/main.py", "print(1)\n")
    return tmp_path / "project/code"


def left_out(listed: FileList) -> dict[str, str]:
    return dict(listed.left_out)


@pytest.mark.parametrize(
    ("name", "left", "reason"),
    [
        (".git/config", ".git/", upload_exclusions.VERSION_CONTROL),
        ("lib/.git", "lib/.git", upload_exclusions.VERSION_CONTROL),
        (".allranks/allranks.db", ".allranks/", upload_exclusions.WORKSPACE),
        ("work/allranks.db", "work/", upload_exclusions.WORKSPACE),
        (".env", ".env", upload_exclusions.SETTINGS),
        ("part/.env.production", "part/.env.production", upload_exclusions.SETTINGS),
        ("id_rsa", "id_rsa", upload_exclusions.KEY),
        ("keys/ID_ED25519", "keys/ID_ED25519", upload_exclusions.KEY),
        ("key.pem", "key.pem", upload_exclusions.KEY),
        (".ssh/config", ".ssh/", upload_exclusions.CREDENTIALS),
        ("credentials.json", "credentials.json", upload_exclusions.CREDENTIALS),
        ("part/__pycache__/x.pyc", "part/__pycache__/", upload_exclusions.CACHE),
        (".ipynb_checkpoints/a.ipynb", ".ipynb_checkpoints/", upload_exclusions.CACHE),
        (".ruff_cache/x", ".ruff_cache/", upload_exclusions.CACHE),
        (".venv/bin/python", ".venv/", upload_exclusions.VIRTUAL_ENVIRONMENT),
        ("mine/pyvenv.cfg", "mine/", upload_exclusions.VIRTUAL_ENVIRONMENT),
        ("conda/conda-meta/history", "conda/", upload_exclusions.VIRTUAL_ENVIRONMENT),
    ],
)
@pytest.mark.parametrize("asked_for", [False, True], ids=["", "asked for"])
def test_what_never_leaves(code: Path, name: str, left: str, reason: str, asked_for: bool) -> None:
    write(code, name, "x")
    if asked_for:
        write(code, ".amlignore", f"!{name}\n")
    listed = list_path(code, "here")
    assert set(listed.files) - {".amlignore"} == {"main.py"}
    assert left_out(listed) == {left: reason}


@pytest.mark.parametrize("text", [KEY_TEXT, "PuTTY-User-Key-File-2: ssh-rsa\n", "-----BEGIN RSA PRIVATE KEY-----\n"])
def test_a_key_is_known_by_how_it_begins(code: Path, text: str) -> None:
    write(code, "deploy", text)
    assert left_out(list_path(code, "here")) == {"deploy": upload_exclusions.KEY}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ca.pem", CERTIFICATE),
        ("id_rsa.pub", "ssh-rsa AAAA"),
        (".env.example", "TOKEN="),
        (".gitignore", ""),
        ("credentials/store.py", ""),
        ("node_modules/a/index.js", ""),
        ("text.py", f"KEY = {KEY_TEXT!r}"),
        ("environment.yaml", "name: x"),
        ("cache/x.py", ""),
    ],
)
def test_what_may_leave(code: Path, name: str, text: str) -> None:
    write(code, name, text)
    assert set(list_path(code, "here").files) == {"main.py", name}


def test_a_certificate_with_its_key_stays(code: Path) -> None:
    write(code, "both.pem", CERTIFICATE + KEY_TEXT)
    assert left_out(list_path(code, "here")) == {"both.pem": upload_exclusions.KEY}


LINKS: dict[str, tuple[str, str, str]] = {
    "settings in the project": ("settings", "../.env", upload_exclusions.SETTINGS),
    "settings beside the project": ("other", "../../sibling/.env", upload_exclusions.SETTINGS),
    "a file in a folder of credentials": ("config", "{top}/home/.aws/config", upload_exclusions.CREDENTIALS),
    "a folder of Git in the project": ("git", "../.git/hooks", upload_exclusions.VERSION_CONTROL),
    "a key by another name": ("notes.txt", "../id_rsa", upload_exclusions.KEY),
}


@pytest.mark.parametrize(("name", "target", "reason"), LINKS.values(), ids=LINKS)
def test_a_link_that_stays(code: Path, name: str, target: str, reason: str) -> None:
    top = code.parent.parent
    for file in ("sibling/.env", "home/.aws/config", "project/.env", "project/.git/hooks/x", "project/id_rsa"):
        write(top, file, "x")
    (code / name).symlink_to(target.format(top=top))
    listed = list_path(code, "here")
    ((found, why),) = listed.left_out.items()
    assert (found.rstrip("/"), why) == (name, reason)
    assert listed.left_out_text() == f"{found} ({reason})"


@pytest.mark.parametrize("mark", ["", ".git/HEAD", "pyproject.toml", "allranks.yaml", ".allranks/allranks.db"])
def test_links_lead_to_the_files_that_the_sdk_uploads_whatever_is_beside_them(tmp_path: Path, mark: str) -> None:
    for name in ("code/main.py", "shared/tool.py", "shared/data.bin", "elsewhere/deep/x.py", "elsewhere/skip.bin"):
        write(tmp_path, name, name)
    write(tmp_path, "code/.gitignore", "*.bin\n")
    if mark:
        write(tmp_path, mark, "")
    links = {
        "tool.py": "../shared/tool.py",
        "lib": "../elsewhere",
        "again.py": "main.py",
        "lib2": "lib",
        "abs": tmp_path / "shared",
    }
    for name, target in links.items():
        (tmp_path / "code" / name).symlink_to(target)
    listed = list_path(tmp_path / "code", "here")
    assert set(listed.files) == _of_the_sdk(tmp_path / "code", [], tmp_path)
    assert {"tool.py", "lib/deep/x.py", "lib2/deep/x.py", "again.py", "abs/tool.py"} < set(listed.files)
    assert listed.left_out_text() == "abs/data.bin, lib/skip.bin, lib2/skip.bin (named in .gitignore)"


def test_a_line_names_what_is_left_out_by_reason(code: Path) -> None:
    for number in range(7):
        write(code, f"data/{number}.bin", "x")
    write(code, ".amlignore", "data/*.bin\n")
    write(code, ".env", "x")
    names = ", ".join(f"data/{number}.bin" for number in range(5))
    text = list_path(code, "here").left_out_text()
    assert text == f".env (settings with secrets); {names} and 2 more (named in .amlignore)"


def test_links_within_the_project_are_followed(code: Path) -> None:
    write(code.parent, "shared/tool.py", "x = 1\n")
    write(code.parent, "shared/ca.pem", CERTIFICATE)
    (code / "shared").symlink_to("../shared")
    (code / "ca.pem").symlink_to("../shared/ca.pem")
    listed = list_path(code, "here")
    assert list(listed.files) == ["ca.pem", "main.py", "shared/ca.pem", "shared/tool.py"]
    assert not listed.left_out
    assert listed.size() == len("print(1)\n") + len("x = 1\n") + 2 * len(CERTIFICATE)


def test_code_that_is_a_link_itself_goes(code: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(code)
    assert list(list_path(tmp_path / "link", "here").files) == ["main.py"]


def test_links_back_and_among_folders_end(code: Path) -> None:
    write(code, "a/x.py", "")
    write(code, "b/y.py", "")
    for link, target in {"a/up": "..", "a/b": "../b", "b/a": "../a", "b/self": "."}.items():
        (code / link).symlink_to(target)
    listed = list_path(code, "here")
    assert {"a/x.py", "a/b/y.py", "b/y.py", "b/a/x.py"} <= set(listed.files)
    assert set(left_out(listed).values()) == {files.LINK_BACK}


def test_links_that_multiply_are_one_problem(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 100)
    for number in range(8):
        write(code, f"{number}/x.py", "")
        for other in range(8):
            (code / f"{number}/to{other}").symlink_to(f"../{other}")
    with pytest.raises(InputError, match="more than 100 files; links among folders multiply them"):
        list_path(code, "here")


def test_the_whole_file_system_is_refused_without_reading_it(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 0)
    (code / "up").symlink_to("/")
    for path in (Path("/"), Path("//"), code / "up"):
        with pytest.raises(InputError, match=r"step a.*/ is the whole file system of this machine"):
            list_path(path, "step a")
    for name in ("a.key", "b.key"):  # what is left out counts too
        write(code, name, "")
    with pytest.raises(InputError, match="more than 0 files"):
        list_path(code, "here")


def _dangling(path: Path) -> None:
    path.symlink_to("nothing")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket has at most 108 bytes
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_dangling, "No such file"),
        (_loop, "Too many levels"),
        (os.mkfifo, "not a regular file"),
        (_socket, "not a regular"),
    ],
)
def test_what_cannot_be_read_is_one_problem_unless_it_is_ignored(
    code: Path, make: Callable[[Path], None], why: str
) -> None:
    make(code / "strange")
    with pytest.raises(InputError, match=rf"step a: .*code/strange cannot be read: .*{why}") as caught:
        list_path(code, "step a")
    assert len(caught.value.problems) == 1
    write(code, ".amlignore", "strange\n")
    assert left_out(list_path(code, "step a")) == {"strange": "named in .amlignore"}


@pytest.mark.parametrize(("text", "found"), [(b"!\n", r"\.amlignore:1: '!'"), (b"\xff\xfe", "cannot be read")])
def test_an_ignore_file_that_cannot_be_used(code: Path, text: bytes, found: str) -> None:
    (code / ".amlignore").write_bytes(text)
    with pytest.raises(InputError, match=found):
        list_path(code, "here")


def test_an_ignore_file_that_is_a_pipe(code: Path) -> None:
    os.mkfifo(code / ".amlignore")
    with pytest.raises(InputError, match="it is not a file"):
        list_path(code, "here")


def test_an_ignored_folder_is_not_read(code: Path) -> None:
    write(code, "data/x", "")
    os.mkfifo(code / "data/pipe")
    write(code, ".gitignore", "data/\n")
    assert left_out(list_path(code, "here")) == {"data/": "named in .gitignore"}


def test_an_archive_of_a_folder(code: Path) -> None:
    write(code.parent, "lib/a.py", "a = 1\n")
    write(code.parent, "lib/.env", "SECRET=1\n")

    def archive() -> FileList:
        return list_merged(code, [code.parent / "lib.zip"], code.parent, "here")

    first = archive()
    assert list(first.files) == ["lib.zip", "main.py"]
    assert left_out(first) == {"lib.zip/lib/.env": upload_exclusions.SETTINGS}
    with zipfile.ZipFile(first.files["lib.zip"]) as opened:
        assert opened.namelist() == ["lib/", "lib/a.py"]
    os.utime(code.parent / "lib/a.py", (1, 1))
    assert archive().files["lib.zip"].read_bytes() == first.files["lib.zip"].read_bytes()


def test_what_is_included_may_lie_anywhere_and_so_may_its_links(code: Path, tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/lib/a.py", "")
    write(tmp_path, "elsewhere/lib/inner/b.py", "")
    (tmp_path / "elsewhere/lib/inside").symlink_to("inner")
    (tmp_path / "elsewhere/lib/project").symlink_to(code / "main.py")
    (tmp_path / "elsewhere/lib/outside").symlink_to("../other")
    write(tmp_path, "elsewhere/other/c.py", "")
    listed = list_merged(code, [tmp_path / "elsewhere/lib"], code.parent, "here")
    own = ["lib/a.py", "lib/inner/b.py", "lib/inside/b.py", "lib/outside/c.py", "lib/project"]
    assert list(listed.files) == [*own, "main.py"]
    assert not listed.left_out


def test_a_secret_that_is_included_by_name_stays(code: Path) -> None:
    write(code.parent, ".env", "")
    listed = list_merged(code, [code.parent / ".env"], code.parent, "here")
    assert (list(listed.files), left_out(listed)) == (["main.py"], {".env": upload_exclusions.SETTINGS})


def test_links_stand_for_the_files(code: Path, tmp_path: Path) -> None:
    write(code, "part/tool.py", "x = 1\n")
    copy_links(list_path(code, "here").files, tmp_path / "links")
    assert (tmp_path / "links/part/tool.py").read_text() == "x = 1\n"
    with pytest.raises(InputError, match="has the name of a folder"):
        copy_links({"a": code / "main.py", "a/b": code / "main.py"}, tmp_path / "clash")


NAMES = ("a", "b.py", "data", "x.bin", ".hidden")
RULES = (
    "*", "!*", "a", "/a", "a/", "data/", "data/*", "data/**", "**/b.py", "*.py", "!b.py", "!/data/b.py", "/[a-b]*",
    ".*", "lib/a", "!lib", "lib/", "note.py", "data/?", "[!d]*", "# note", "", "x.bin ", "a/**/b.py", "**", "**/",
    "!a/", "/data/a", "..", "da*", "?",
)  # fmt: skip

paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
ignore_files = st.lists(st.sampled_from(RULES), max_size=4).map("\n".join)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, str]:
    """Files with their content, among them ignore files at any depth; no name is a file's and a folder's."""
    found = dict.fromkeys(draw(st.lists(paths, min_size=1, max_size=12)), "x")
    folders = ["", *(str(parent) for path in found for parent in Path(path).parents if str(parent) != ".")]
    for folder in draw(st.lists(st.sampled_from(folders), max_size=3)):
        name = draw(st.sampled_from([".amlignore", ".gitignore"]))
        found[f"{folder}/{name}".lstrip("/")] = draw(ignore_files)
    parents = {str(parent) for path in found for parent in Path(path).parents}
    return {path: text for path, text in found.items() if path not in parents}


def _written(folder: Path, tree: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def _of_the_sdk(code: Path | None, includes: list[str], base: Path) -> set[str]:
    """What the SDK by itself would upload."""
    from azure.ai.ml._utils._asset_utils import get_upload_files_from_folder
    from azure.ai.ml.entities._component._additional_includes import AdditionalIncludes
    from azure.ai.ml.entities._component.code import ComponentIgnoreFile

    value: Any = str(code) if code else None
    merged = AdditionalIncludes(origin_code_value=value, base_path=base, configs=list(includes))
    with merged.merge_local_code_and_additional_includes() as folder:
        found = get_upload_files_from_folder(folder, ignore_file=ComponentIgnoreFile(folder))
        return {name.lstrip("/") for _, name in found}


@given(tree=trees(), included=trees(), beside=ignore_files, has_code=st.booleans())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_included_is_ignored_as_by_the_sdk(
    tmp_path_factory: pytest.TempPathFactory,
    tree: dict[str, str],
    included: dict[str, str],
    beside: str,
    has_code: bool,
) -> None:
    base = tmp_path_factory.mktemp("tree")
    code = _written(base / "code", tree) if has_code else None
    (base / ".amlignore").write_text(beside)
    _written(base / "lib", included)
    (base / "note.py").write_text("x")
    includes = [base / "lib", base / "note.py"]
    listed = list_merged(code, includes, base, "here")
    assert set(listed.files) == _of_the_sdk(code, [str(path) for path in includes], base)


@given(tree=trees())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_sdk_hashes_and_uploads_the_list(tmp_path_factory: pytest.TempPathFactory, tree: dict[str, str]) -> None:
    """The hash is the one that the SDK by itself gives a folder with nothing to leave out."""
    from azure.ai.ml._utils._asset_utils import get_content_hash, get_upload_files_from_folder
    from azure.ai.ml.entities._assets import Code

    code = _written(tmp_path_factory.mktemp("tree") / "code", tree)
    listed = list_path(code, "here").files
    assume(listed)
    clean = _written(code.parent / "clean", {name: path.read_text() for name, path in listed.items()})
    write(code, ".env", "SECRET=1\n")
    with session():
        made = Code(path=str(code))
        assert Path(made.path).name == "code"
        sent = {name.lstrip("/") for _, name in get_upload_files_from_folder(made.path, ignore_file=made._ignore_file)}
        assert sent == set(listed)
        assert made._hash_sha256 == get_content_hash(clean)
