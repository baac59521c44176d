"""Exclude files from uploads: those that are never uploaded, and those that an ignore file excludes.

Version control, allranks workspaces, secrets, keys, caches and virtual environments are never uploaded. No ignore file
can include them again. A job that needs a secret gets it from Azure Key Vault, and a job that needs a package gets it
from its environment. `node_modules` is not excluded, because Node only finds packages next to the code.

The SDK reads the ignore file of one folder, `.amlignore` before `.gitignore`, and matches relative names as strings.
The last matching rule decides. The SDK never reads ignore files of parent folders.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.sdk import internals
from allranks.sdk.paths import shown

VERSION_CONTROL = "version control"
WORKSPACE = "a workspace of allranks"
SETTINGS = "settings with secrets"
KEY = "a private key"
CREDENTIALS = "a file with credentials"
CACHE = "a cache"
VIRTUAL_ENVIRONMENT = "a virtual environment"

_NAMES = {
    VERSION_CONTROL: (".git", ".hg", ".svn"),
    WORKSPACE: (".allranks",),
    CACHE: (
        "__pycache__", ".cache", ".hypothesis", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pytest_cache",
        ".ruff_cache", ".tox", ".ds_store",
    ),
    VIRTUAL_ENVIRONMENT: (".venv", ".venvs"),
    # As in github/gitignore: `.env` and its variants, but not its templates.
    SETTINGS: (".env", ".env.*", ".envrc"),
    CREDENTIALS: (".aws", ".azure", ".docker", ".gnupg", ".kube", ".ssh"),
}  # fmt: skip
"""Names of files and folders, in lower case."""

_FILES = {
    # Names and endings by which scanners of repositories find keys (gitrob, core/signatures.go).
    KEY: (
        "*_rsa", "*_dsa", "*_ecdsa", "*_ed25519", "*_ecdsa_sk", "*_ed25519_sk", "*.pem", "*.key", "*.ppk", "*.p12",
        "*.pfx", "*.pkcs12", "*.jks", "*.keystore", "*.kdbx",
    ),
    # Files with passwords and tokens of Git, PyPI, npm, Docker, cloud providers, Hugging Face, Kaggle, Streamlit.
    CREDENTIALS: (
        ".netrc", "_netrc", ".git-credentials", ".pypirc", ".npmrc", ".dockercfg", ".pgpass", ".s3cfg", ".boto",
        ".htpasswd", ".databrickscfg", "credentials", "credentials.json", "client_secret*.json",
        "service_account*.json", "service-account*.json", "application_default_credentials.json", "kaggle.json",
        "accesstokens.json", "msal_token_cache.*", "*.publishsettings", "secrets.toml", "secrets.json", "secrets.yaml",
        "secrets.yml", "terraform.tfstate", "terraform.tfstate.*",
    ),
}  # fmt: skip
"""Names of files only: a package may be called `credentials`."""

_TEMPLATES = (".env.example", ".env.sample", ".env.template", ".env.dist")

_MARKS = {"allranks.db": WORKSPACE, "pyvenv.cfg": VIRTUAL_ENVIRONMENT, "conda-meta": VIRTUAL_ENVIRONMENT}
"""Entries that identify a folder, whatever its name is. `pyvenv.cfg`: PEP 405."""

_HEAD = 4096
_KEY_TEXT = re.compile(
    rb"\s*(?:-----BEGIN [A-Z0-9 ]*PRIVATE KEY|PuTTY-User-Key-File-|---- BEGIN SSH2 ENCRYPTED PRIVATE)"
)
"""The beginning of a private key, as in pre-commit's detect-private-key."""

_CERTIFICATE = re.compile(rb"-----BEGIN (?:TRUSTED )?CERTIFICATE-----")
_LARGEST_CERTIFICATE = 4 << 20


def why_name(name: str, folder: bool) -> str:
    """Return why a file or folder of that name is never uploaded; "" if it may be."""
    name = name.lower()
    if name in _TEMPLATES:
        return ""
    tables = (_NAMES,) if folder else (_NAMES, _FILES)
    for table in tables:
        for reason, patterns in table.items():
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                return reason
    return ""


def why_folder(names: Iterable[str]) -> str:
    """Return why a folder with these entries is never uploaded; "" if it may be."""
    return next((_MARKS[name] for name in names if name in _MARKS), "")


def why_file(path: Path) -> str:
    """Return why a regular file is never uploaded, by its name and its first bytes; "" if it may be.

    A `.pem` file with certificates and no key may be uploaded. Raise OSError if the file cannot be read.
    """
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if _KEY_TEXT.match(head):
        return KEY
    reason = why_name(path.name, folder=False)
    return "" if reason == KEY and path.suffix.lower() == ".pem" and _has_only_certificates(path) else reason


def _has_only_certificates(path: Path) -> bool:
    with open(path, "rb") as file:
        content = file.read(_LARGEST_CERTIFICATE + 1)
    return len(content) <= _LARGEST_CERTIFICATE and bool(_CERTIFICATE.search(content)) and b"PRIVATE KEY" not in content


_IGNORE_FILES = (".amlignore", ".gitignore")
"""The SDK only reads the first one that exists."""


@dataclass(frozen=True)
class IgnoreRules:
    """The rules of one file.

    file:     its name, for messages
    patterns: the SDK's own patterns, in the file's order
    """

    file: str = ""
    patterns: tuple[Any, ...] = ()

    def exclude(self, name: str) -> bool:
        """Return whether a file is excluded. name: relative to the folder of the rules; "." is that folder."""
        excluded = False
        for pattern in self.patterns:
            if pattern.match_file(name) is not None:
                excluded = pattern.include
        return excluded

    def exclude_all_in(self, folder: str) -> bool:
        """Return whether all files in a folder are excluded, so that it need not be read.

        A rule that matches a folder's name, with or without a slash at its end, matches all of its content. A later
        rule with an exclamation mark can include single files again.
        """
        whole = False
        for pattern in self.patterns:
            matches = any(pattern.match_file(name) is not None for name in (folder, f"{folder}/"))
            whole = pattern.include and (whole or matches)
        return whole and folder != "."


NO_RULES = IgnoreRules()


def rules_of(folder: Path) -> IgnoreRules:
    """Return the rules of the ignore file in a folder. Raise InputError if it cannot be read."""
    return rules_among({name: folder / name for name in _IGNORE_FILES if (folder / name).exists()})


def rules_among(files: Mapping[str, Path]) -> IgnoreRules:
    """Return the rules of the ignore file among the files of an upload. Raise InputError if it cannot be read."""
    file = next((files[name] for name in _IGNORE_FILES if name in files), None)
    if file is None:
        return NO_RULES
    try:
        # Opening a FIFO would block.
        lines = internals.ignored_patterns(file) if file.is_file() else None
    except (OSError, ValueError) as error:
        raise InputError(Problem(shown(file), f"it cannot be read: {error}", "a text file in UTF-8")) from None
    if lines is None:
        raise InputError(Problem(shown(file), "it is not a file", "a text file with patterns"))
    return IgnoreRules(file.name, _patterns(file, lines))


def _patterns(file: Path, lines: Sequence[str]) -> tuple[Any, ...]:
    patterns = []
    for number, line in enumerate(lines, start=1):
        try:
            pattern = internals.GitWildMatchPattern(line)
        except ValueError as error:
            found = f"{line!r}, which is not a pattern: {error}"
            raise InputError(Problem(f"{shown(file)}:{number}", found, fix="correct the line")) from None
        if pattern.include is not None:
            patterns.append(pattern)
    return tuple(patterns)
