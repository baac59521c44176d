"""List the files to upload: those of a component's code, or of an environment's build context.

Snapshots, `allranks submit` and `allranks register` all use this list. It contains the files that azure-ai-ml would
upload, with its interpretation of ignore files, except those that `upload_exclusions` names. All links are followed.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from allranks.errors import InputError, Problem, raise_any
from allranks.sdk import upload_exclusions
from allranks.sdk.paths import shown
from allranks.sdk.upload_exclusions import NO_RULES, IgnoreRules, rules_among, rules_of

MOST_FILES = 250_000
"""Limit for a list, and for entries visited through links, which can multiply files without end."""

LINK_BACK = "a link back to a folder that it is in"
_FIX = "remove it, or add it to .amlignore"
_EARLIEST_TIME = (1980, 1, 1, 0, 0, 0)


_NAMED = 5
"""Maximum number of names per reason in a message."""


@dataclass(frozen=True)
class FileList:
    """The files to upload.

    files:    local paths by their names in the upload, sorted by name
    left_out: reasons why files and folders next to them are not uploaded, by name; a folder's name ends with a slash
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.files.values())

    def left_out_text(self) -> str:
        """Return the excluded names by reason, in one line; "" if there are none."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            by_reason.setdefault(reason, []).append(name)
        return "; ".join(
            f"{', '.join(names[:_NAMED])}{f' and {len(names) - _NAMED:,} more' if names[_NAMED:] else ''} ({reason})"
            for reason, names in by_reason.items()
        )

    def below(self, folder: str) -> FileList:
        """Return the list with all names moved into a folder."""
        files = {f"{folder}/{name}": path for name, path in self.files.items()}
        return FileList(files, {f"{folder}/{name}": reason for name, reason in self.left_out.items()})


def list_path(path: Path, where: str, without: Collection[Path] = ()) -> FileList:
    """Return the files that the SDK would upload of a folder or a file, except those that may not leave the machine.

    where:   the place, for messages
    without: folders of snapshots, which are omitted and not listed in `left_out`

    Raise InputError if a file cannot be read.
    """
    path = Path(os.path.abspath(path))
    if not path.is_dir():
        return _listed(path, path.name, _Ignored(), where, without)
    path = path.resolve()
    return _listed(path, "", _Ignored(((str(path), rules_of(path)),)), where, without)


def list_merged(
    code: Path | None, includes: Sequence[Path], base: Path, where: str, without: Collection[Path] = ()
) -> FileList:
    """Return the files that the SDK would upload of code with additional includes, except those that `list_path` omits.

    code:     a folder or a file; None for only the includes
    includes: folders, files, and archives to create (see `is_archive`)
    base:     the folder of the component's spec; its ignore file applies if there is no code

    With includes, the SDK also applies nested ignore files, each to its own folder. The ignore file of the code or base
    folder also applies to every include, as if it were next to the include. Finally, the ignore file in the merged
    folder applies to all of it. Raise InputError if a file cannot be read.
    """
    if not includes:
        return list_path(code, where, without) if code else FileList()
    lists = []
    root_rules = NO_RULES
    if code is None:
        root_rules = rules_of(base)
    elif code.is_dir():
        root_rules = rules_of(code)
        lists.append(_listed(code, "", _Ignored(((str(code), root_rules),), nested=True), where, without))
    else:
        lists.append(_listed(code, code.name, _Ignored(nested=True), where, without))
    for include in includes:
        ignored = _Ignored(((str(include.parent), root_rules),), nested=True)
        if is_archive(include):
            unpacked = include.with_suffix("")
            flat = replace(ignored.inside(unpacked), nested=False)
            unpacked_list = _listed(unpacked, unpacked.name, flat, where, without)
            archive = _packed(unpacked_list.files, unpacked.name, include.name)
            lists.append(FileList({include.name: archive}, unpacked_list.below(include.name).left_out))
        else:
            inner = ignored.inside(include) if include.is_dir() else ignored
            lists.append(_listed(include, include.name, inner, where, without))
    files = {name: path for file_list in lists for name, path in file_list.files.items()}
    left_out = {name: reason for file_list in lists for name, reason in file_list.left_out.items()}
    rules = rules_among(files)
    excluded = sorted(filter(rules.exclude, files))
    left_out |= dict.fromkeys(excluded, f"named in {rules.file}")
    return FileList({name: files[name] for name in sorted(files.keys() - excluded)}, left_out)


def is_archive(include: Path) -> bool:
    """Return whether the SDK creates an additional include as an archive: `lib.zip` of an existing folder `lib`."""
    return include.suffix == ".zip" and not include.exists() and include.with_suffix("").is_dir()


def copy_links(files: Mapping[str, Path], into: Path) -> None:
    """Create a folder that contains exactly these files, as links. Raise InputError if two names conflict."""
    into.mkdir(parents=True)
    for name, path in files.items():
        target = into / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(os.path.realpath(path))
        except (FileExistsError, NotADirectoryError):
            found = "a file of the code, or of what it includes, has the name of a folder of another"
            raise InputError(Problem(shown(path), found, "one of each name", "rename one")) from None


@dataclass(frozen=True)
class _Ignored:
    """The ignore files that apply in a folder.

    rules:  pairs of the folder of an ignore file and its rules
    nested: whether the ignore files of subfolders also apply, each to its folder
    """

    rules: tuple[tuple[str, IgnoreRules], ...] = ()
    nested: bool = False

    def inside(self, folder: Path) -> _Ignored:
        """Return these ignore files and that of the folder."""
        rules = rules_of(folder)
        return replace(self, rules=(*self.rules, (str(folder), rules))) if rules.patterns else self

    def file_that_names(self, entry: _Entry, folder: bool) -> str:
        """Return the name of the ignore file that excludes a file or a whole folder; "" if there is none.

        Without nesting, the SDK matches each file by the real path of its folder. The path in the list is also matched,
        so that a copy of the listed files gives the same list.
        """
        paths = {str(entry.path)} if self.nested else {str(entry.path), entry.real}
        for base, rules in self.rules:
            for name in (os.path.relpath(path, base) for path in paths if rules.patterns):
                # The SDK only matches folders if ignore files are nested.
                if (folder and rules.exclude_all_in(name)) or ((self.nested or not folder) and rules.exclude(name)):
                    return rules.file
        return ""


@dataclass(frozen=True)
class _Entry:
    """A file or folder to visit.

    name:    in the list
    real:    its real path, with a link at the end unresolved
    parents: the enclosing folders, by device and inode
    linked:  whether one of them is a link
    """

    path: Path
    name: str
    real: str
    ignored: _Ignored
    parents: frozenset[tuple[int, int]] = frozenset()
    linked: bool = False


def _listed(path: Path, name: str, ignored: _Ignored, where: str, without: Collection[Path]) -> FileList:
    """Return the files to upload of a path. name: its name in the list; "" for the root folder"""
    root = os.path.realpath(path if path.is_dir() else path.parent)
    if os.path.realpath(path) == os.sep:  # listing files up to the limit would take minutes
        found = "/ is the whole file system of this machine"
        raise InputError(Problem(where, found, "a folder with code", "correct the path of the code"))
    walk = _Walk(root, frozenset(os.path.realpath(folder) for folder in without))
    # The path itself may be a link to any folder.
    walk.all_below(_Entry(path, name, os.path.realpath(path), ignored))
    expected = "files that can be read"
    raise_any(Problem(where, found, expected, _FIX, code="unreadable-code") for found in walk.problems)
    return FileList(dict(sorted(walk.files.items())), dict(sorted(walk.left_out.items())))


class _Walk:
    """A traversal of a folder. It opens only regular files, and never enters a folder from within itself.

    root: the real path of the folder
    """

    def __init__(self, root: str, without: Collection[str]) -> None:
        self.root = root
        self.without = without
        self.files: dict[str, Path] = {}
        self.left_out: dict[str, str] = {}
        self.problems: list[str] = []
        self._pending: list[_Entry] = []
        self._linked = 0

    def all_below(self, root: _Entry) -> None:
        """Add a file, or the content of a folder."""
        self._pending = [root]
        while self._pending:
            entry = self._pending.pop()
            try:
                self._visit(entry, first=entry is root)
            except OSError as error:
                self.problems.append(f"{shown(entry.path)} cannot be read: {error.strerror or error}")
            self._linked += entry.linked
            if max(len(self.files) + len(self.left_out) + len(self.problems), self._linked) > MOST_FILES:
                found = f"more than {MOST_FILES:,} files; links among folders multiply them"
                raise InputError(Problem(shown(root.path), found, "code", "add what is not code to .amlignore"))

    def _visit(self, entry: _Entry, *, first: bool) -> None:
        unnamed = first and not entry.name
        folder = entry.path.is_dir()
        if not unnamed and (reason := upload_exclusions.why_name(entry.path.name, folder=True)):
            self._leave_out(entry, reason, folder)
            return
        linked = entry.path.is_symlink() and not first
        if linked and (reason := self._why_left(os.path.realpath(entry.path))):
            self._leave_out(entry, reason, folder)
            return
        ignored = entry.ignored
        if folder and ignored.nested and not first:
            ignored = ignored.inside(entry.path)
        if file := ignored.file_that_names(entry, folder):
            self._leave_out(entry, f"named in {file}", folder)
        elif folder:
            self._visit_folder(replace(entry, ignored=ignored))
        else:
            self._add_file(entry)

    def _why_left(self, target: str) -> str:
        """Return why a link to the target is excluded, by the names on the path to it; "" if it is not."""
        parts = os.path.relpath(target, os.path.commonpath((self.root, target))).split(os.sep)
        return next(filter(None, (upload_exclusions.why_name(part, folder=True) for part in parts)), "")

    def _visit_folder(self, entry: _Entry) -> None:
        info = entry.path.stat()
        here = (info.st_dev, info.st_ino)
        real = os.path.realpath(entry.path)
        if here in entry.parents:
            self._leave_out(entry, LINK_BACK, folder=True)
            return
        if real in self.without:
            return
        names = sorted(os.listdir(entry.path))
        if entry.name and (reason := upload_exclusions.why_folder(names)):
            self._leave_out(entry, reason, folder=True)
            return
        parents, linked = entry.parents | {here}, entry.linked or (bool(entry.parents) and entry.path.is_symlink())
        for name in reversed(names):
            inner = f"{entry.name}/{name}" if entry.name else name
            self._pending.append(
                _Entry(entry.path / name, inner, os.path.join(real, name), entry.ignored, parents, linked)
            )

    def _add_file(self, entry: _Entry) -> None:
        info = entry.path.stat()
        if not stat.S_ISREG(info.st_mode):
            # Opening a FIFO would block.
            raise OSError(0, "it is not a regular file", str(entry.path))
        reasons = (upload_exclusions.why_file(path) for path in {entry.path, Path(os.path.realpath(entry.path))})
        if reason := next((reason for reason in reasons if reason), ""):
            self._leave_out(entry, reason, folder=False)
        else:
            self.files[entry.name] = entry.path

    def _leave_out(self, entry: _Entry, reason: str, folder: bool) -> None:
        self.left_out[f"{entry.name or '.'}/" if folder else entry.name] = reason


@functools.cache
def _archives() -> str:
    """Return the folder for archives, which is removed when this process ends."""
    folder = tempfile.mkdtemp(prefix="allranks-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _packed(files: Mapping[str, Path], root: str, name: str) -> Path:
    """Create an archive like the SDK, but without file times, so that equal content gives equal archives."""
    path = Path(tempfile.mkdtemp(dir=_archives()), name)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"{root}/", _EARLIEST_TIME), b"")
        for inner, source in sorted(files.items()):
            info = zipfile.ZipInfo(inner, _EARLIEST_TIME)
            info.external_attr = (0o755 if source.stat().st_mode & stat.S_IXUSR else 0o644) << 16
            archive.writestr(info, source.read_bytes())
    return path
