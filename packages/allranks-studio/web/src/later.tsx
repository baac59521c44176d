import { type ComponentType, useEffect, useState } from "react";
import { Loading } from "./parts";

type Load<P> = () => Promise<{ default: ComponentType<P> }>;
const loaded = new Map<unknown, unknown>();

// A view whose code is loaded when it is shown. React.lazy would show what is loaded only 0.3 s after its fallback.
export function Later<P extends object>({ load, properties }: { load: Load<P>; properties: P }) {
  const [error, setError] = useState<unknown>(null);
  const [, setCount] = useState(0);
  const Known = loaded.get(load) as ComponentType<P> | undefined;
  useEffect(() => {
    if (loaded.has(load)) return;
    load().then((module) => {
      loaded.set(load, module.default);
      setCount((before) => before + 1);
    }, setError);
  }, [load]);
  if (error) throw error;
  return Known ? <Known {...properties} /> : <Loading />;
}
