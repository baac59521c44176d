// The states of a run's steps, by the node that they are of.
import type { Run, Status, Step } from "../api";
import { useServer } from "../server";

// The states that are shown rather than those after them.
const FIRST: Status[] = ["Failed", "Running", "Preparing", "Interrupted", "Canceled", "NotStarted", "Completed"];

export function useLiveRun(folder: string, id: string) {
  const { data } = useServer<Run>(
    id && `/api/runs/${encodeURIComponent(id)}`,
    { folder },
    (event) => (event.kind === "run" || event.kind === "step") && event.run === id,
  );
  return data && { run: data, states: liveStates(data) };
}

// Iterations and trials of a node count as that node: "loop[2].train" is shown on "loop.train". count: how many
function liveStates(run: Run) {
  const nodes = Map.groupBy(run.steps, (step) => step.path.replace(/\[[^\]]*\]/g, ""));
  const place = ({ status }: Step) => (FIRST.includes(status) ? FIRST.indexOf(status) : FIRST.length);
  const first = (steps: Step[]) => steps.reduce((one, other) => (place(other) < place(one) ? other : one));
  return new Map([...nodes].map(([path, steps]) => [path, { ...first(steps), count: steps.length }]));
}
