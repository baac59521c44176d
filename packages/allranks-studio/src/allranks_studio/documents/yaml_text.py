"""Change keys and values of a YAML text as a person would: in its own style, leaving the rest as it is."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import yaml

from allranks.sdk import bounded_yaml
from allranks_studio.documents.patches import Patch, applied
from allranks_studio.documents.rewiring import refused

Content: TypeAlias = str | int | float | bool | Sequence[str] | Mapping[str, "Content"] | None
"""What is written: a value, a list of texts, or keys and values."""

Item: TypeAlias = tuple[yaml.Node, yaml.Node]
"""A key and its value."""

_ORDER = ("inputs", "outputs", "settings", "jobs", "resources", "distribution", "compute", "limits")
"""The order of keys of pipelines and steps. A new one is added before the first of those after it, else as the last."""


class YamlText:
    """A text that is edited in several passes: keys are found by their paths, set, copied, renamed and removed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"

    def apply(self, *patches: Patch) -> None:
        self.text = applied(self.text, patches)
        vars(self).pop("root", None)

    @cached_property
    def root(self) -> yaml.MappingNode:
        """The keys and values. Raise InputError, with the line, if the text is not a mapping in YAML."""
        try:
            root = yaml.compose(self.text, Loader=bounded_yaml.LOADER)
        except (yaml.YAMLError, ValueError) as error:
            found = f"it is not YAML: {' '.join(str(error).split())}"
            raise refused("the file", found, "YAML", "correct it there, or in the lines before") from None
        if not isinstance(root, yaml.MappingNode):
            raise refused("line 1", "it contains no keys and values", "a pipeline: type, jobs, inputs")
        uses = Counter(map(id, _nodes(root)))
        self._shared = {key for key, count in uses.items() if count > 1}
        return root

    def item(self, node: yaml.Node | None, key: str) -> Item | None:
        """Return a key of a mapping, with its value. Of a repeated key, the last counts."""
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        return next((pair for pair in reversed(pairs) if pair[0].value == key), None)

    def value(self, *keys: str, root: yaml.Node | None = None) -> yaml.Node | None:
        """Return the value at a path of keys. root: the mapping where it begins, by default that of the whole text"""
        node = root or self.root
        for key in keys:
            found = self.item(node, key)
            if found is None:
                return None
            node = found[1]
        return node

    def is_shared(self, node: yaml.Node) -> bool:
        """Return whether a node has or is an anchor's value that is used elsewhere, or merges other keys."""
        return any(id(each) in self._shared or each.tag == "tag:yaml.org,2002:merge" for each in _nodes(node))

    def lines(self, item: Item) -> tuple[int, int]:
        """Return the first and the last line of a key and its value, from 1."""
        first = item[0].start_mark.line + 1
        return first, first + self.text.count("\n", item[0].start_mark.index, self.end(item))

    def end(self, item: Item) -> int:
        """Return the index after the last character of a value, without the comments and blank lines after it."""
        key, node = item
        leaf = node
        while isinstance(leaf, yaml.CollectionNode) and not leaf.flow_style:
            leaf = leaf.value[-1][1] if isinstance(leaf, yaml.MappingNode) else leaf.value[-1]
        start, end = leaf.start_mark.index, leaf.end_mark.index
        if start >= key.start_mark.index:
            return int(start + len(self.text[start:end].rstrip()))
        # An alias, whose node is where its anchor is.
        is_alias = node.start_mark.index < key.start_mark.index
        start = key.start_mark.index
        end = self._line_end(start) if is_alias else node.end_mark.index
        return int(start + len(re.sub(r"(?:\s*\n\s*#.*|\s)*\Z", "", self.text[start:end])))

    def put(self, path: Sequence[str], content: Content) -> None:
        """Set the value at a path of keys. Mappings that are missing or empty are added."""
        *around, key = path
        owner = self.value(*around)
        if not isinstance(owner, yaml.MappingNode) or (around and not owner.value):
            self.put(around, {key: content})
        elif (found := self.item(owner, key)) is not None:
            self._replace(found, content, is_flow=bool(owner.flow_style))
        elif owner.flow_style:
            self._add_to_flow(owner, self._dump({key: content}, default_flow_style=True)[1:-1])
        else:
            lines = self._block(key, content, owner.value[0][0].start_mark.column)
            later = _ORDER[_ORDER.index(key) + 1 :] if key in _ORDER else ()
            follower = next((pair for pair in owner.value if pair[0].value in later), None)
            if follower is not None:
                self._insert(self._line_start(follower[0]), [*lines, *self._separator(owner)])
            else:
                self._insert(self._region(owner, len(owner.value) - 1)[1], [*self._separator(owner), *lines])

    def copy(self, path: Sequence[str], name: str) -> None:
        """Add a copy of a key and its value after it, with another name."""
        owner, place = self._place(path)
        node = owner.value[place][0]
        end = self.end(owner.value[place]) if owner.flow_style else self._region(owner, place)[1]
        text = self._scalar(name) + self.text[node.end_mark.index : end]
        if owner.flow_style:
            self._add_to_flow(owner, text)
        else:
            self._insert(end, [*self._separator(owner), " " * node.start_mark.column + text.rstrip()])

    def remove(self, *path: str) -> None:
        """Delete a key and its value, if it exists, and mappings of which nothing is left; `jobs` becomes `{}`."""
        if self.value(*path) is None:
            return
        owner, place = self._place(path)
        around = path[:-1]
        if len(owner.value) > 1 or not around:
            self.apply(self._deleted(owner, place))
        elif around == ("jobs",):
            self.put(around, {})
        else:
            self.remove(*around)

    def rename(self, path: Sequence[str], name: str) -> None:
        """Replace a key."""
        owner, place = self._place(path)
        node = owner.value[place][0]
        self.apply(Patch(node.start_mark.index, node.end_mark.index, self._scalar(name, old=node)))

    def substitute(self, pattern: str, text: str) -> None:
        """Replace what matches in keys and values."""
        spans = ((each.start_mark.index, each.end_mark.index) for each in self.scalars(self.root))
        found = [match for start, end in spans for match in re.compile(pattern).finditer(self.text, start, end)]
        self.apply(*(Patch(match.start(), match.end(), text) for match in found))

    def _place(self, path: Sequence[str]) -> tuple[yaml.MappingNode, int]:
        """Return the mapping that a key is in, and the key's place there."""
        owner = self.value(*path[:-1])
        assert isinstance(owner, yaml.MappingNode)
        return owner, next(place for place, pair in enumerate(owner.value) if pair[0].value == path[-1])

    def scalars(self, node: yaml.Node) -> Collection[yaml.ScalarNode]:
        """Return the scalars of a node, each once."""
        return {id(each): each for each in _nodes(node) if isinstance(each, yaml.ScalarNode)}.values()

    def _scalar(self, value: Content, *, is_flow: bool = False, old: yaml.Node | None = None) -> str:
        """Return a value as it is written. old: the scalar that it replaces, whose quotes it takes over"""
        style = old.style if isinstance(old, yaml.ScalarNode) and isinstance(value, str) else None
        style = style if style in ("'", '"') else None
        if is_flow:
            return self._dump([value], default_flow_style=True, default_style=style)[1:-1]
        return self._dump(value, default_flow_style=True, default_style=style).removesuffix("\n...")

    def _dump(self, content: Any, **options: Any) -> str:
        kind = _DoubleQuotes if self.text.count('"') >= self.text.count("'") else _Quotes
        options |= {"sort_keys": False, "allow_unicode": True, "width": math.inf}
        return str(yaml.dump(content, Dumper=kind, **options)).strip()

    def _add_to_flow(self, owner: yaml.MappingNode, text: str) -> None:
        """Add a key and its value in braces, on a line of its own if the last one has one."""
        if not owner.value:
            self.apply(Patch(owner.start_mark.index, owner.end_mark.index, f"{{{text}}}"))
            return
        key, place = owner.value[-1][0], self.end(owner.value[-1])
        indent = self.text[self._line_start(key) : key.start_mark.index]
        self.apply(Patch(place, place, f", {text}" if indent.strip() else f",{self.newline}{indent}{text}"))

    def _replace(self, item: Item, content: Content, *, is_flow: bool) -> None:
        key, old = item
        colon, end = self._after_colon(key), self.end(item)
        style = old.flow_style if isinstance(old, yaml.CollectionNode) else None
        is_block = style is False
        keeps_flow = is_flow or bool(style and old.value)
        if is_block:
            self.apply(self._block_deleted(item))
        is_empty = is_block or end <= colon or old.start_mark.index < colon  # of an alias, the mark is its anchor's
        if not isinstance(content, Mapping) or not content or keeps_flow:
            text = self._scalar(content, is_flow=is_flow, old=old)
            self.apply(Patch(colon, colon, f" {text}") if is_empty else Patch(old.start_mark.index, end, text))
            return
        if not is_empty:
            self.apply(Patch(colon, end, ""))
        self._insert(self._line_end(colon), self._block(key.value, content, key.start_mark.column)[1:])

    def _deleted(self, owner: yaml.MappingNode, place: int) -> Patch:
        """Return the patch that deletes an item of a mapping, which is not the only one in braces."""
        items = owner.value
        if owner.flow_style and place == 0:
            return Patch(items[0][0].start_mark.index, items[1][0].start_mark.index, "")
        if owner.flow_style:
            return Patch(self.end(items[place - 1]), self.end(items[place]), "")
        start, end = self._region(owner, place)
        before, after = self.text[:start], self.text[end:]
        if place == 0:
            end += len(after) - len(re.sub(r"\A(?:[ \t]*\r?\n)+", "", after))
        elif not after.strip() or re.match(r"[ \t]*\r?\n", after):
            start = len(re.sub(r"(?<=\n)(?:[ \t]*\r?\n)+\Z", "", before))
        return self._lines_deleted(start, end)

    def _block_deleted(self, item: Item) -> Patch:
        """Return the patch that deletes the lines of a block below its key."""
        return self._lines_deleted(self._line_end(self._after_colon(item[0])), self._line_end(self.end(item)))

    def _lines_deleted(self, start: int, end: int) -> Patch:
        if end == len(self.text) and not self.text.endswith("\n"):
            start = len(self.text[:start].rstrip("\r\n"))
        return Patch(start, end, "")

    def _region(self, owner: yaml.MappingNode, place: int) -> tuple[int, int]:
        """Return the lines of an item of a block mapping, with the comments after it that are indented as it is."""
        key = owner.value[place][0]
        end = self._line_end(self.end(owner.value[place]))
        comments = re.compile(rf"(?:(?:[ \t]*\r?\n)* {{{key.start_mark.column + 1},}}#.*(?:\n|\Z))*")
        after = comments.match(self.text, end)
        return self._line_start(key), after.end() if after else end

    def _insert(self, place: int, lines: list[str]) -> None:
        """Insert lines at the start of a line, or after a last line without an end."""
        text = self.newline.join(lines)
        is_open = place > 0 and self.text[place - 1] != "\n"
        self.apply(Patch(place, place, f"{self.newline}{text}" if is_open else f"{text}{self.newline}"))

    def _separator(self, owner: yaml.MappingNode) -> list[str]:
        """Return the lines between items of a block mapping: a blank one, or none."""
        pairs = zip(owner.value, owner.value[1:], strict=False)
        gaps = (self.text[self.end(one) : other[0].start_mark.index] for one, other in pairs)
        return [""] if any(re.search(r"\n[ \t]*\r?\n", gap) for gap in gaps) else []

    def _after_colon(self, key: yaml.Node) -> int:
        return self.text.index(":", key.end_mark.index) + 1

    def _line_start(self, key: yaml.Node) -> int:
        return self.text.rfind("\n", 0, key.start_mark.index) + 1

    def _line_end(self, place: int) -> int:
        """Return the index after the end of the line."""
        end = self.text.find("\n", place)
        return len(self.text) if end < 0 else end + 1

    def _block(self, key: str, content: Content, column: int) -> list[str]:
        blocks = (value for _, value in self.root.value if isinstance(value, yaml.MappingNode) and not value.flow_style)
        step = next((block.start_mark.column for block in blocks), 2)
        text = self._dump({key: content}, default_flow_style=False, indent=step)
        return [" " * column + line for line in text.split("\n")]


class _Quotes(yaml.SafeDumper):
    """Writes a text that needs quotes in one line."""

    quote = "'"

    def choose_scalar_style(self) -> str:
        style: str = super().choose_scalar_style()
        if style != "'":
            return style
        is_multiline = self.analysis is not None and self.analysis.multiline
        return '"' if is_multiline else getattr(self.event, "style", None) or self.quote


class _DoubleQuotes(_Quotes):
    quote = '"'


def _nodes(node: yaml.Node) -> Iterator[yaml.Node]:
    yield node
    for each in node.value if isinstance(node, yaml.CollectionNode) else ():
        for inner in each if isinstance(each, tuple) else (each,):
            yield from _nodes(inner)
