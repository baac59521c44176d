"use strict";
for (const figure of document.querySelectorAll("[data-chart]")) {
  const { x, plot: [left, top, width, height], series } = JSON.parse(figure.dataset.chart);
  const svg = figure.querySelector(":scope > svg");
  const view = svg.viewBox.baseVal;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  figure.append(tip);
  const pointer = document.createElementNS("http://www.w3.org/2000/svg", "line");
  pointer.setAttribute("class", "pointer");
  pointer.setAttribute("y1", top);
  pointer.setAttribute("y2", top + height);

  const nearest = (points, at) => {
    let low = 0, high = points.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle][0] < at) low = middle; else high = middle;
    }
    return Math.abs(points[low][0] - at) <= Math.abs(points[high][0] - at) ? points[low] : points[high];
  };

  const row = (name, value) => {
    const line = document.createElement("div");
    const strong = document.createElement("b");
    strong.textContent = value;
    line.append(strong, name);
    return line;
  };

  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width * view.width;
    const at = x[0] + (across - left) / width * (x[1] - x[0]);
    const found = series.filter((one) => one.points.length).map((one) => [one.name, nearest(one.points, at)]);
    if (!found.length) return;
    const place = found.map(([, point]) => point[0]).reduce((a, b) => Math.abs(a - at) <= Math.abs(b - at) ? a : b);
    const px = left + (x[1] > x[0] ? (place - x[0]) / (x[1] - x[0]) : 0.5) * width;
    pointer.setAttribute("x1", px);
    pointer.setAttribute("x2", px);
    svg.append(pointer);
    tip.replaceChildren(row("step", place.toLocaleString("en")), ...found.map(([name, point]) => row(name, point[2])));
    tip.hidden = false;
    const fixed = figure.getBoundingClientRect();
    const from = px / view.width * box.width;
    tip.style.top = `${box.top - fixed.top + 8}px`;
    tip.style.left = `${from + tip.offsetWidth + 24 > box.width ? from - tip.offsetWidth - 12 : from + 12}px`;
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; pointer.remove(); });
}
addEventListener("beforeprint", () => { for (const details of document.querySelectorAll("details")) details.open = true; });
