// Code that is too wide can be scrolled with the keyboard, and its buttons are no landmark of the page.
function amend() {
  document.querySelectorAll("pre > code").forEach((code) => { code.tabIndex = 0; });
  document.querySelectorAll("nav.md-code__nav").forEach((buttons) => buttons.setAttribute("role", "none"));
}
new MutationObserver(amend).observe(document.body, { childList: true, subtree: true });
amend();
