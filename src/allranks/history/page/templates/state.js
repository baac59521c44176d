"use strict";
// When the run ends, the page is loaded once more: what the reader has unfolded, typed and scrolled to is kept.
const pageState = {
  save(extra) {
    const folds = {};
    for (const details of document.querySelectorAll("details[id][data-x-touched]")) folds[details.id] = details.open;
    history.replaceState({ ...extra, folds, filter: applyFilter.state(), scroll: scrollY }, "");
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
addEventListener("beforeprint", () => { for (const details of document.querySelectorAll("details")) details.open = true; });
