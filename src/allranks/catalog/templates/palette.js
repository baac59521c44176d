(() => {
  const box = document.getElementById("search");
  const found = document.getElementById("found");
  const nothing = document.getElementById("nothing");
  const articles = [...document.querySelectorAll("article")];
  const entries = new Map([...document.querySelectorAll("nav li")].map((entry) => [entry.dataset.name, entry]));
  const all = found.textContent;

  const search = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const article of articles) {
      const fits = words.every((word) => article.dataset.words.includes(word));
      article.hidden = !fits;
      entries.get(article.id).hidden = !fits;
      count += fits;
    }
    for (const group of document.querySelectorAll(".group")) {
      group.hidden = !group.querySelector("li:not([hidden])");
    }
    nothing.hidden = count > 0;
    found.textContent = words.length ? `${count} of ${articles.length} components` : all;
  };

  const mark = () => {
    const name = decodeURIComponent(location.hash.slice(1));
    for (const [key, entry] of entries) {
      const link = entry.firstElementChild;
      if (key === name) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };

  box.addEventListener("input", search);
  document.getElementById("clear").addEventListener("click", () => { box.value = ""; search(); box.focus(); });
  for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing) { event.preventDefault(); box.focus(); box.select(); }
    if (event.key === "Escape" && event.target === box) { box.value = ""; search(); }
  });
  addEventListener("hashchange", mark);
  mark();
  search();
})();
