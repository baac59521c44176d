import { type ComponentType, useEffect, useState } from "react";
import { Loading } from "./parts";

// A view whose code is loaded when it is shown. React.lazy would show what is loaded only 0.3 s after its fallback.
export function later<P extends object>(load: () => Promise<{ default: ComponentType<P> }>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  // biome-ignore lint/correctness/noComponentHookFactories: one for each view, made when the page is loaded
  return function Later(properties: P) {
    const [, setCount] = useState(0);
    const [error, setError] = useState<unknown>(null);
    useEffect(() => {
      const show = (module: { default: ComponentType<P> }) => {
        loaded = module.default;
        setCount((before) => before + 1);
      };
      if (!loaded) load().then(show, setError);
    }, []);
    if (error) throw error;
    const View = loaded;
    return View ? <View {...properties} /> : <Loading />;
  };
}
