"""A page as a browser reads it."""

from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """The page as a reader sees it; fails where a tag is closed that was not open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.unfolded: list[str] = []
        self.folds: list[bool] = []
        self.feed(html)
        self.close()
        assert self.open == []

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())

    @property
    def first_seen(self) -> str:
        """What is read before anything is unfolded."""
        return " ".join(" ".join(self.unfolded).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "details":
            self.folds.append("open" not in dict(attrs))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "details":
            self.folds.pop()

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.said.append(data)
            # The summary of a fold is read, unless it stands within another fold.
            if not any(self.folds[:-1] if "summary" in self.open else self.folds):
                self.unfolded.append(data)
