// The log of any rank of any step, and a search over all of them.
import { type FormEvent, useEffect, useState } from "react";
import type { Folder, Hit, Hits, Run } from "../api";
import { Button, Search, Select } from "../controls";
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
  const find = query.get("find") ?? "";
  const [typed, setTyped] = useState(find);
  useEffect(() => setTyped(find), [find]);
  const search = useServer<Hits>(find && "/api/log/search", { folder: folder.id, run: run.id, query: find });
  const steps = run.steps.filter(({ ranks }) => ranks.length);
  // Without a choice: the step and the rank that failed, the step that is running, or the last one.
  const step =
    steps.find(({ path }) => path === query.get("step")) ??
    steps.find(({ path }) => path === run.verdict?.step) ??
    steps.find(({ status }) => status === "Running") ??
    steps.findLast(({ started }) => started !== null);
  const failed = step?.path === run.verdict?.step ? run.verdict?.rank : null;
  const rank = step?.ranks.find((each) => each.rank === Number(query.get("rank") ?? failed ?? 0)) ?? step?.ranks[0];
  if (!step || !rank) return <Empty title="No step has started yet" />;

  const offset = query.get("offset");
  const hits = search.data?.hits ?? [];
  const isHere = (hit: Hit) => hit.step === step.path && hit.rank === rank.rank && String(hit.offset) === offset;
  const place = hits.findIndex(isHere);
  const jump = (hit?: Hit) => hit && setQuery({ step: hit.step, rank: hit.rank, offset: hit.offset });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (typed === find) jump(hits[place + 1]);
    else setQuery({ find: typed });
  };
  const type = (text: string) => {
    setTyped(text);
    if (!text) setQuery({ find: undefined });
  };
  return (
    <div className="logs">
      <div className="bar plain">
        <Select
          label="Step"
          value={step.path}
          options={steps.map(({ path }) => path)}
          onChange={(path) => setQuery({ step: path, rank: undefined, offset: undefined })}
        />
        <Select
          label="Rank"
          value={String(rank.rank)}
          options={step.ranks.map((each) => [
            String(each.rank),
            `${each.rank} · instance ${each.instance} · ${bytes(each.bytes)} ${each.exit}`,
          ])}
          onChange={(chosen) => setQuery({ step: step.path, rank: chosen, offset: undefined })}
        />
        <form onSubmit={submit}>
          <Search placeholder="Search the logs of all ranks" value={typed} onChange={type} />
        </form>
        {search.data && (
          <output className="soft">{count(hits.length, "line") + (search.data.complete ? "" : ", not all")}</output>
        )}
        <Button text="Wrap" aria-pressed={isWrapped} onClick={() => wrapping.set(!isWrapped)} />
      </div>
      {search.error && <Problem error={search.error} />}
      <div className="columns">
        {hits.length > 0 && (
          <ul className="hits" aria-label="Lines found">
            {hits.map((hit, index) => (
              <li key={`${hit.step}/${hit.rank}/${hit.offset}`}>
                <button type="button" aria-current={index === place ? "true" : undefined} onClick={() => jump(hit)}>
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
          find={find}
          isWrapped={isWrapped}
        />
      </div>
    </div>
  );
}
