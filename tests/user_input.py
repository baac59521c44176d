"""A mouse and a keyboard for a page in Chromium. The events are those of real devices, so focus and dragging work."""

from __future__ import annotations

import json
from typing import Any

from chromium import Tab

_CODES = {
    "Enter": 13,
    "Tab": 9,
    "Escape": 27,
    " ": 32,
    "Backspace": 8,
    "Delete": 46,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "PageUp": 33,
    "PageDown": 34,
}
_TEXTS = {"Enter": "\r", " ": " ", "Tab": ""}
_MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}

Place = tuple[float, float]


def element(selector: str) -> str:
    """Return the JavaScript expression of an element. selector: of CSS, or of XPath if it begins with a slash"""
    quoted = json.dumps(selector)
    if selector.startswith("/"):
        return f"document.evaluate({quoted}, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE).singleNodeValue"
    return f"document.querySelector({quoted})"


class UserInput:
    """Moves the mouse and presses keys in a tab."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab

    def place(self, selector: str) -> Place:
        """Scroll to an element and return its middle. Wait until it exists and is not moving.

        selector: of CSS, or a path of XPath, which begins with a slash
        """
        tab, one = self._tab, element(selector)
        tab.wait_for(
            f"((one) => {{ if (!one) return false; one.scrollIntoView({{block: 'nearest', inline: 'nearest'}});"
            " const box = one.getBoundingClientRect(), now = [box.x, box.y, box.width].join();"
            " const same = one.lastPlace === now; one.lastPlace = now; return same && box.width > 0;"
            f" }})({one})"
        )
        x, y = tab.evaluate(
            f"(() => {{ const box = {one}.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        return x, y

    def click(self, selector: str, *, count: int = 1) -> None:
        """Click on the middle of an element, which must be in sight."""
        x, y = self.place(selector)
        for number in range(1, count + 1):
            self._mouse("mouseMoved", x, y)
            self._mouse("mousePressed", x, y, button="left", clickCount=number)
            self._mouse("mouseReleased", x, y, button="left", clickCount=number)

    def drag(self, start: Place | str, end: Place | str, *, steps: int = 8) -> None:
        """Press the button at a place or on an element, move, and release it."""
        (x, y), (to_x, to_y) = (self.place(each) if isinstance(each, str) else each for each in (start, end))
        self._mouse("mouseMoved", x, y)
        self._mouse("mousePressed", x, y, button="left", clickCount=1)
        for step in range(1, steps + 1):
            at = step / steps
            self._mouse("mouseMoved", x + (to_x - x) * at, y + (to_y - y) * at, button="left", buttons=1)
        self._mouse("mouseReleased", to_x, to_y, button="left", clickCount=1)

    def drag_and_drop(self, start: str, end: Place | str) -> None:
        """Drag an element that is draggable in the sense of HTML, and drop it."""
        (x, y), (to_x, to_y) = self.place(start), self.place(end) if isinstance(end, str) else end
        self._tab.call("Input.setInterceptDrags", enabled=True)
        self._mouse("mouseMoved", x, y)
        self._mouse("mousePressed", x, y, button="left", clickCount=1)
        for distance in (3, 6, 9, 12):
            self._mouse("mouseMoved", x + distance, y + distance, button="left", buttons=1)
        self._tab.wait_for("true")  # the event has come
        data = self._tab.dragged
        assert data is not None, f"{start} cannot be dragged"
        for kind in ("dragEnter", "dragOver", "drop"):
            self._tab.call("Input.dispatchDragEvent", type=kind, x=to_x, y=to_y, data=data)
        self._mouse("mouseReleased", to_x, to_y, button="left", clickCount=1)
        self._tab.call("Input.setInterceptDrags", enabled=False)

    def wheel(self, place: Place, down: float, *modifiers: str) -> None:
        pressed = sum(_MODIFIERS[each] for each in modifiers)
        self._mouse("mouseWheel", *place, deltaX=0, deltaY=down, modifiers=pressed)

    def press(self, key: str, *modifiers: str) -> None:
        """Press and release a key: a character, or a name such as Enter."""
        code = _CODES.get(key) or ord(key.upper())
        text = _TEXTS.get(key, key if len(key) == 1 else "")
        parameters: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code}
        parameters["modifiers"] = sum(_MODIFIERS[each] for each in modifiers)
        parameters["code"] = {" ": "Space"}.get(key, f"Key{key.upper()}" if len(key) == 1 and key.isalpha() else key)
        if text and not {"Control", "Meta", "Alt"} & set(modifiers):
            parameters["text"] = text
        self._tab.call("Input.dispatchKeyEvent", type="keyDown", **parameters)
        parameters.pop("text", None)
        self._tab.call("Input.dispatchKeyEvent", type="keyUp", **parameters)

    def write(self, text: str) -> None:
        """Write a text where the focus is."""
        self._tab.call("Input.insertText", text=text)

    def _mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        self._tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
