"use strict";
// One search box for steps and log lines, and a button for each state. Called again after each update of the page.
const applyFilter = (() => {
  const MOST_LINES = 200;
  const texts = new WeakMap();
  let only = "";
  let marked = [];

  const box = () => document.getElementById("search");

  const linesOf = (log) => {
    const text = log.textContent;
    let known = texts.get(log);
    if (known?.text !== text) {
      const lines = text.split("\n");
      known = { text, lines, lower: lines.map((line) => line.toLowerCase()) };
      texts.set(log, known);
    }
    return known;
  };

  const highlighted = (line, lower, wanted) => {
    const parts = document.createDocumentFragment();
    let from = 0;
    for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
      const mark = document.createElement("mark");
      mark.textContent = line.slice(at, at + wanted.length);
      parts.append(line.slice(from, at), mark);
      from = at + wanted.length;
    }
    parts.append(line.slice(from), "\n");
    return parts;
  };

  // Show the matching lines in place of a log, and return how many there are.
  const search = (log, wanted) => {
    let shown = log.nextElementSibling?.matches("[data-x-own]") ? log.nextElementSibling : null;
    const { lines, lower } = wanted ? linesOf(log) : { lines: [], lower: [] };
    const found = [];
    for (let index = 0; index < lines.length; index++) if (lower[index].includes(wanted)) found.push(index);
    log.hidden = found.length > 0;
    if (!found.length) {
      shown?.remove();
      return 0;
    }
    if (!shown) {
      shown = document.createElement("pre");
      shown.className = "log";
      shown.dataset.xOwn = "";
      log.after(shown);
    }
    shown.replaceChildren(...found.slice(0, MOST_LINES).map((index) => highlighted(lines[index], lower[index], wanted)));
    if (found.length > MOST_LINES) shown.append(`… ${(found.length - MOST_LINES).toLocaleString("en")} more lines`);
    return found.length;
  };

  const unfold = (details) => {
    if (details.open) return;
    details.open = true;
    details.dataset.xFound = "";
  };

  const refold = () => {
    for (const details of document.querySelectorAll("[data-x-found]")) {
      details.open = details.dataset.xTouched !== undefined && details.open;
      delete details.dataset.xFound;
    }
  };

  const apply = () => {
    const form = document.getElementById("filter");
    if (!form) return;
    form.hidden = false;
    const wanted = box().value.trim().toLowerCase();
    const entries = [...document.querySelectorAll("#details .entry[id]")];
    for (const button of form.querySelectorAll("[data-only]")) {
      button.setAttribute("aria-pressed", String(button.dataset.only === only));
    }
    refold();
    const fits = new Set();
    let steps = 0, lines = 0;
    const active = Boolean(wanted || only);
    if (active) {
      // A group stands before what it contains. From the last to the first, its contents are known first.
      for (const entry of entries.reverse()) {
        const inState = !only || entry.classList.contains(only);
        const isNamed = entry.dataset.name.toLowerCase().includes(wanted);
        let found = 0;
        for (const log of entry.querySelectorAll(":scope > .more .log:not([data-x-own])")) {
          const times = inState ? search(log, wanted) : search(log, "");
          for (let outer = log.closest("details"); times && outer !== entry; outer = outer.parentElement.closest("details")) unfold(outer);
          found += times;
        }
        const itself = inState && (isNamed || found > 0);
        const inside = entry.classList.contains("group") && entry.querySelector(":scope > .inner .entry[data-x-fits]") !== null;
        entry.toggleAttribute("data-x-fits", itself || inside);
        entry.hidden = !itself && !inside;
        if (itself || inside) fits.add(entry.id);
        if (itself) {
          steps += !entry.classList.contains("group");
          lines += found;
        }
        if (found || inside) unfold(entry);
      }
      for (const cut of document.querySelectorAll("#details .cut")) {
        const some = cut.querySelector(".entry[data-x-fits]") !== null;
        cut.hidden = !some;
        if (some) unfold(cut);
      }
    } else {
      for (const hidden of document.querySelectorAll("#details [hidden]")) hidden.hidden = false;
      for (const entry of entries) entry.removeAttribute("data-x-fits");
      for (const log of document.querySelectorAll("#details .log:not([data-x-own])")) search(log, "");
    }
    for (const mark of marked) mark.removeAttribute("data-x-dim");
    marked = active ? [...document.querySelectorAll(".ref, .cell")].filter((mark) => !fits.has((mark.dataset.href ?? mark.getAttribute("href")).replace(/^#(graph-)?/, ""))) : [];
    for (const mark of marked) mark.setAttribute("data-x-dim", "");
    const count = (amount, noun) => `${amount.toLocaleString("en")} ${noun}${amount === 1 ? "" : "s"}`;
    document.getElementById("found").textContent = active ? [count(steps, "step"), ...(lines ? [count(lines, "line")] : [])].join(", ") : "";
  };

  let waiting = 0;
  document.addEventListener("input", (event) => {
    if (event.target.id !== "search") return;
    clearTimeout(waiting);
    waiting = setTimeout(apply, 120);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-only]");
    if (!button) return;
    only = only === button.dataset.only ? "" : button.dataset.only;
    apply();
  });
  document.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing && box()) { event.preventDefault(); box().focus(); box().select(); }
    if (event.key === "Escape" && event.target === box()) { box().value = ""; only = ""; apply(); }
  });
  return { apply, isActive: () => Boolean(only || box()?.value), state: () => ({ only, text: box()?.value ?? "" }), restore: (state) => {
    only = state.only;
    if (box()) box().value = state.text;
    apply();
  } };
})();
applyFilter.apply();
