"""Tokenize records, and mark the tokens that are scored.

A record is one of these, by its columns:

    messages                  a conversation, a list of {"role": ..., "content": ...}
    prompt, completion        two texts, or two lists of messages
    text                      a text
    prompt, chosen, rejected  a preference: two completions of a prompt, the first of which is better. Without a prompt,
                              both are conversations, and their common first messages are the prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from allranks_steps.messages import bad_input
from allranks_steps.text.scoring import IGNORED, Record

COLUMNS = (("messages",), ("prompt", "completion"), ("text",))
"""The columns of records for supervised fine-tuning."""

PREFERENCE = ("chosen", "rejected")

Message = dict[str, str]


@dataclass(frozen=True)
class Tokenizing:
    """Tokenization of records.

    tokenizer:       of Transformers; its chat template renders messages
    max_length:      number of tokens after which an example is cut off
    completion_only: whether only completions and the assistant's messages are scored, or every token
    """

    tokenizer: Any
    max_length: int
    completion_only: bool = True

    def __call__(self, record: Record, number: int) -> Record:
        """Return the tokens of a record of COLUMNS as input_ids and labels.

        number: index of the record, for messages

        Raise InputError if the record is invalid, or the chat template cannot render it.
        """
        where = f"input data, record {number}"
        if record.get("text") is not None:
            text = _text(record["text"], f"{where}, text")
            return self._example(self._ids(text + (self.tokenizer.eos_token or "")), ())
        if record.get("messages") is not None:
            messages = _messages(record["messages"], f"{where}, messages")
            answers = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
            if not answers:
                raise bad_input(where, "no message of the role assistant", "an answer to learn", "add one")
            return self._conversation(messages, answers, where)
        return self.completion(record.get("prompt"), record.get("completion"), where)

    def completion(self, prompt: Any, completion: Any, where: str) -> Record:
        """Return the tokens of a prompt and its completion, both texts or both lists of messages."""
        if isinstance(prompt, str) and isinstance(completion, str):
            before = self._ids(prompt)
            ids = self._ids(prompt + _text(completion, where) + (self.tokenizer.eos_token or ""))
            return self._example(ids, [(_common(before, ids), len(ids))])
        messages = _messages(prompt, f"{where}, prompt")
        answer = _messages(completion, f"{where}, completion")
        return self._conversation(messages + answer, [len(messages)], where, end=len(messages) + len(answer))

    def preference(self, record: Record, number: int) -> tuple[Record, Record]:
        """Return the tokens of the chosen and of the rejected completion, each after the prompt."""
        where = f"input data, record {number}"
        record = with_prompt(record)
        chosen = self.completion(record["prompt"], record["chosen"], f"{where}, chosen")
        return chosen, self.completion(record["prompt"], record["rejected"], f"{where}, rejected")

    def _conversation(
        self, messages: list[Message], answers: Sequence[int], where: str, end: int | None = None
    ) -> Record:
        """Score the messages with these indices. end: index after the last message of a single answer"""
        ids = self._render(messages, where)
        spans = []
        for index in answers:
            # The prompt of the answer, and the conversation up to the end of the answer.
            before = self._render(messages[:index], where, ask=True) if index else []
            after = self._render(messages[: end or index + 1], where)
            spans.append((_common(before, ids), _common(after, ids)))
        return self._example(ids, spans)

    def _render(self, messages: list[Message], where: str, *, ask: bool = False) -> list[int]:
        try:
            rendered = self.tokenizer.apply_chat_template(
                messages, tokenize=True, add_generation_prompt=ask, return_dict=True
            )
        except (TemplateError, ValueError, TypeError) as error:
            fix = "give a chat template that knows these messages, or correct them"
            expected = "messages that the chat template can render"
            raise bad_input(f"input chat_template ({where})", str(error), expected, fix) from error
        return list(rendered["input_ids"])

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text)["input_ids"])

    def _example(self, ids: list[int], spans: Sequence[tuple[int, int]]) -> Record:
        ids = ids[: self.max_length]
        if not (self.completion_only and spans):
            return {"input_ids": ids, "labels": list(ids)}
        labels = [IGNORED] * len(ids)
        for start, stop in spans:
            labels[start:stop] = ids[start:stop]
        return {"input_ids": ids, "labels": labels[: len(ids)]}


def scored(example: Record) -> bool:
    """Return whether any token of the example is scored. The first token is never scored, because nothing precedes
    it."""
    return any(label != IGNORED for label in example["labels"][1:])


def example_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of supervised records or preferences that are among the names. Raise InputError if neither."""
    for columns in (PREFERENCE, *COLUMNS):
        if set(columns) <= set(names):
            return columns
    expected = "messages; prompt and completion; text; or prompt, chosen and rejected"
    found = f"the columns {', '.join(names)}"
    raise bad_input("input data", found, expected, "rename the columns, or give other data")


def with_prompt(record: Record) -> Record:
    """Return a preference with a separate prompt, also if the prompt is part of both completions."""
    chosen, rejected = record["chosen"], record["rejected"]
    if record.get("prompt") is not None or not (isinstance(chosen, list) and isinstance(rejected, list)):
        return {"prompt": record.get("prompt"), "chosen": chosen, "rejected": rejected}
    length = _common(chosen, rejected)
    return {"prompt": chosen[:length], "chosen": chosen[length:], "rejected": rejected[length:]}


def set_chat_template(tokenizer: Any, template: Path | None, *, needed: bool) -> None:
    """Set the tokenizer's chat template to that of a file.

    needed: whether the data are conversations

    Raise InputError if a template is needed, and neither a file nor the tokenizer has one.
    """
    if template is not None:
        tokenizer.chat_template = template.read_text(encoding="utf-8")
    elif needed and not tokenizer.chat_template:
        found = "none, and the model's tokenizer has none"
        fix = "give a Jinja file, or a model that was made for conversations"
        raise bad_input("input chat_template", found, "a template that renders messages", fix)


def conversational(record: Record) -> bool:
    """Return whether a record consists of messages."""
    return any(isinstance(value, list) for value in record.values())


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise bad_input(where, repr(value)[:80], "a text that is not empty", "correct the record")
    return value


def _messages(value: Any, where: str) -> list[Message]:
    valid = isinstance(value, list) and value and all(_is_message(message) for message in value)
    if not valid:
        expected = 'a list of {"role": "...", "content": "..."}, or a text for both prompt and completion'
        raise bad_input(where, repr(value)[:80], expected, "correct the record")
    return [{"role": message["role"], "content": message["content"]} for message in value]


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("role", "content"))


def _common(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Return the length of the common prefix of two sequences."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(first), len(second)))
