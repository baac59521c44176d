"""What a person does in the designer, by mouse or by keyboard."""

from __future__ import annotations

from chromium import Tab
from user_input import UserInput, element

SETTINGS = "//aside[@aria-label='Settings']"
BOX = ".react-flow__node[data-id='{}']"


def button(text: str, within: str = "") -> str:
    return f"{within}//button[normalize-space(.)='{text}']"


def control(label: str, within: str = SETTINGS) -> str:
    """Return the selector of the control with a label."""
    return f"{within}//*[@id=//label[normalize-space(text())='{label}']/@for]"


def port(node: str, side: str, name: str) -> str:
    return f"{BOX.format(node)} [data-handleid='{side}:{name}']"


class Mouse:
    """Points at everything, drags components and wires, and types values."""

    def __init__(self, tab: Tab) -> None:
        self.tab, self.user = tab, UserInput(tab)

    def press(self, selector: str) -> None:
        """Press a button or follow a link."""
        self.user.click(selector)

    def write(self, selector: str, text: str) -> None:
        """Replace the text of a field."""
        for _ in range(5):  # what is drawn meanwhile may move it
            self.user.click(selector, count=3)
            if self.has_focus(selector):
                self.user.write(text)
                return
        raise AssertionError(f"a click does not reach {selector}")

    def has_focus(self, selector: str) -> bool:
        return bool(self.tab.evaluate(f"document.activeElement === {element(selector)}"))

    def choose(self, selector: str, value: str) -> None:
        """Choose an option by its letters: the list that opens is not in the page."""
        self.user.click(selector)
        for letter in value:
            self.user.press(letter)
        self.user.press("Enter")

    def commit(self) -> None:
        """Leave a field, which completes its value."""
        self.user.click("//h2")

    def add(self, component: str, at: tuple[float, float]) -> None:
        """Drag a component of the palette onto the canvas."""
        search = "input[placeholder='Search components']"
        self.write(search, component)
        x, y = self.tab.evaluate(
            "(() => { const box = document.querySelector('.react-flow').getBoundingClientRect();"
            " return [box.x, box.y]; })()"
        )
        self.user.drag_and_drop(f"//button[contains(@class, 'card')][b='{component}']", (x + at[0], y + at[1]))

    def select(self, node: str) -> None:
        self.press(f"{self.see(node)} header b")

    def see(self, node: str) -> str:
        """Return the selector of a node, which is in sight."""
        box, canvas = (f"{element(each)}.getBoundingClientRect()" for each in (BOX.format(node), ".canvas"))
        if not self.tab.evaluate(f"{box}.left >= {canvas}.left && {box}.right <= {canvas}.right"):
            self.press(button("Fit"))
        return BOX.format(node)

    def connect(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        """Draw a wire from an output to an input."""
        self.user.drag(port(source[0], "out", source[1]), port(target[0], "in", target[1]))


class Keyboard(Mouse):
    """Reaches everything by Tab, and never points."""

    def focus(self, selector: str) -> None:
        """Press Tab until an element has the focus. In the code, Tab indents until Escape was pressed."""
        self.tab.wait_for(element(selector))
        for _ in range(300):
            if self.has_focus(selector):
                return
            if self.tab.evaluate("document.activeElement.matches('.cm-content')"):
                self.user.press("Escape")
            self.user.press("Tab")
        raise AssertionError(f"Tab does not reach {selector}")

    def press(self, selector: str) -> None:
        self.focus(selector)
        self.user.press("Enter")

    def write(self, selector: str, text: str) -> None:
        self.focus(selector)
        self.user.press("a", "Control")
        self.user.write(text)

    def choose(self, selector: str, value: str) -> None:
        self.focus(selector)
        for letter in value:
            self.user.press(letter)

    def commit(self) -> None:
        self.user.press("Enter")

    def add(self, component: str, at: tuple[float, float]) -> None:
        """Search a component, and add the first one that is found."""
        self.write("input[placeholder='Search components']", component)
        self.tab.wait_for(f"document.querySelector('.card b')?.innerText === '{component}'")
        self.user.press("Enter")

    def select(self, node: str) -> None:
        self.press(BOX.format(node))

    def connect(self, source: tuple[str, str], target: tuple[str, str]) -> None:
        """Choose an output in the dialog of an input."""
        self.select(target[0])
        self.press(port(target[0], "in", target[1]))
        self.write("//dialog//input[@type='search']", f"{source[0]}.{source[1]}")
        self.user.press("Enter")
