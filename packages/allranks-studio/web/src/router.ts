// Addresses of the page: a path and a query, both of which can be bookmarked.
import { address, type Query } from "./server";
import { createStore, useStore } from "./store";

export interface Address {
  path: string[]; // decoded: ["runs", "3f2a9c", "logs"]
  query: URLSearchParams;
}

const current = createStore(read());
addEventListener("popstate", () => current.set(read()));

function read(): Address {
  const path = location.pathname.split("/").filter(Boolean).map(decode);
  return { path, query: new URLSearchParams(location.search) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const useAddress = () => useStore(current);

// Return the address of a view in the current folder: view(["runs", id, "logs"], {step}).
export function view(path: string[], query: Query = {}): string {
  const folder = current.get().query.get("folder") ?? undefined;
  return address(`/${path.map(encodeURIComponent).join("/")}`, { folder, ...query });
}

export function navigate(url: string): void {
  history.pushState(null, "", url);
  current.set(read());
}

// Change parts of the query without a new entry in the history; undefined and "" remove one.
export function setQuery(changes: Query): void {
  const query = { ...Object.fromEntries(current.get().query), ...changes };
  const known = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ""));
  history.replaceState(null, "", address(location.pathname, known));
  current.set(read());
}

// Links within the studio change the view without loading the page; those with a target are left to the browser.
document.addEventListener("click", (event) => {
  const link = (event.target as Element).closest?.<HTMLAnchorElement>('a[href^="/"]');
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || link.target || event.defaultPrevented || !isPlain) return;
  event.preventDefault();
  navigate(link.pathname + link.search);
});
