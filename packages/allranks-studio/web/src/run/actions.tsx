// What can be done with a run: cancel, resume, run again with other inputs.
import { useState } from "react";
import type { Folder, Run } from "../api";
import { Button } from "../controls";
import { literal } from "../fields";
import { Dialog, isActive, show } from "../parts";
import { navigate, view } from "../router";
import { RunDialog } from "../run_dialog";
import { post } from "../server";

interface Properties {
  folder: Folder;
  run: Run;
}

export function Actions({ folder, run }: Properties) {
  const [asked, setAsked] = useState<"" | "cancel" | "rerun">("");
  const [isBusy, setIsBusy] = useState(false);
  const canResume = ["Failed", "Canceled", "Interrupted"].includes(run.status);
  const send = async (action: "resume" | "cancel") => {
    setAsked("");
    setIsBusy(true);
    await post(`/api/runs/${action}`, { folder: folder.id, run: run.id }).catch(show);
    setIsBusy(false);
  };
  if (folder.read_only) return null;
  return (
    <div className="actions">
      {isActive(run.status) && (
        <Button text="Cancel the run" className="danger" disabled={isBusy} onClick={() => setAsked("cancel")} />
      )}
      {canResume && <Button text="Resume" className="primary" disabled={isBusy} onClick={() => void send("resume")} />}
      {run.source && <Button text="Run again …" onClick={() => setAsked("rerun")} />}
      {asked === "cancel" && (
        <Dialog
          title={`Cancel ${run.name}?`}
          submit="Cancel the run"
          dismiss="Keep it running"
          onClose={() => setAsked("")}
          onSubmit={() => void send("cancel")}
        >
          <p>Its steps are stopped. Steps that have completed can be used again: resume the run later.</p>
        </Dialog>
      )}
      {asked === "rerun" && <Rerun folder={folder} run={run} onClose={() => setAsked("")} />}
    </div>
  );
}

// Inputs that are left as they are keep the value of this run.
function Rerun({ folder, run, onClose }: Properties & { onClose: () => void }) {
  const start = async (inputs: object) => {
    const body = { folder: folder.id, run: run.id, inputs };
    navigate(view(["runs", (await post<{ run: string }>("/api/runs/rerun", body)).run]));
  };
  const inputs = Object.entries(run.inputs).map(([name, value]) => ({ name, value: literal(value) }));
  const note = `${run.source}, as it is now. Steps whose inputs and code are the same reuse their results.`;
  return <RunDialog title={`Run ${run.name} again`} {...{ note, inputs, start, onClose }} />;
}
