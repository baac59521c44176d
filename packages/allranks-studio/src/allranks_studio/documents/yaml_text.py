"""Change keys and values of a YAML text as a person would: in its own style, leaving the rest as it is."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import yaml

from allranks.errors import InputError, Problem
from allranks.sdk import bounded_yaml
from allranks_studio.documents.patches import Patch, applied
from allranks_studio.documents.rewiring import refused

Content: TypeAlias = str | int | float | bool | Sequence[str] | Mapping[str, "Content"] | None
"""What is written: a value, a list of texts, or keys and values."""

Item: TypeAlias = tuple[yaml.Node, yaml.Node]
"""A key and its value."""


class YamlText:
    """A text with its mappings.

    Raise InputError, with the line, if it is not a mapping in YAML.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            bounded_yaml.check(text)
            root = yaml.compose(text, Loader=bounded_yaml.LOADER)
        except (yaml.YAMLError, ValueError) as error:
            raise InputError(_problem(text, error)) from None
        if not isinstance(root, yaml.MappingNode):
            raise InputError(Problem("line 1", "it contains no keys and values", "a pipeline: type, jobs, inputs"))
        self.root = root
        self.newline = "\r\n" if "\r\n" in text else "\n"
        nodes = list(_nodes(root))
        uses = Counter(map(id, nodes))
        self._shared = {key for key, count in uses.items() if count > 1}
        styles = Counter(node.style for node in nodes if isinstance(node, yaml.ScalarNode))
        self._quote = "'" if styles["'"] > styles['"'] else '"'
        self._indent = next(_indents(root), 2)

    def item(self, node: yaml.Node | None, *keys: str) -> Item | None:
        """Return the innermost key and value at these keys. Of a repeated key, the last counts."""
        found: Item | None = None
        for key in keys:
            pairs = node.value if isinstance(node, yaml.MappingNode) else ()
            found = next((pair for pair in reversed(pairs) if pair[0].value == key), None)
            node = found[1] if found else None
        return found

    def value(self, node: yaml.Node | None, *keys: str) -> yaml.Node | None:
        found = self.item(node, *keys)
        return found[1] if found else None

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

    def put(
        self, owner: yaml.MappingNode, path: Sequence[str], content: Content, before: Collection[str] = ()
    ) -> list[Patch]:
        """Set the key at a path of one or two keys below a mapping.

        What is missing is added: to the mapping before the first of the keys `before`, else as the last one.
        """
        key, *inner = path
        found = self.item(owner, key)
        if inner:
            if found is not None and isinstance(found[1], yaml.MappingNode) and found[1].value:
                return self.put(found[1], inner, content)
            content = {inner[0]: content}
        if found is not None:
            return self._replaced(found, content, is_flow=bool(owner.flow_style))
        if owner.flow_style:
            text = f"{self.scalar(key, is_flow=True)}: {self._flow(content)}"
            if not owner.value:
                return [Patch(owner.start_mark.index, owner.end_mark.index, f"{{{text}}}")]
            return self._added_to_flow(owner, text)
        lines = self._block(key, content, owner.value[0][0].start_mark.column)
        follower = next((pair for pair in owner.value if pair[0].value in before), None)
        if follower is not None:
            return [self._inserted(self._line_start(follower[0]), [*lines, *self._separator(owner)])]
        return [self._inserted(self._region(owner, len(owner.value) - 1)[1], [*self._separator(owner), *lines])]

    def copy(self, root: yaml.MappingNode, path: Sequence[str], name: str, changes: Collection[Patch]) -> list[Patch]:
        """Add a copy of a key and its value, with changes, after it, with another name."""
        owner = self.value(root, *path[:-1])
        assert isinstance(owner, yaml.MappingNode)
        place = next(place for place, pair in enumerate(owner.value) if pair[0].value == path[-1])
        node = owner.value[place][0]
        end = self.end(owner.value[place]) if owner.flow_style else self._region(owner, place)[1]
        text = self.scalar(name) + applied(self.text, changes, node.end_mark.index, end)
        if owner.flow_style:
            return self._added_to_flow(owner, text)
        lines = (" " * node.start_mark.column + text.rstrip()).replace("\r\n", "\n").split("\n")
        return [self._inserted(end, [*self._separator(owner), *lines])]

    def without(self, owner: yaml.MappingNode, *path: str, names: Collection[str]) -> list[Patch]:
        """Delete keys of the mapping at a path, and the mapping itself if nothing is left of it."""
        node = self.value(owner, *path) if path else owner
        if not isinstance(node, yaml.MappingNode):
            return []
        places = [place for place, pair in enumerate(node.value) if pair[0].value in names]
        if len(places) == len(node.value) and path:
            found = self.item(owner, *path)
            if path != ("jobs",) or found is None:
                return self.without(owner, *path[:-1], names=[path[-1]])
            colon = self._after_colon(found[0])
            if node.flow_style:
                return [Patch(node.start_mark.index, node.end_mark.index, "{}")]
            return [Patch(colon, colon, " {}"), self._block_deleted(found)]
        return [self._deleted(node, place, places) for place in places]

    def rename(self, root: yaml.MappingNode, path: Sequence[str], name: str) -> Patch:
        """Replace a key."""
        item = self.item(root, *path)
        assert item is not None
        node = item[0]
        return Patch(node.start_mark.index, node.end_mark.index, self.scalar(name, old=node))

    def scalars(self, node: yaml.Node) -> Collection[yaml.ScalarNode]:
        """Return the scalars of a node, each once."""
        return {id(each): each for each in _nodes(node) if isinstance(each, yaml.ScalarNode)}.values()

    def scalar(
        self, value: str | float | bool | Sequence[str] | None, *, is_flow: bool = False, old: yaml.Node | None = None
    ) -> str:
        """Return a value as it is written. old: the scalar that it replaces, whose quotes it takes over"""
        if isinstance(value, Sequence) and not isinstance(value, str):
            return f"[{', '.join(self.scalar(each, is_flow=True) for each in value)}]"
        if not isinstance(value, str):
            return str(yaml.safe_dump(value, default_flow_style=True)).removesuffix("\n...\n").strip()
        quote = old.style if isinstance(old, yaml.ScalarNode) and old.tag.endswith(":str") else None
        if quote not in ("'", '"'):
            if _is_plain(value, is_flow=is_flow):
                return value
            quote = self._quote
        if quote == "'" and value.isprintable():
            return "'" + value.replace("'", "''") + "'"
        return json.dumps(value, ensure_ascii=not value.isprintable())

    def _added_to_flow(self, owner: yaml.MappingNode, text: str) -> list[Patch]:
        """Return the patches that add a key and its value in braces, on a line of its own if the last one has one."""
        key, _ = owner.value[-1]
        place = self.end(owner.value[-1])
        after = self._line_end(place)
        indent = self.text[self.text.rfind("\n", 0, key.start_mark.index) + 1 : key.start_mark.index]
        if indent.strip():
            return [Patch(place, place, f", {text}")]
        end = re.fullmatch(r"[ \t]*(,?)[ \t]*(?:#.*)?\r?\n", self.text[place:after])
        if end is None:
            return [Patch(place, place, f",{self.newline}{indent}{text}")]
        below = Patch(after, after, f"{indent}{text}{end[1]}{self.newline}")
        return [below] if end[1] else [Patch(place, place, ","), below]

    def _replaced(self, item: Item, content: Content, *, is_flow: bool) -> list[Patch]:
        key, old = item
        colon, end = self._after_colon(key), self.end(item)
        is_block = isinstance(old, yaml.CollectionNode) and not old.flow_style
        keeps_flow = is_flow or (isinstance(old, yaml.CollectionNode) and not is_block and bool(old.value))
        if isinstance(content, Mapping) and not keeps_flow:
            below = self._inserted(self._line_end(max(colon, end)), self._block("", content, key.start_mark.column)[1:])
            if is_block:
                return [self._block_deleted(item), below]
            return [Patch(colon, end, ""), below] if end > colon else [below]
        text = self._flow(content, is_flow=is_flow, old=old)
        if is_block:
            return [Patch(colon, colon, f" {text}"), self._block_deleted(item)]
        if old.start_mark.index < colon or end <= colon:  # an empty value, or an alias
            gap = self.text[colon : colon + 1] == " " and self.text[colon + 1 : colon + 2] != "#"
            return [Patch(colon + gap, colon + gap, text if gap else f" {text}")]
        return [Patch(old.start_mark.index, end, text)]

    def _deleted(self, owner: yaml.MappingNode, place: int, places: Collection[int]) -> Patch:
        """Return the patch that deletes one of the items at these places of a mapping."""
        items = owner.value
        if owner.flow_style:
            if all(other in places for other in range(place)):
                return Patch(items[place][0].start_mark.index, items[place + 1][0].start_mark.index, "")
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
        start, end = self._line_start(key), self._line_end(self.end(owner.value[place]))
        column, line = key.start_mark.column, end
        while line < len(self.text):
            after = self._line_end(line)
            words = self.text[line:after]
            comment = words.lstrip(" ")
            if words.strip() and not (comment.startswith("#") and len(words) - len(comment) > column):
                break
            line = after
            end = after if words.strip() else end
        return start, end

    def _inserted(self, place: int, lines: list[str]) -> Patch:
        """Return the patch that inserts lines at the start of a line, or after a last line without an end."""
        text = self.newline.join(lines)
        is_open = place > 0 and self.text[place - 1] != "\n"
        return Patch(place, place, f"{self.newline}{text}" if is_open else f"{text}{self.newline}")

    def _separator(self, owner: yaml.MappingNode) -> list[str]:
        """Return the lines between items of a block mapping: a blank one, or none."""
        pairs = zip(owner.value, owner.value[1:], strict=False)
        gaps = (self.text[self.end(one) : other[0].start_mark.index] for one, other in pairs)
        return [""] if any(re.search(r"\n[ \t]*\r?\n", gap) for gap in gaps) else []

    def _after_colon(self, key: yaml.Node) -> int:
        return self.text.index(":", key.end_mark.index) + 1

    def _line_start(self, key: yaml.Node) -> int:
        start = self.text.rfind("\n", 0, key.start_mark.index) + 1
        if self.text[start : key.start_mark.index].strip("\ufeff \t"):
            where = f"line {key.start_mark.line + 1}"
            raise refused(where, "the key is not the first on its line", "", "edit the text")
        return start

    def _line_end(self, place: int) -> int:
        """Return the index after the end of the line."""
        end = self.text.find("\n", place)
        return len(self.text) if end < 0 else end + 1

    def _block(self, key: str, content: Content, column: int) -> list[str]:
        head = " " * column + f"{self.scalar(key)}:"
        if not isinstance(content, Mapping):
            return [f"{head} {self.scalar(content)}"]
        inner = (self._block(name, value, column + self._indent) for name, value in content.items())
        return [head, *(line for lines in inner for line in lines)]

    def _flow(self, content: Content, *, is_flow: bool = True, old: yaml.Node | None = None) -> str:
        if not isinstance(content, Mapping):
            return self.scalar(content, is_flow=is_flow, old=old)
        items = (f"{self.scalar(name, is_flow=True)}: {self._flow(value)}" for name, value in content.items())
        return f"{{{', '.join(items)}}}"


def _nodes(node: yaml.Node) -> Iterator[yaml.Node]:
    yield node
    for each in node.value if isinstance(node, yaml.CollectionNode) else ():
        for inner in each if isinstance(each, tuple) else (each,):
            yield from _nodes(inner)


def _indents(node: yaml.Node) -> Iterator[int]:
    """Yield how far the keys of block mappings are indented below the mapping around them."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if isinstance(value, yaml.MappingNode) and not value.flow_style and value.value:
            yield value.start_mark.column - key.start_mark.column
            yield from _indents(value)


def _is_plain(value: str, *, is_flow: bool) -> bool:
    """Return whether YAML reads a text without quotes as the same text."""
    if "\n" in value or "\r" in value or value != value.strip():
        return False
    text, expected = (f"{{k: {value}}}", {"k": value}) if is_flow else (f"k: {value}", {"k": value})
    try:
        return bool(yaml.load(text, Loader=bounded_yaml.LOADER) == expected)
    except (yaml.YAMLError, ValueError):
        return False


def _problem(text: str, error: Exception) -> Problem:
    mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    last = max(text.count("\n") + (not text.endswith("\n")), 1)
    place = f"line {min(mark.line + 1, last)}" if mark is not None else "the file"
    parts = [getattr(error, "context", None), getattr(error, "problem", None)]
    found = ", ".join(part for part in parts if part) or " ".join(str(error).split())
    return Problem(place, f"it is not YAML: {found}", "YAML", "correct it there, or in the lines before")
