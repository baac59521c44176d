(() => {
  const box = document.getElementById("search");
  const found = document.getElementById("found");
  const results = document.getElementById("results");
  const groups = document.querySelectorAll(".group");
  const articles = new Map([...document.querySelectorAll("article")].map((article) => [article.id, article]));
  const entries = [...document.querySelectorAll("nav li")].map((item) => ({ item, list: item.parentElement, name: item.dataset.name }));
  const all = found.textContent;

  // One component is shown at a time.
  const show = (name) => {
    for (const [id, article] of articles) article.hidden = id !== name;
    for (const { item, name: id } of entries) item.firstElementChild.setAttribute("aria-current", id === name);
  };

  // Names count before descriptions and ports, and the beginning of a word before its middle.
  const distance = ({ item, name }, words) => {
    const title = item.dataset.title;
    const parts = title.split(/[\s_]+/);
    const each = (word) => {
      if (title.startsWith(word)) return 0;
      if (parts.some((part) => part.startsWith(word))) return 1;
      if (title.includes(word)) return 2;
      return articles.get(name).dataset.words.includes(word) ? 9 : Infinity;
    };
    return words.reduce((sum, word) => sum + each(word), 0);
  };

  const search = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const ranked = entries.map((entry) => [distance(entry, words), entry]).filter(([far]) => far < Infinity);
    if (words.length) {
      ranked.sort(([a], [b]) => a - b);
      results.replaceChildren(...ranked.map(([, { item }]) => item));
    }
    else for (const { item, list } of entries) list.append(item);
    results.hidden = !words.length;
    for (const group of groups) group.hidden = words.length > 0;
    document.getElementById("nothing").hidden = ranked.length > 0;
    found.textContent = words.length ? `${ranked.length} of ${entries.length} components` : all;
    if (words.length) show(ranked[0]?.[1].name);
    else follow();
  };

  const follow = () => {
    const name = decodeURIComponent(location.hash.slice(1));
    show(articles.has(name) ? name : entries[0]?.name);
    document.querySelector("[aria-current=true]")?.scrollIntoView({ block: "nearest" });
  };

  // The step with the inputs that it needs, and the values that were changed in its form.
  const values = (article) => [...article.querySelectorAll("[data-port]")].flatMap((field) => {
    const { port, type } = field.dataset;
    if (!type) return [[port, "", ""]];
    const initial = field.options ? [...field.options].find((each) => each.defaultSelected)?.value ?? "" : field.defaultValue;
    return field.required || field.value !== initial ? [[port, field.value && type, field.value]] : [];
  });

  const texts = {
    python: ({ dataset: { folder, definition } }, pairs) => {
      const literal = (port, type, value) => type === "string" ? JSON.stringify(value) : type ? value : port;
      const lines = pairs.map((pair) => `\n    ${pair[0]}=${literal(...pair)},`);
      return `${definition && `${definition}\n\n`}step = ${folder}(${lines.join("")}${lines.length ? "\n" : ""})\n`;
    },
    yaml: ({ dataset: { folder, spec } }, pairs) => {
      const literal = (port, type, value) => {
        if (type === "boolean") return value.toLowerCase();
        return type === "string" ? JSON.stringify(value) : type ? value : `\${{parent.inputs.${port}}}`;
      };
      const lines = pairs.map((pair) => `\n    ${pair[0]}: ${literal(...pair)}`);
      return `${folder}:\n  type: command\n  component: ${spec}${lines.length ? `\n  inputs:${lines.join("")}` : ""}\n`;
    },
  };

  document.addEventListener("click", async (event) => {
    const kind = event.target.dataset?.copy;
    if (!kind) return;
    const article = event.target.closest("article");
    const shown = article.querySelector("pre");
    shown.textContent = texts[kind](article, values(article));
    shown.hidden = false;
    const said = article.querySelector("output");
    try {
      await navigator.clipboard.writeText(shown.textContent);
      said.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(shown);
      said.textContent = "selected; copy it";
    }
  });
  box.addEventListener("input", search);
  document.getElementById("clear").addEventListener("click", () => { box.value = ""; search(); box.focus(); });
  for (const form of document.forms) form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing) { event.preventDefault(); box.focus(); box.select(); }
    if (event.key === "Escape" && event.target === box) { box.value = ""; search(); }
  });
  addEventListener("hashchange", () => {
    follow();
    document.querySelector("article:not([hidden])")?.scrollIntoView();
  });
  search();
})();
