"""The one list of what leaves the machine: the files of a component's code, or of an environment's build context.

Snapshots, `allranks submit`, `allranks register` and `allranks export` all use it. It is the list that azure-ai-ml
would upload, with its reading of ignore files, less what `never_sent` names and less links that leave the project.

A project is the nearest folder, from the code upwards, that has one of `PROJECT_MARKS`, or else the code folder. What a
component names (`code`, `additional_includes`) may lie anywhere: links may lead into these folders and the project.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.sdk import never_sent
from allranks.sdk.ignore_rules import NAMES, NO_RULES, IgnoreRules, read_rules, rules_of
from allranks.sdk.paths import shown

PROJECT_MARKS = (".git", "pyproject.toml", "allranks.yaml", ".allranks")

MOST_FILES = 250_000
"""Of a list, and of what is looked at through links: links among folders can multiply files without end."""

LINK_BACK = "a link back to a folder that it is in"
_FIX = "remove it, or name it in .amlignore"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class LeftOut:
    """What does not leave the machine. name: as in the list; a folder's ends with a slash, and stands for all in it."""

    name: str
    reason: str


@dataclass(frozen=True)
class FileList:
    """What leaves the machine.

    files:    the files on this machine by the names that they get, in order of these names
    left_out: what lies beside them and stays
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()

    def size(self) -> int:
        """Return the size of all files in bytes."""
        return sum(path.stat().st_size for path in self.files.values())

    def below(self, folder: str) -> FileList:
        """Return the list with its names in a folder."""
        files = {f"{folder}/{name}": path for name, path in self.files.items()}
        return FileList(files, tuple(LeftOut(f"{folder}/{one.name}", one.reason) for one in self.left_out))


def project_of(folder: Path) -> Path:
    """Return the project that a folder is in."""
    folder = folder.resolve()
    marked = (parent for parent in (folder, *folder.parents) if any((parent / mark).exists() for mark in PROJECT_MARKS))
    return next(marked, folder)


def list_path(path: Path, where: str, without: Collection[Path] = ()) -> FileList:
    """Return what the SDK would upload of a folder, or of a single file, less what may not leave the machine.

    where:   the place that messages name
    without: folders in it that are left out without a word: those that snapshots are written to

    Raise InputError if something cannot be read.
    """
    path = Path(os.path.abspath(path))
    if not path.is_dir():
        return _listed(path, path.name, _Ignored(), (path.parent,), where, without)
    path = path.resolve()
    return _listed(path, "", _Ignored(((str(path), rules_of(path)),)), (path,), where, without)


def list_merged(
    code: Path | None, includes: Sequence[Path], base: Path, scratch: Path, where: str, without: Collection[Path] = ()
) -> FileList:
    """Return what the SDK would upload of code with its additional includes, less what may not leave the machine.

    code:     a folder or a file; None: the includes alone
    includes: folders, files, and archives to be made, as `is_archive` tells them
    base:     the folder of the component's spec; its ignore file counts where there is no code
    scratch:  a folder for archives

    The SDK's rules differ from those of a folder without includes: ignore files below the first one count too, each
    for its own folder, and the first one counts for every include, as if that lay beside it. In the end that of the
    merged folder counts for all of it. Raise InputError if something cannot be read.
    """
    if not includes:
        return list_path(code, where, without) if code else FileList()
    roots = (code or base, *(include for include in includes if include.exists()))
    lists = []
    root_rules = NO_RULES
    if code is None:
        root_rules = rules_of(base)
    elif code.is_dir():
        root_rules = rules_of(code)
        lists.append(_listed(code, "", _Ignored(((str(code), root_rules),), nested=True), roots, where, without))
    else:
        lists.append(_listed(code, code.name, _Ignored(nested=True), roots, where, without))
    for include in includes:
        ignored = _Ignored(((str(include.parent), root_rules),), nested=True)
        if is_archive(include):
            unpacked = include.with_suffix("")
            flat = replace(ignored.inside(unpacked), nested=False)
            found = _listed(unpacked, unpacked.name, flat, (*roots, unpacked), where, without)
            archive = _packed(found.files, unpacked.name, scratch, include.name)
            lists.append(FileList({include.name: archive}, found.below(include.name).left_out))
        else:
            inner = ignored.inside(include) if include.is_dir() else ignored
            lists.append(_listed(include, include.name, inner, roots, where, without))
    files = {name: path for one in lists for name, path in one.files.items()}
    merged = FileList(dict(sorted(files.items())), tuple(left for one in lists for left in one.left_out))
    return _without_ignored(merged)


def is_archive(include: Path) -> bool:
    """Return whether an additional include is an archive that the SDK makes: `lib.zip`, where there is a folder
    `lib`."""
    return include.suffix == ".zip" and not include.exists() and include.with_suffix("").is_dir()


def copy_links(files: Mapping[str, Path], into: Path) -> None:
    """Make a folder that has exactly these files, as links to them. Raise InputError if two are in the way."""
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
    """The ignore files that count in a folder.

    rules:  each with the folder that its names are relative to
    nested: whether those of the folders in it count too, each for its own
    """

    rules: tuple[tuple[str, IgnoreRules], ...] = ()
    nested: bool = False

    def inside(self, folder: Path) -> _Ignored:
        """Return what counts in a folder that is about to be read."""
        rules = rules_of(folder)
        return replace(self, rules=(*self.rules, (str(folder), rules))) if rules.patterns else self

    def file_that_names(self, entry: _Entry, folder: bool) -> str:
        """Return the name of the ignore file that leaves a file, or all of a folder, out; or "".

        Without nesting the SDK asks for each file by itself, and by the folder that it really is in. By its name too,
        so that a copy of what is listed gives the same list.
        """
        paths = {str(entry.path)} if self.nested else {str(entry.path), entry.real}
        for base, rules in self.rules:
            for name in (os.path.relpath(path, base) for path in paths if rules.patterns):
                # Of a folder the SDK asks by itself where ignore files nest.
                if (folder and rules.exclude_all_in(name)) or ((self.nested or not folder) and rules.exclude(name)):
                    return rules.file
        return ""


@dataclass(frozen=True)
class _Entry:
    """A file or folder to look at.

    name:    in the list
    real:    where it really is, but for a link at its end
    parents: the folders that it is in, by device and number
    linked:  whether one of these is a link
    """

    path: Path
    name: str
    real: str
    ignored: _Ignored
    parents: frozenset[tuple[int, int]] = frozenset()
    linked: bool = False


@dataclass(frozen=True)
class _Bounds:
    """Where links may lead, real paths: the innermost first."""

    roots: tuple[str, ...]

    def why_left(self, target: str) -> str:
        """Return why a link to the target is left out, or ""."""
        root = next((root for root in self.roots if target == root or target.startswith(root.rstrip("/") + "/")), None)
        if root is None:
            return f"a link that leaves the project, to {target}"
        reasons = (never_sent.why_name(part, folder=True) for part in os.path.relpath(target, root).split(os.sep))
        return next((reason for reason in reasons if reason), "")


def _listed(
    path: Path, name: str, ignored: _Ignored, roots: Sequence[Path], where: str, without: Collection[Path]
) -> FileList:
    """Return what of a path leaves the machine. name: its own in the list; "" for the folder that becomes the list."""
    real_roots = [os.path.realpath(root) for root in (path if path.is_dir() else path.parent, *roots)]
    bounds = _Bounds((*real_roots, str(project_of(Path(real_roots[1])))))
    walk = _Walk(bounds, frozenset(os.path.realpath(folder) for folder in without))
    # What is named itself may be a link that leads anywhere.
    walk.all_below(_Entry(path, name, os.path.realpath(path), ignored))
    if walk.problems:
        raise InputError.of(Problem(where, found, "files that can be read", _FIX) for found in walk.problems)
    return FileList(dict(sorted(walk.files.items())), tuple(sorted(walk.left_out, key=lambda one: one.name)))


class _Walk:
    """Goes through a folder. Nothing in it is opened but regular files, and no folder is entered from within itself."""

    def __init__(self, bounds: _Bounds, without: Collection[str]) -> None:
        self.bounds = bounds
        self.without = without
        self.files: dict[str, Path] = {}
        self.left_out: list[LeftOut] = []
        self.problems: list[str] = []
        self._waiting: list[_Entry] = []
        self._linked = 0

    def all_below(self, root: _Entry) -> None:
        """Add a file, or what is in a folder."""
        self._waiting = [root]
        while self._waiting:
            entry = self._waiting.pop()
            try:
                self._look_at(entry, first=entry is root)
            except OSError as error:
                self.problems.append(f"{shown(entry.path)} cannot be read: {error.strerror or error}")
            self._linked += entry.linked
            if max(len(self.files), self._linked) > MOST_FILES:
                found = f"more than {MOST_FILES:,} files; links among folders multiply them"
                raise InputError(Problem(shown(root.path), found, "code", "name what is no code in .amlignore"))

    def _look_at(self, entry: _Entry, *, first: bool) -> None:
        unnamed = first and not entry.name
        folder = entry.path.is_dir()
        if not unnamed and (reason := never_sent.why_name(entry.path.name, folder=True)):
            self._leave_out(entry, reason, folder)
            return
        linked = entry.path.is_symlink() and not first
        if linked and (reason := self.bounds.why_left(os.path.realpath(entry.path))):
            self._leave_out(entry, reason, folder)
            return
        ignored = entry.ignored
        if folder and ignored.nested and not first:
            ignored = ignored.inside(entry.path)
        if file := ignored.file_that_names(entry, folder):
            self._leave_out(entry, f"named in {file}", folder)
        elif folder:
            self._look_into(replace(entry, ignored=ignored))
        else:
            self._add(entry)

    def _look_into(self, entry: _Entry) -> None:
        info = entry.path.stat()
        here = (info.st_dev, info.st_ino)
        real = os.path.realpath(entry.path)
        if here in entry.parents:
            self._leave_out(entry, LINK_BACK, folder=True)
            return
        if real in self.without:
            return
        names = sorted(os.listdir(entry.path))
        if entry.name and (reason := never_sent.why_folder(names)):
            self._leave_out(entry, reason, folder=True)
            return
        parents, linked = entry.parents | {here}, entry.linked or (bool(entry.parents) and entry.path.is_symlink())
        for name in reversed(names):
            inner = f"{entry.name}/{name}" if entry.name else name
            self._waiting.append(
                _Entry(entry.path / name, inner, os.path.join(real, name), entry.ignored, parents, linked)
            )

    def _add(self, entry: _Entry) -> None:
        info = entry.path.stat()
        if not stat.S_ISREG(info.st_mode):
            # Opening a pipe would wait for its other end.
            raise OSError(0, "it is no regular file", str(entry.path))
        reasons = (never_sent.why_file(path) for path in {entry.path, Path(os.path.realpath(entry.path))})
        if reason := next((reason for reason in reasons if reason), ""):
            self._leave_out(entry, reason, folder=False)
        else:
            self.files[entry.name] = entry.path

    def _leave_out(self, entry: _Entry, reason: str, folder: bool) -> None:
        self.left_out.append(LeftOut(f"{entry.name or '.'}/" if folder else entry.name, reason))


def _without_ignored(merged: FileList) -> FileList:
    """Return the merged folder less what the ignore file in it names."""
    file = next((merged.files[name] for name in NAMES if name in merged.files), None)
    if file is None:
        return merged
    rules = read_rules(file)
    ignored = [name for name in merged.files if rules.exclude(name)]
    left_out = (*merged.left_out, *(LeftOut(name, f"named in {rules.file}") for name in ignored))
    return FileList({name: path for name, path in merged.files.items() if name not in set(ignored)}, left_out)


def _packed(files: Mapping[str, Path], root: str, scratch: Path, name: str) -> Path:
    """Pack files as the SDK does, without their times: the same content is the same archive."""
    path = scratch / f"{len(os.listdir(scratch))}-{name}"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo(f"{root}/", _LONG_AGO), b"")
        for inner, source in sorted(files.items()):
            info = zipfile.ZipInfo(inner, _LONG_AGO)
            info.external_attr = (0o755 if source.stat().st_mode & stat.S_IXUSR else 0o644) << 16
            archive.writestr(info, source.read_bytes())
    return path
