// What is under way for a partition: what the metastore's queue says, else the run that somebody has started for it.

import { getUnfinishedRuns } from "./api.js";
import { h } from "./dom.js";
import { entityName } from "./format.js";

export function requestBadge(request) {
  const { id, type, state } = request;
  return h("span", { class: `badge ${state.replaceAll(" ", "_")}`, title: `Request ${id}, ${type}` }, state);
}

export function runBadge(run) {
  return h("span", { class: "badge working", title: run.dag_run_id }, `run ${run.state}`);
}

// What was asked for and is not done: one more request would only be told so.
export function isInWork(request) {
  return request.state === "initiated" || request.state === "working";
}

export function isWaiting(request) {
  return isInWork(request) || request.state === "ready for cleaning";
}

// Runs of named partitions, or of a table without, by each name. Of whole tables only the queue says how far they are.
export async function startedRuns({ metastore, overview }) {
  try {
    const { dag_runs: runs } = await getUnfinishedRuns(overview.compact_dag_id);
    const here = runs.filter(({ conf }) => conf && !conf.decide_only && conf.hive_acid_conn_id === metastore);
    return new Map(here.flatMap((run) => namesIn(run.conf).map((name) => [name, run])));
  } catch {
    return new Map(); // Without them the page says what the queue does.
  }
}

function namesIn({ database, table, partition }) {
  const named = { database: String(database).toLowerCase(), table: String(table).toLowerCase() };
  return String(partition ?? "").split("\n").map((each) => entityName({ ...named, partition: each.trim() }));
}
