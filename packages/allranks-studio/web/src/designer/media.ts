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
  const [isLoaded, setLoaded] = useState(() => !!document.querySelector<HTMLLinkElement>(`link[href="${url}"]`)?.sheet);
  useEffect(() => {
    if (isLoaded) return;
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: url });
    link.onload = link.onerror = () => setLoaded(true);
    document.head.append(link);
  }, [url, isLoaded]);
  return isLoaded;
}
