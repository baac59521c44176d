// What is too wide can be scrolled with the keyboard, and the buttons of code are no landmark of the page.
function amend() {
  document.querySelectorAll("pre > code, .md-typeset__scrollwrap").forEach((wide) => { wide.tabIndex = 0; });
  document.querySelectorAll("nav.md-code__nav").forEach((buttons) => buttons.setAttribute("role", "none"));
}
new MutationObserver(amend).observe(document.body, { childList: true, subtree: true });
amend();
