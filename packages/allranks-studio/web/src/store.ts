import { useSyncExternalStore } from "react";

// A value that components read and that anything may set.
export interface Store<T> {
  get(): T;
  set(value: T | ((before: T) => T)): void;
  subscribe(listener: () => void): () => void;
}

export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      const changed = typeof next === "function" ? (next as (before: T) => T)(value) : next;
      if (Object.is(changed, value)) return;
      value = changed;
      for (const listener of [...listeners]) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export const useStore = <T>(store: Store<T>): T => useSyncExternalStore(store.subscribe, store.get);

// A store whose value survives a reload of the page, such as the columns of a table. Without storage, it does not.
export function createSavedStore<T>(key: string, initial: T): Store<T> {
  const store = createStore(initial);
  try {
    store.set(JSON.parse(localStorage.getItem(key) ?? "") as T);
  } catch {}
  store.subscribe(() => {
    try {
      localStorage.setItem(key, JSON.stringify(store.get()));
    } catch {}
  });
  return store;
}
