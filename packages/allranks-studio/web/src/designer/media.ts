// What the browser knows: media queries, stylesheets that are loaded later.
import { useEffect, useState } from "react";

export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const update = () => setMatches(media.matches);
    media.addEventListener("change", update);
    return () => media.removeEventListener("change", update);
  }, [query]);
  return matches;
}

// Load a stylesheet once. Return whether it has arrived: the canvas measures what it draws.
export function useStylesheet(url: string): boolean {
  const [isLoaded, setLoaded] = useState(() => document.querySelector(`link[href="${url}"][data-loaded]`) !== null);
  useEffect(() => {
    if (isLoaded) return;
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = url;
    const finish = () => {
      link.dataset.loaded = "";
      setLoaded(true);
    };
    link.addEventListener("load", finish);
    link.addEventListener("error", finish);
    document.head.append(link);
  }, [url, isLoaded]);
  return isLoaded;
}
