// What the server sends and takes. Times are seconds since the epoch. `runs=A,B` are at most 200.

// The states of runs, steps and ranks with their symbols, in the order in which a table has them.
export const SYMBOLS = {
  Running: "●",
  Preparing: "◌",
  NotStarted: "○",
  Failed: "✗",
  Interrupted: "!",
  Canceled: "■",
  Skipped: "⊘",
  Completed: "✓",
};
export type Status = keyof typeof SYMBOLS;

// GET /api/state: {version, folders: Folder[]}
export interface Folder {
  id: string; // a short name, which URLs contain
  path: string;
  read_only: boolean;
}

// A finding of `allranks check`. Lines count from 1; 0: of the whole file.
export interface Finding {
  level: "error" | "warning" | "advice" | "this machine";
  where: string;
  found: string;
  expected: string;
  fix: string;
  rule: string;
  node: string; // its path; "" if it is of no node
  port: string;
  line: number;
  edits: Edit[]; // the fix as edits; empty if it is not one
}

// ---------------------------------------------------------------------------------------------- documents

export type Plain = string | number | boolean | null;

export type Value =
  | { kind: "literal"; value: Plain }
  | { kind: "input"; name: string } // an input of the graph
  | { kind: "output"; node: string; port: string } // an output of a node of the same graph
  | { kind: "expression"; text: string }; // anything else, which is locked

export interface Port {
  name: string;
  type: string; // uri_folder, uri_file, mltable, mlflow_model, custom_model, string, integer, number, boolean
  optional: boolean;
  description: string;
  default: Plain;
  minimum: number | null;
  maximum: number | null;
  enum: string[];
}

export interface InputPort extends Port {
  value: Value | null; // null: it is not set
  line: number; // of the value in the text; 0 if it is not set
  locked: string; // why the value cannot be edited; "" if it can
}

export interface Layout {
  distribution: "none" | "pytorch" | "mpi" | "tensorflow" | "ray";
  instances: Value; // an integer, or an input of the graph
  processes: Value;
  size: string; // such as Standard_ND96isr_H100_v5; "" if it is not given
  gpus: number; // of each instance; 0 if the size is unknown or has none
}

export interface Lock {
  reason: "loop" | "helper" | "kwargs" | "expression" | "alias" | "unsupported";
  text: string; // one sentence, with what to do
  line: number;
}

export interface Node {
  path: string; // "train", or "tune.train" in a nested pipeline
  name: string;
  kind: "command" | "parallel" | "sweep" | "pipeline" | "condition" | "do_while" | "parallel_for" | "stand_in";
  component: string; // its name
  version: string;
  display_name: string;
  description: string;
  inputs: InputPort[];
  outputs: Port[];
  layout: Layout | null;
  compute: string;
  environment: string;
  note: string; // what a control node does: its condition, iterations, items or search space
  first: number; // the lines of the node in the text; 0 if it is not in this file
  last: number;
  lock: Lock | null;
  graph: Graph | null; // of a pipeline component; the body of a loop is a node of its own, in `after` of the loop
  after: string[]; // nodes of the same graph that it waits for without data
}

export interface Graph {
  inputs: InputPort[];
  outputs: { name: string; type: string; value: Value; line: number }[];
  nodes: Node[];
}

// GET /api/document?folder=F&path=P, and the answer to each change of it.
export interface Document {
  folder: string;
  path: string; // relative to the folder
  language: "python" | "yaml";
  digest: string; // of the text; changes name the one that they are based on
  text: string;
  name: string; // of the pipeline
  display_name: string;
  description: string;
  compute: string; // the default of the pipeline
  graph: Graph | null; // the last one that could be read; null if there is none
  current: boolean; // whether `graph` is that of `text`
  findings: Finding[];
  changed: number[]; // lines that the last change wrote
  undo: string; // what would be undone, such as "add node train"; "" for nothing
  redo: string;
  read_only: boolean;
  // Upper left corners of nodes by path: those that the user moved, and our layout's. Each graph runs from left to right,
  // has an origin of its own, and has boxes of about 240 x 130.
  positions: Record<string, [number, number]>;
}

// POST /api/document/edit {folder, path, digest, edits}: 200 Document; 409 Conflict; 422 Refusal. All edits or none.
// POST /api/document/text {folder, path, digest, text}; /undo and /redo {folder, path, digest}; /positions {..., positions}
// /positions takes those that the user moved; without any, all are those of the layout again. Its answer is {}.
// POST /api/document/new {folder, path, source}: source "" for an empty pipeline, or the path of one of the library
// GET /api/document/export?folder=F&path=P&form=python|yaml|request|plan|submit: {text}
// A `graph` is the path of the nested pipeline that is edited; "" for the file's own.
export type Edit =
  | { op: "add_node"; graph: string; component: string; name: string; inputs: Record<string, Value> } // name "": chosen
  | { op: "delete_node"; node: string }
  | { op: "rename_node"; node: string; name: string }
  | { op: "duplicate_node"; node: string; name: string }
  | { op: "set_input"; node: string; input: string; value: Value } // also connects
  | { op: "reset_input"; node: string; input: string } // also disconnects
  | { op: "set_layout"; node: string; instances: Value; processes: Value }
  | { op: "set_distribution"; node: string; distribution: string }
  | { op: "set_compute"; node: string; compute: string } // node "": the pipeline's default
  | {
      op: "add_input";
      graph: string;
      name: string;
      type: string;
      default: Plain;
      minimum: number | null;
      maximum: number | null;
      enum: string[];
    }
  | { op: "delete_input"; graph: string; name: string }
  | { op: "add_output"; graph: string; name: string; node: string; port: string }
  | { op: "delete_output"; graph: string; name: string }
  | { op: "wrap_nodes"; nodes: string[]; name: string }; // in a nested pipeline

export type Conflict = { message: string; document: Document }; // the file was changed meanwhile
export type Refusal = { problems: Finding[]; difference: string[] }; // difference: what would also have changed

// GET /api/pipelines?folder=F: the pipelines of the project and of the library
export type PipelineFile = { path: string; title: string; origin: "project" | "library" };

// GET /api/palette?folder=F
type Named = Pick<Node, "name" | "display_name" | "description" | "version" | "outputs">;
export interface PaletteItem extends Named {
  // What add_node names: "library:train_image_classifier", "registered:train@1", or
  // "project:components/prepare/component.yaml" (relative to the folder).
  component: string;
  origin: "library" | "project" | "registered";
  group: string;
  inputs: Port[];
  layout: string; // such as "pytorch 2 x 2"
}

// ---------------------------------------------------------------------------------------------- runs

// GET /api/runs?folder=F: all runs, newest first, in columns of the same length; with &since=SECONDS those created since
export interface Runs {
  id: string[];
  name: string[]; // the pipeline's display name
  status: Status[];
  trigger: string[]; // "manual" or the schedule
  created: number[];
  seconds: (number | null)[]; // null until it has ended
  metrics: Record<string, (number | null)[]>; // last values of the run's most relevant metrics
  inputs: Record<string, (string | null)[]>;
}

// GET /api/sparklines?folder=F&runs=A,B: for the visible rows; a run without curves is left out
export type Sparklines = Record<string, { metric: string; values: number[] }>; // at most 24 values

// What a run, a step, an attempt and a rank have.
export interface Execution {
  status: Status;
  started: number | null;
  ended: number | null;
}

// GET /api/runs/RUN?folder=F
export interface Run extends Execution {
  id: string;
  name: string;
  source: string; // the pipeline's file, relative to the folder if it is below
  created: number;
  seconds: number | null; // without the time between the executions of a resumed run
  inputs: Record<string, string>;
  outputs: Record<string, string>;
  verdict: Verdict | null;
  steps: Step[];
  edges: { from: string; to: string; label: string }[];
  positions: Record<string, [number, number]>; // by path, within the graph of the step's parent; boxes of 200 x 64
  pauses: [number, number][]; // times between two executions
  models: { name: string; version: string }[];
  notes: string[];
  page: boolean; // whether GET /api/page?folder=F&run=RUN saves the run's HTML file
}

export interface Verdict {
  step: string;
  rank: number | null;
  reason: string;
  where: string;
  advice: string;
  code: string; // of the explanation: allranks why CODE; "" for none
  traceback: string;
  tail: string[]; // of the rank's log
  consequences: string[]; // messages of other ranks after that
}

export interface Step extends Execution {
  path: string;
  name: string; // within its parent: "train", "loop[2]"
  kind: string;
  parent: string; // path of the node that contains it; "" at the top
  component: string;
  attempts: number;
  earlier: Execution[]; // attempts before the current one
  layout: string;
  reused_from: string;
  progress: string;
  ranks: Rank[];
  inputs: Record<string, string>;
  outputs: { name: string; type: string; value: string }[];
  metrics: Record<string, number | null>; // last values; null: not a finite number
  notes: string[];
}

export interface Rank extends Execution {
  rank: number;
  instance: number;
  host: string;
  exit: string;
  bytes: number; // of its log
}

// GET /api/curves?folder=F&runs=A,B&step=S: series of all their steps, or of one step, thinned to what a chart shows, and
// further if there are many
export interface Curve {
  run: string;
  step: string;
  metric: string;
  family: string; // what it measures: "loss" for train_loss and validation_loss
  x: number[]; // training steps
  y: (number | null)[]; // null: not a finite number
  time: number[];
}

// GET /api/usage?folder=F&run=RUN&step=STEP: one entry for each instance
export interface Usage {
  instance: number;
  time: number[];
  cpu: (number | null)[]; // percent of a core, since the sample before
  memory: number[]; // bytes
  gpu: (number | null)[]; // percent
}

// GET /api/compare?folder=F&runs=A,B: what differs between runs
export interface Comparison {
  runs: string[];
  inputs: Record<string, (string | null)[]>; // only those that differ
  metrics: Record<string, (number | null)[]>; // last values: "train/loss" is loss of the step train
  causes: { step: string; what: string; before: string; after: string }[]; // on which results of the first two depend: packages, variables, layouts
  code: { step: string; file: string; lines: string[] }[]; // unified differences of the first two
}

// GET /api/log?folder=F&run=R&step=S&rank=N&offset=O&bytes=B: whole lines; a negative offset counts from the end
export interface LogPart {
  offset: number; // of the first byte of `text`
  end: number; // of the first byte after it
  size: number; // of the log
  text: string;
}

// GET /api/log/search?folder=F&run=R&step=S&query=Q: without a step, in the logs of all ranks of all steps. At most
// 1,000 hits; not complete: there may be more, since the search ends after 5 seconds
export type Hits = { hits: Hit[]; complete: boolean };
export type Hit = { step: string; rank: number; offset: number; text: string };

// POST /api/runs/start {folder, path, inputs}: {run}; /cancel {folder, run}; /resume {folder, run}; /rerun {folder, run, inputs}

// GET /api/schedules?folder=F
export interface Schedule {
  name: string;
  file: string;
  trigger: string;
  enabled: boolean;
  next: number[]; // at most 5; empty if it is disabled, or starts when data changes
  history: { time: number; status: string; reason: string; run: string }[]; // at most 50, the latest first; run: "" if it has not started
  scheduler: number | null; // the process of the folder's scheduler; null if none is running
}

// ---------------------------------------------------------------------------------------------- events

// GET /api/events: server-sent events, each with an id; Last-Event-ID, or ?last=ID, continues after it. What is read after the stream
// has opened is not older than its first event. A step has at most 10 events of points a second.
export type Event =
  | { kind: "run"; folder: string; run: string; status: Status | "removed" } // created or changed
  | { kind: "step"; folder: string; run: string; step: string; status: Status }
  | { kind: "rank"; folder: string; run: string; step: string; rank: number; status: Status }
  | { kind: "points"; folder: string; run: string; step: string } // points were added to curves of the step
  | { kind: "log"; folder: string; run: string; step: string; rank: number; size: number }
  | { kind: "document"; folder: string; path: string; digest: string } // the file was changed
  | { kind: "schedule"; folder: string } // a schedule was changed, or has fired
  | { kind: "reset" }; // events were lost: read everything again
