"""Detect and mask secrets: by the name of a variable or an option, and by their shape in a text.

All patterns of the project are in this file: signatures and keys that Azure and its libraries print, and the tokens of
services, by the prefix and the length that each service documents. Nothing is guessed, by entropy for example, because
a masked text must stay readable.
"""

import html
import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from urllib.parse import quote, quote_plus

MASK = "***"
"""The replacement for a secret."""

_CACHED = 1 << 12
"""Maximum length of a text whose result is cached: messages and settings recur, lines of logs do not."""

SHORTEST = 6
"""Minimum length of a value to search for in other texts. Shorter values occur by chance."""

_LONG_LINE = 16
"""Minimum length of a line of a value to search for without the other lines, such as a line of a private key."""

_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|(?:API|ACCESS|ACCOUNT|PRIVATE|SHARED)?KEY|SAS)"
    r"(?:_|$)"
    r"|CONNECTION_?STRING|_(?:PASS|PAT|PWD)$",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r"(?:^|_)(?:(?:BOS|CLS|EOS|IMAGE|MASK|MAX|MIN|NUM|PAD|PER|SEP|START|END|STOP|UNK)_TOKEN|TOKEN_(?:ID|COUNT)"
    r"|(?:CACHE|COLUMN|FEATURE|FOREIGN|GROUP|IMAGE|INDEX|LABEL|MASK|METRIC|PARTITION|PUBLIC|SORT|TEXT|TOKENIZER|VOCAB)_KEY"
    r")S?(?:_ID|_IDS)?$",
    re.IGNORECASE,
)
"""Names of a language model's tokens, of columns and of other keys that are not secret."""
_NEW_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|-")

# Excludes references to variables, bindings, placeholders such as VALUE, masked values, and words for no value.
_VALUE = r"(?!\$|\*\*\*|<|\.\.\.|(?i:none|null|true|false|value)(?:[\s,;)}\]'\"&]|$))"


@dataclass(frozen=True)
class Shape:
    """A kind of secret and its shape.

    signs:   a text without any of these, in lower case, has no such secret. Searching for them is much faster
    shape:   the group `before` is kept, the group `name` must be the name of a secret, and the rest is the secret
    """

    kind: str
    signs: tuple[str, ...]
    shape: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled shape. Compiling all of them would take 10 ms of every command."""
        return re.compile(self.shape)


_HEADER = r"\bauthorization[\"']?\s*[:=]\s*[\"']?"
_SCHEME = r"(?:bearer|basic(?= +\S{16})|sharedkey(?:lite)?)"
_KEYS = r"account|access|shared_?access|primary|secondary|storage|api|subscription|container_?registry"
_PASSWORDS = (
    r"shared_?access_?signature|sas_?(?:token|uri|url)|client_?secret|client_?assertion|password|passwd"
    # The shell's PWD is a folder.
    r"|pwd(?=[\"']?\s*[=:]\s*[\"']?[^/\s\"'])"
    r"|(?:access|auth|refresh|(?<![a-z])id|user_?aml)_?token|credential_?secret|instrumentation_?key|secret"
)
# Without "token", which is frequent in the logs of language models.
_TOKENS = " ".join(f"{name}token {name}_token" for name in ("sas", "access", "auth", "refresh", "id", "aml"))

_SHAPES = tuple(
    Shape(kind, tuple(signs.split()), shape)
    for kind, signs, shape in (
        (
            "a token in a header",
            "bearer basic sharedkey",
            rf"(?i)(?P<before>{_HEADER}(?:bearer|basic|sharedkey(?:lite)?)[ \t]+){_VALUE}[\w+/=.:~-]{{8,}}",
        ),
        # Without the header's name, "basic" and "bearer" may be prose: what follows must not be a word.
        (
            "a token in a header",
            "bearer basic sharedkey",
            rf"(?i)(?P<before>\b{_SCHEME}[ \t]+)(?=[\w+/.:~-]*[\d=])[\w+/=.:~-]{{8,}}",
        ),
        ("a JSON web token", "eyj", r"\beyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?"),
        # The address may be escaped twice.
        (
            "a shared access signature",
            "sig= sig%3d",
            rf"(?i)(?P<before>(?:[?&;\s\"']|%26|%3f|\b)sig(?:=|%3d)){_VALUE}[^&\s\"'<>;,)}}\]]+",
        ),
        (
            "a signature or token in an address",
            "signature= token=",
            rf"(?i)(?P<before>[?&](?:(?:x-(?:amz|goog)-)?signature|token)=){_VALUE}[^&\s\"'<>;,)}}\]]+",
        ),
        # Keys of connection strings, and names of keys and passwords in JSON, forms and variables.
        ("a key", "key", rf"(?i)(?P<before>(?:{_KEYS})_?key[\"']?\s*[=:]\s*[\"']?){_VALUE}[^;&\s\"',}}]+"),
        (
            "a password or token",
            f"signature secret assertion password passwd pwd instrumentation sasur sas_ur {_TOKENS}",
            rf"(?i)(?P<before>(?:{_PASSWORDS})[\"']?\s*[=:]\s*[\"']?){_VALUE}[^;&\s\"',}}]+",
        ),
        # Includes a user without a password, because personal tokens have this form. In an address of Azure Storage,
        # it is a container.
        (
            "a password in an address",
            "://",
            r"(?P<before>(?<!abfs)(?<!abfss)(?<!wasb)(?<!wasbs)://)(?!git@|\$|\*)[^/\s@:\"'$]+(?::(?!\$)[^/\s@\"']*)?(?=@)",
        ),
        # The key of a storage account has 64 bytes. Nothing else in a message has this shape.
        ("an account key", "==", r"(?<![\w+/])(?<!sha512-)[A-Za-z0-9+/]{86}=="),
        # The signature in keys of Azure services since 2024.
        ("a key of an Azure service", "jqqj9", r"\b[A-Za-z0-9]{52}JQQJ9[A-Za-z0-9]{19,}"),
        ("a client secret of Entra ID", "q~", r"(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
        (
            "a private key",
            "private",
            r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*-----|\Z)",
        ),
        ("a token of Hugging Face", "hf_ api_org_", r"\b(?:hf|api_org)_[A-Za-z0-9]{20,}"),
        ("a token of GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{20,}"),
        ("a token of GitHub", "github_pat_", r"github_pat_\w{36,}"),
        (
            "a token of GitLab",
            "glpat- gloas- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- glwt- glsoat- glffct-",
            r"gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[\w-]{20,}(?:\.[\w-]+)*",
        ),
        ("a token of GitLab", "gr1348941", r"GR1348941[\w-]{20,}"),
        ("a token of Databricks", "dapi", r"\bdapi[0-9a-f]{32}(?:-\d)?\b"),
        ("a key of Google", "aiza", r"\bAIza[\w-]{35}"),
        ("a key of Anthropic", "sk-ant-", r"\bsk-ant-[\w-]{20,}"),
        ("a key of OpenAI", "t3blbkfj", r"sk-[\w-]{16,200}T3BlbkFJ[\w-]{16,}"),
        ("an access key of AWS", "akia asia abia acca", r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}"),
        ("a token of PyPI", "pypi-age", r"pypi-AgE[\w-]{50,}"),
        ("a token of Slack", "xox xapp-", r"(?i)(?:xox[a-z]-|xapp-)\d+-[\w-]{8,}"),
        (
            "an address of Slack",
            "hooks.slack.com",
            r"(?i)(?P<before>hooks\.slack\.com/(?:services|triggers|workflows)/)[\w/]{20,}",
        ),
        ("a key of SendGrid", "sg.", r"SG\.[\w-]{22}\.[\w-]{43}"),
        ("a key of Stripe", "k_live_", r"[rs]k_live_[A-Za-z0-9]{24,}"),
        ("a secret of Square", "csp- atp-", r"sq\d(?:csp|atp)-[\w-]{22,}"),
        ("a key of Twilio", "sk", r"SK[a-z0-9]{32}"),
        ("a key of Mailchimp", "-us", r"[a-z0-9]{32}-us\d{1,2}"),
        ("a token of Discord", ".", r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}"),
        ("a token of Telegram", ":", r"\d{8,10}:[\w-]{35}"),
        # By the name: HF_TOKEN=..., --hf-token=..., and --hf-token ... if the next word is not prose.
        (
            "a secret",
            "=",
            rf"(?P<before>(?<![\w-])(?P<name>(?:--)?[A-Za-z](?=[A-Za-z0-9]{{0,80}}[_-])[\w-]{{1,80}})[\"']?=[\"']?){_VALUE}[^\s\"'&;,]{{4,}}",
        ),
        (
            "a secret",
            "--",
            rf"(?P<before>(?<![\w-])--(?P<name>[A-Za-z][\w-]*) [\"']?){_VALUE}(?!-)(?=\S*\d)[^\s\"'&;]{{6,}}",
        ),
    )
)

_OVER_LINES = re.compile(r"-----BEGIN")
"""The beginning of secrets that may extend over lines."""
_LITERAL_DIGITS = re.compile(r"T0BlbkFJ|JQQJ0|GR0000000|sha000-|%00|%0[df]", re.IGNORECASE)
"""Parts of shapes with literal digits, with 0 in place of each digit."""


def is_secret_name(name: str) -> bool:
    """Return whether a variable with this name contains a secret.

    HF_TOKEN, storage_key and accountKey do; TOKENIZERS_PARALLELISM and pad_token do not.
    """
    words = _NEW_WORD.sub("_", name)
    return _NAME.search(words) is not None and _NO_SECRET.search(words) is None


Mask = Callable[[str], str]
"""Return the replacement for a secret."""


def short(secret: str) -> str:  # noqa: ARG001
    """Return ``***``, which does not reveal the length of the secret."""
    return MASK


def same_length(secret: str) -> str:
    """Return as many asterisks as the secret has bytes in UTF-8, with its line ends: for a file whose offsets must not
    change."""
    return "".join(each if each in "\r\n" else "*" * len(each.encode("utf-8", "surrogateescape")) for each in secret)


def quoted(name: str, value: object) -> str:
    """Return a value in quotation marks for a message, without secrets: ``***`` if its name is that of a secret."""
    return MASK if is_secret_name(name) else redact(repr(value))


def redact(text: str, known: Iterable[str] = (), mask: Mask = short) -> str:
    """Return the text with ``***`` in place of every secret.

    known: values that are secret regardless of their shape, such as those of a step's variables
    mask:  the replacement, if it is not ``***``
    """
    text = replace_known(text, known, mask)
    return (_redacted if len(text) <= _CACHED else _redacted.__wrapped__)(text, mask)[0]


def replace_known(text: str, known: Iterable[str], mask: Mask = short) -> str:
    """Return the text with the known values masked in all their forms, except values too short to search for."""
    for form in forms(frozenset(known)):
        text = text.replace(form, mask(form))
    return text


@lru_cache(maxsize=1 << 7)
def forms(known: frozenset[str]) -> tuple[str, ...]:
    """Return the forms in which programs print the known values, the longest first, because one may be part of another.

    These are the values themselves, as literals of JSON and Python, in addresses, in HTML and in base64, and the lines
    of a multi-line value, which a logger may print with a prefix.
    """
    found: set[str] = set()
    for value in known:
        if len(value) < SHORTEST:
            continue
        lines = [line for line in value.splitlines() if len(line) >= _LONG_LINE and not line.startswith("-----")]
        for text in (value, *lines):
            data = text.encode("utf-8", "surrogateescape")
            found |= {text, repr(text)[1:-1], html.escape(text), quote(data), quote(data, safe=""), quote_plus(data)}
            found |= {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
            found |= {form for encode in (b64encode, urlsafe_b64encode) for form in _in_base64(data, encode)}
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


def _in_base64(data: bytes, encode: Callable[[bytes], bytes]) -> Iterator[str]:
    """Yield the part of a value in the base64 of a text that contains it, for each of the three alignments, such as the
    password in the header of an HTTP request."""
    for before in range(3):
        encoded = encode(bytes(before) + data).rstrip(b"=").decode()
        form = encoded[(0, 2, 3)[before] : len(encoded) - bool((before + len(data)) % 3)]
        if len(form) >= SHORTEST:
            yield form


def secrets_in(text: str) -> dict[str, str]:
    """Return the secrets with a known shape in the text, each with its kind."""
    return dict(_redacted(text, short)[1])


def may_have_secret(line: str) -> bool:
    """Return whether a line may have a secret with a known shape, given the line with 0 in place of every digit.

    Most shapes accept any digit, so the line is searched like any other text. The result is also True for shapes with
    literal digits, and if a secret may begin that extends over several lines.
    """
    exception = extends_over_lines(line) or _LITERAL_DIGITS.search(line)
    return bool(exception or _redacted.__wrapped__(line, short)[1])


def extends_over_lines(text: str) -> bool:
    """Return whether a secret may begin in the text and end in a later line, except for a value after "=" or ":"."""
    return _OVER_LINES.search(text) is not None


@lru_cache(maxsize=1 << 14)
def _redacted(text: str, mask: Mask) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the masked text, and each secret with its kind."""
    secrets: list[tuple[str, str]] = []
    lower = text.lower()
    for shape in _SHAPES:
        for sign in shape.signs:  # not any(): a generator takes five times as long
            if sign in lower:
                text = shape.pattern.sub(partial(_replacement, shape.kind, secrets, mask), text)
                break
    return text, tuple(secrets)


def _replacement(kind: str, secrets: list[tuple[str, str]], mask: Mask, match: re.Match[str]) -> str:
    groups = match.groupdict()
    before, name = groups.get("before") or "", groups.get("name")
    if name is not None and not is_secret_name(name.removeprefix("--")):
        return match[0]
    secret = match[0].removeprefix(before)
    secrets.append((secret, kind))
    return before + mask(secret)
