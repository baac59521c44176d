// The states of a run's steps, by the node that they are of.
import type { Run, Status } from "../api";
import { useServer } from "../server";

export interface LiveState {
  status: Status;
  progress: string;
  count: number; // iterations or trials
}

const PRECEDENCE: Status[] = [
  "Failed",
  "Running",
  "Preparing",
  "Interrupted",
  "Canceled",
  "NotStarted",
  "Completed",
  "Skipped",
];

export function useLiveRun(folder: string, id: string) {
  const { data } = useServer<Run>(
    id && `/api/runs/${encodeURIComponent(id)}`,
    { folder },
    (event) => (event.kind === "run" || event.kind === "step") && event.run === id,
  );
  return data && { run: data, states: liveStates(data) };
}

// Iterations and trials of a node count as that node: "loop[2].train" is shown on "loop.train".
export function liveStates(run: Run): Map<string, LiveState> {
  const states = new Map<string, LiveState>();
  for (const step of run.steps) {
    const path = step.path.replace(/\[[^\]]*\]/g, "");
    const known = states.get(path);
    const isMore = !known || PRECEDENCE.indexOf(step.status) < PRECEDENCE.indexOf(known.status);
    const { status, progress } = isMore ? step : known;
    states.set(path, { status, progress, count: (known?.count ?? 0) + 1 });
  }
  return states;
}
