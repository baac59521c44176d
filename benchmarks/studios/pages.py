"""What a page of the studio does in Chromium: when it paints, and how many frames a second it draws."""

import json
import time
from collections.abc import Callable

from chromium import Browser, Tab
from user_input import UserInput

ROWS = "document.querySelectorAll('[data-line]').length > 10"
CANVAS = "document.querySelector('.react-flow__viewport')"

_FRAMES = """
new Promise((done) => {
  const times = [];
  const frame = (now) => {
    times.push(now);
    if (now - times[0] < 2000) requestAnimationFrame(frame);
    else done((times.length - 1) / (times.at(-1) - times[0]) * 1000);
  };
  requestAnimationFrame(frame);
  %s;
})"""
_SCROLL = """
const moving = document.querySelector('[role=grid], [role=treegrid]');
const scroll = () => { moving.scrollTop += 40; if (performance.now() - start < 2000) requestAnimationFrame(scroll); };
const start = performance.now();
scroll()"""
# As a mouse does that drags the canvas.
_PAN = """
const pane = document.querySelector('.react-flow__pane'), box = pane.getBoundingClientRect();
const start = performance.now();
const send = (type, x, y) => (type === "mousedown" ? pane : window).dispatchEvent(new MouseEvent(type, {
  bubbles: true, cancelable: true, view: window, button: 0, buttons: 1, clientX: box.x + x, clientY: box.y + y }));
send("mousedown", 300, 300);
const pan = () => {
  const passed = performance.now() - start;
  send("mousemove", 300 + 100 * Math.sin(passed / 200), 300 + 80 * Math.cos(passed / 170));
  if (passed < 2000) requestAnimationFrame(pan); else send("mouseup", 300, 300);
};
pan()"""


class Pages:
    """A tab of a studio, which was opened at its address with the token."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.base = address.partition("?")[0]
        self.tab: Tab = browser.open(address, 1440, 900)
        self.input = UserInput(self.tab)

    def open(self, path: str, shown: str) -> float:
        """Load a view, and return the seconds from the request until a condition holds in the page."""
        started = time.perf_counter()
        self.tab.call("Page.navigate", url=self.base + path)
        self.tab.wait_for(f"location.href === {json.dumps(self.base + path)} && {shown}")
        return time.perf_counter() - started

    def first_paint(self) -> float:
        """Return the seconds from the request of the loaded page until it first painted content."""
        name = "'first-contentful-paint'"
        return float(self.tab.evaluate(f"performance.getEntriesByName({name})[0].startTime")) / 1000

    def kilobytes(self, shown: str) -> float:
        """Load the first view without a cache, and return the size of what was transferred, compressed, without data of
        the API."""
        self.tab.call("Network.enable")
        self.tab.call("Network.setCacheDisabled", cacheDisabled=True)
        self.open("", shown)
        self.tab.call("Network.setCacheDisabled", cacheDisabled=False)
        sizes = "['navigation', 'resource'].flatMap((each) => performance.getEntriesByType(each))"
        sizes += ".filter((each) => !each.name.includes('/api/')).map((each) => each.encodedBodySize)"
        return float(self.tab.evaluate(f"{sizes}.reduce((a, b) => a + b)")) / 1000

    def scrolled(self) -> float:
        """Return the frames a second while the table scrolls."""
        return float(self.tab.evaluate(_FRAMES % _SCROLL))

    def panned(self) -> float:
        """Return the frames a second while the canvas moves."""
        return float(self.tab.evaluate(_FRAMES % _PAN))

    def seconds_until(self, shown: str, act: Callable[[], object]) -> float:
        """Act, and return the seconds until a condition holds in the page, as its own clock has them."""
        watch = f"(() => {{ const look = () => {shown} ? window.seen = Date.now() : requestAnimationFrame(look);"
        self.tab.evaluate(f"window.seen = 0; {watch} look(); }})()")
        started = time.time()
        act()
        self.tab.wait_for("window.seen")
        return float(self.tab.evaluate("window.seen")) / 1000 - started
