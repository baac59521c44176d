// What can be done with a run: cancel, resume, run again with other inputs.
import { useState } from "react";
import type { Folder, Run } from "../api";
import { Dialog, isActive, Problem, show } from "../parts";
import { navigate, view } from "../router";
import { post } from "../server";

type Asked = "" | "cancel" | "rerun";

export function Actions({ folder, run }: { folder: Folder; run: Run }) {
  const [asked, setAsked] = useState<Asked>("");
  const [isBusy, setIsBusy] = useState(false);
  const canResume = run.status === "Failed" || run.status === "Canceled" || run.status === "Interrupted";
  const resume = async () => {
    setIsBusy(true);
    try {
      await post("/api/runs/resume", { folder: folder.id, run: run.id });
      show("The run continues.");
    } catch (error) {
      show(error);
    } finally {
      setIsBusy(false);
    }
  };
  if (folder.read_only) return null;
  return (
    <div className="actions">
      {isActive(run.status) && (
        <button type="button" className="danger" onClick={() => setAsked("cancel")}>
          Cancel the run
        </button>
      )}
      {canResume && (
        <button type="button" className="primary" disabled={isBusy} onClick={resume}>
          Resume
        </button>
      )}
      {run.source && (
        <button type="button" onClick={() => setAsked("rerun")}>
          Run again …
        </button>
      )}
      {asked === "cancel" && <Cancel folder={folder} run={run} onClose={() => setAsked("")} />}
      {asked === "rerun" && <Rerun folder={folder} run={run} onClose={() => setAsked("")} />}
    </div>
  );
}

interface Properties {
  folder: Folder;
  run: Run;
  onClose: () => void;
}

function Cancel({ folder, run, onClose }: Properties) {
  const submit = async () => {
    onClose();
    try {
      await post("/api/runs/cancel", { folder: folder.id, run: run.id });
    } catch (error) {
      show(error);
    }
  };
  return (
    <Dialog
      title={`Cancel ${run.name}?`}
      submit="Cancel the run"
      dismiss="Keep it running"
      onClose={onClose}
      onSubmit={submit}
    >
      <p>Its steps are stopped. Steps that have completed can be used again: resume the run later.</p>
    </Dialog>
  );
}

// Inputs that are left as they are keep the value of this run.
function Rerun({ folder, run, onClose }: Properties) {
  const [changed, setChanged] = useState<Record<string, string>>({});
  const [problem, setProblem] = useState<unknown>(null);
  const [isBusy, setIsBusy] = useState(false);
  const submit = async () => {
    setIsBusy(true);
    setProblem(null);
    try {
      const answer = await post<{ run: string }>("/api/runs/rerun", {
        folder: folder.id,
        run: run.id,
        inputs: changed,
      });
      onClose();
      navigate(view(["runs", answer.run]));
    } catch (error) {
      setProblem(error);
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <Dialog title={`Run ${run.name} again`} submit="Run" disabled={isBusy} onClose={onClose} onSubmit={submit}>
      <p className="soft">{run.source}, as it is now. Steps whose inputs and code are the same reuse their results.</p>
      {problem !== null && <Problem error={problem} />}
      {Object.entries(run.inputs).map(([name, value]) => (
        <label key={name} className="field">
          <span>
            {name} {name in changed && <small>was {value}</small>}
          </span>
          <input
            value={changed[name] ?? value}
            spellCheck={false}
            autoComplete="off"
            onChange={(event) => {
              const { [name]: _, ...others } = changed;
              setChanged(event.target.value === value ? others : { ...others, [name]: event.target.value });
            }}
          />
        </label>
      ))}
      {!Object.keys(run.inputs).length && <p>The pipeline has no inputs.</p>}
    </Dialog>
  );
}
