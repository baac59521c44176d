"use strict";
// A link to something folded unfolds it. What the reader has folded or unfolded stays so when the page is updated.
{
  const open = (details) => {
    details.open = true;
    details.dataset.xTouched = "";
  };

  const show = () => {
    const target = document.getElementById(location.hash.slice(1)) ?? document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.tagName === "DETAILS") open(target);
    for (let outer = target.parentElement?.closest("details"); outer; outer = outer.parentElement.closest("details")) open(outer);
    target.scrollIntoView({ block: "start" });
    target.dataset.xShown = "";
    setTimeout(() => { delete target.dataset.xShown; }, 1600);
  };

  // A log is read from its end.
  const toEnds = (logs) => { for (const log of logs) log.scrollTop = log.scrollHeight; };
  toEnds(document.querySelectorAll(".rank[open] > .log"));
  document.addEventListener("toggle", ({ target }) => {
    if (target.open) toEnds(target.querySelectorAll(":scope > .log, .rank[open] > .log"));
  }, true);

  addEventListener("hashchange", show);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) show();
    const summary = event.target.closest?.("summary");
    if (summary && !link) summary.parentElement.dataset.xTouched = "";
  });
  if (location.hash) show();
}
