// The log of any rank of any step, and a search over all of them.
import { useEffect, useState } from "react";
import type { Folder, Hit, Hits, Run } from "../api";
import { bytes, count } from "../format";
import { Empty, harmless, Problem } from "../parts";
import { setQuery, useAddress } from "../router";
import { useServer } from "../server";
import { createSavedStore, useStore } from "../store";
import { LogText } from "./log_text";

const wrapping = createSavedStore("studio.logs.wrap", true);

export function Logs({ folder, run }: { folder: Folder; run: Run }) {
  const { query } = useAddress();
  const isWrapped = useStore(wrapping);
  const text = query.get("find") ?? "";
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  const search = useServer<Hits>(text ? "/api/log/search" : "", { folder: folder.id, run: run.id, query: text });
  const steps = run.steps.filter(({ ranks }) => ranks.length);
  const step = steps.find(({ path }) => path === query.get("step")) ?? mostTelling(run);
  const rank =
    step?.ranks.find((each) => String(each.rank) === query.get("rank")) ??
    step?.ranks.find((each) => step.path === run.verdict?.step && each.rank === run.verdict.rank) ??
    step?.ranks[0];
  if (!step || !rank) return <Empty title="No step has started yet" />;
  const jump = (hit: Hit) => setQuery({ step: hit.step, rank: String(hit.rank), offset: String(hit.offset) });
  const offset = query.get("offset");
  const isHit = (hit: Hit) => hit.step === step.path && hit.rank === rank.rank && String(hit.offset) === offset;
  const hits = search.data?.hits ?? [];
  const move = (by: number) => {
    const hit = hits[Math.max(0, Math.min(hits.length - 1, hits.findIndex(isHit) + by))];
    if (hit) jump(hit);
  };
  return (
    <div className="logs">
      <div className="bar plain">
        <label className="check">
          Step
          <select
            value={step.path}
            onChange={(event) => setQuery({ step: event.target.value, rank: undefined, offset: undefined })}
          >
            {steps.map(({ path }) => (
              <option key={path}>{path}</option>
            ))}
          </select>
        </label>
        <label className="check">
          Rank
          <select
            value={rank.rank}
            onChange={(event) => setQuery({ step: step.path, rank: event.target.value, offset: undefined })}
          >
            {step.ranks.map((each) => (
              <option key={each.rank} value={each.rank}>
                {each.rank} · instance {each.instance} · {bytes(each.bytes)} {each.exit}
              </option>
            ))}
          </select>
        </label>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (typed === text && hits.length) move(1);
            else setQuery({ find: typed });
          }}
        >
          <input
            type="search"
            aria-label="Search the logs of all ranks"
            placeholder="Search the logs of all ranks"
            value={typed}
            onChange={(event) => {
              setTyped(event.target.value);
              if (!event.target.value) setQuery({ find: undefined });
            }}
          />
        </form>
        {text !== "" && search.data && (
          <>
            <output className="soft">
              {count(hits.length, "line")}
              {search.data.complete ? "" : ", not all"}
            </output>
            <button
              type="button"
              className="plain"
              aria-label="Previous line"
              disabled={!hits.length}
              onClick={() => move(-1)}
            >
              ↑
            </button>
            <button
              type="button"
              className="plain"
              aria-label="Next line"
              disabled={!hits.length}
              onClick={() => move(1)}
            >
              ↓
            </button>
          </>
        )}
        <button type="button" aria-pressed={isWrapped} onClick={() => wrapping.set(!isWrapped)}>
          Wrap
        </button>
      </div>
      {search.error && <Problem error={search.error} />}
      <div className="columns">
        {text !== "" && hits.length > 0 && (
          <ul className="hits" aria-label="Lines found">
            {hits.map((hit) => (
              <li key={`${hit.step}/${hit.rank}/${hit.offset}`}>
                <button type="button" aria-current={isHit(hit) ? "true" : undefined} onClick={() => jump(hit)}>
                  <small>
                    {hit.step} · rank {hit.rank}
                  </small>
                  <code>{harmless(hit.text).trim().slice(0, 300)}</code>
                </button>
              </li>
            ))}
          </ul>
        )}
        <LogText
          key={`${step.path}/${rank.rank}`}
          source={{ folder: folder.id, run: run.id, step: step.path, rank: rank.rank }}
          offset={offset === null ? null : Number(offset)}
          find={text}
          isWrapped={isWrapped}
        />
      </div>
    </div>
  );
}

// The step that failed, the one that is running, or the last one.
function mostTelling(run: Run) {
  const steps = run.steps.filter(({ ranks }) => ranks.length);
  return (
    steps.find(({ path }) => path === run.verdict?.step) ??
    steps.find(({ status }) => status === "Running") ??
    steps.findLast(({ started }) => started !== null) ??
    steps[0]
  );
}
