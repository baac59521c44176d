"use strict";
// The values of a chart at the pointer. The page may be updated meanwhile, so a chart is read when the pointer is on it.
{
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

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.dataset.xOwn = "";
  const pointer = document.createElementNS("http://www.w3.org/2000/svg", "line");
  pointer.setAttribute("class", "pointer");
  pointer.dataset.xOwn = "";
  let data = "", chart = null;

  const remove = () => { tip.remove(); pointer.remove(); };

  document.addEventListener("pointermove", (event) => {
    const figure = event.target.closest?.("[data-chart]");
    const svg = figure?.querySelector(":scope > svg");
    if (!svg?.contains(event.target)) return remove();
    if (figure.dataset.chart !== data) {
      data = figure.dataset.chart;
      chart = JSON.parse(data);
    }
    const { x, label, plot: [left, top, width, height], series } = chart;
    const view = svg.viewBox.baseVal;
    const box = svg.getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width * view.width;
    const at = x[0] + (across - left) / width * (x[1] - x[0]);
    const found = series.filter((one) => one.points.length).map((one) => [one.name, nearest(one.points, at)]);
    if (!found.length) return remove();
    const place = found.map(([, point]) => point[0]).reduce((a, b) => Math.abs(a - at) <= Math.abs(b - at) ? a : b);
    const px = left + (x[1] > x[0] ? (place - x[0]) / (x[1] - x[0]) : 0.5) * width;
    for (const [name, value] of [["x1", px], ["x2", px], ["y1", top], ["y2", top + height]]) pointer.setAttribute(name, value);
    svg.append(pointer);
    const text = place.toLocaleString("en");
    tip.replaceChildren(row(label, text), ...found.map(([name, point]) => row(name, point[2])));
    figure.append(tip);
    const fixed = figure.getBoundingClientRect();
    const from = px / view.width * box.width;
    tip.style.top = `${box.top - fixed.top + 8}px`;
    tip.style.left = `${from + tip.offsetWidth + 24 > box.width ? from - tip.offsetWidth - 12 : from + 12}px`;
  });
  document.documentElement.addEventListener("pointerleave", remove);
}
