"use strict";
// While the run goes on, load the file that the engine writes beside the page, and change what differs.
{
  const POLL = 2000;
  const SLACK = 10;  // seconds that an update may be late
  const body = document.body;
  let written = Number(body.dataset.written), within = Number(body.dataset.within), clock = body.dataset.clock;
  let last = "", timer = 0, pause = POLL;

  // Attributes that the reader's actions set, on elements that the engine wrote.
  const isOwn = (name) => name.startsWith("data-x-") || name === "hidden" || name === "aria-pressed";
  const isOwnNode = (node) => node.nodeType === 1 && node.hasAttribute("data-x-own");
  const skipOwn = (node) => {
    while (node && isOwnNode(node)) node = node.nextSibling;
    return node;
  };

  const updateAttributes = (from, to) => {
    const isFold = from.nodeName === "DETAILS";
    const keepsFold = isFold && (from.dataset.xTouched !== undefined || from.dataset.xFound !== undefined || from.matches(":hover"));
    for (const { name, value } of to.attributes) {
      if (isOwn(name) || (keepsFold && name === "open")) continue;
      if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
    for (const { name } of [...from.attributes]) {
      if (!isOwn(name) && !to.hasAttribute(name) && !(keepsFold && name === "open")) from.removeAttribute(name);
    }
  };

  // Make `from` equal to `to` with as few changes as possible. An element with an id is found by it, also elsewhere.
  const update = (from, to) => {
    if (from.isEqualNode(to)) return;
    if (from.nodeType !== 1) {
      if (from.data !== to.data) from.data = to.data;
      return;
    }
    const follows = from.className === "log" && from.scrollTop + from.clientHeight > from.scrollHeight - 8;
    updateAttributes(from, to);
    let place = skipOwn(from.firstChild);
    for (const wanted of [...to.childNodes]) {
      let found = null;
      if (wanted.id) {
        found = document.getElementById(wanted.id);
        if (found && (found.nodeName !== wanted.nodeName || found.contains(from))) found = null;
      } else if (place && place.nodeName === wanted.nodeName && !place.id) {
        found = place;
      }
      // What a new element contains may exist elsewhere, so that it is moved.
      found ??= document.importNode(wanted, false);
      if (found !== place) from.insertBefore(found, place);
      update(found, wanted);
      place = skipOwn(found.nextSibling);
    }
    while (place) {
      const next = skipOwn(place.nextSibling);
      place.remove();
      place = next;
    }
    if (follows) from.scrollTop = from.scrollHeight;
  };

  // What the reader looks at stays where it is on the screen, also if something above it grows.
  const steady = (change) => {
    const seen = scrollY < 1 ? undefined : [...document.querySelectorAll("main section, main .entry[id], main figure")].find((each) => {
      const { top, height } = each.getBoundingClientRect();
      return height > 0 && top >= 0 && top < innerHeight;
    });
    const before = seen?.getBoundingClientRect().top;
    change();
    if (seen?.isConnected && seen.getClientRects().length) scrollBy({ top: seen.getBoundingClientRect().top - before, behavior: "instant" });
  };

  const duration = (seconds) => {
    const full = Math.max(Math.floor(seconds), 0), two = (number) => String(number).padStart(2, "0");
    if (full < 60) return `${full} s`;
    if (full < 3600) return `${Math.floor(full / 60)} min ${two(full % 60)} s`;
    if (full < 86400) return `${Math.floor(full / 3600)} h ${two(Math.floor(full % 3600 / 60))} min`;
    return `${Math.floor(full / 86400)} d ${Math.floor(full % 86400 / 3600)} h`;
  };

  const tick = () => {
    const late = Date.now() / 1000 - written > 2 * within + SLACK;
    const stale = document.getElementById("stale");
    stale.hidden = !late;
    body.classList.toggle("late", late);
    if (late) {
      stale.textContent = `Last updated at ${clock}. If the run was stopped or killed, resume it: allranks resume ${body.dataset.run}`;
      return;
    }
    if (document.hidden) return;
    const now = Date.now() / 1000;
    for (const span of document.querySelectorAll("[data-since]")) {
      const text = duration(now - Number(span.dataset.since));
      if (span.textContent !== text) span.textContent = text;
    }
  };

  window.allranksUpdate = (page) => {
    if (page.written === written && last) return;
    ({ written, within, clock } = page);
    if (page.main === last) return tick();
    const begin = performance.now();
    last = page.main;
    document.title = page.title;
    const main = document.getElementById("main");
    const wanted = new DOMParser().parseFromString(`<main id="main">\n${page.main}\n</main>`, "text/html").getElementById("main");
    steady(() => {
      update(main, wanted);
      if (applyFilter.isActive()) applyFilter.apply(); else document.getElementById("filter")?.removeAttribute("hidden");
    });
    tick();
    pause = Math.max(POLL, 20 * (performance.now() - begin));
  };

  const poll = () => {
    clearTimeout(timer);
    const script = document.createElement("script");
    script.src = `${body.dataset.live}?${Date.now()}`;
    script.onload = () => { script.remove(); timer = setTimeout(poll, pause); };
    script.onerror = () => {
      script.remove();
      // The file is removed after the page of the ended run was written. If this page has already been loaded again,
      // it is a copy without the file.
      if (history.state?.written === written) { timer = setTimeout(poll, 15 * POLL); return; }
      pageState.save({ written });
      location.reload();
    };
    document.head.append(script);
  };

  document.addEventListener("visibilitychange", () => { if (document.hidden) clearTimeout(timer); else poll(); });
  setInterval(tick, 1000);
  tick();
  timer = setTimeout(poll, 300);
}
