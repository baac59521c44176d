"use strict";
// The page of a running run loads itself again every few seconds. It keeps what the reader has unfolded, typed and scrolled to.
const pageState = {
  save() {
    const folds = {};
    for (const details of document.querySelectorAll("details[id][data-x-touched]")) folds[details.id] = details.open;
    history.replaceState({ folds, filter: applyFilter.state(), scroll: scrollY }, "");
  },
  restore() {
    const state = history.state;
    if (!state?.folds) return;
    for (const [id, open] of Object.entries(state.folds)) {
      const details = document.getElementById(id);
      if (details) { details.open = open; details.dataset.xTouched = ""; }
    }
    applyFilter.restore(state.filter);
    scrollTo(0, state.scroll);
  },
};
pageState.restore();
if (document.body.dataset.live !== undefined) {
  setInterval(() => {
    const isInUse = document.activeElement.id === "search" || !getSelection().isCollapsed;
    if (document.hidden || isInUse) return;
    pageState.save();
    location.reload();
  }, 5000);
}
addEventListener("beforeprint", () => { for (const details of document.querySelectorAll("details")) details.open = true; });
