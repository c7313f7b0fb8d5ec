// One partition: its figures, the directories it has in the order of their write ids, what keeps it from being
// cleaned, and what was done to it.

import { get } from "./api.js";
import { directoryTimeline, historyChart } from "./charts.js";
import { openCompact, openUndo } from "./compact.js";
import { empty, failure, h, loading, show, table } from "./dom.js";
import { age, ago, bytes, count, entityName, moment, plural, ratio } from "./format.js";
import { historyColumns } from "./history.js";
import { badge } from "./overview.js";
import { requestColumns } from "./queue.js";
import { isInWork, isWaiting, requestBadge, runBadge, startedRuns } from "./work.js";

export async function partitionView(parent, context) {
  const [database, table_, partition = ""] = context.here.path;
  const asked = { database, table: table_, partition, metastore: context.metastore };
  const back = h("p", { class: "crumbs" }, h("a", { href: context.address("partitions") }, "Partitions"), " / ",
    h("a", { href: context.address("partitions", [], { search: `${database}.${table_}` }) }, `${database}.${table_}`));
  const title = h("h2", { class: "title" }, h("code", null, partition || `${database}.${table_}`));
  const cleaning = h("section", { class: "panel", id: "cleaning" }, h("h3", null, "Queue and cleaning"), loading());
  const work = h("span");
  const start = h("span");
  fillCleaning(cleaning, asked, context, async (rows) => {
    const badges = new Map(rows.filter(isWaiting).map((row) => [row.state, requestBadge(row)]));
    const run = badges.size ? undefined : (await startedRuns(context)).get(entityName(asked));
    show(work, [...badges.values()], run && runBadge(run));
    start.hidden = run !== undefined || rows.some(isInWork);
  });
  let found;
  try {
    found = await get("partition", asked);
  } catch (error) {
    if (context.stale()) return;
    const row = { database, table: table_, partition };
    show(start, compactButton(row, context));
    show(parent, back, h("div", { class: "title-row" }, title, work, start),
      error.code === "unknown_partition" ? empty("Not known yet", error.message) : failure(error, context.redraw), cleaning);
    return;
  }
  if (context.stale()) return;
  const { figures, directories, history } = found;
  show(start, compactButton(figures, context));
  show(
    parent, back,
    h("div", { class: "title-row" }, title, badge(figures.state), work, h("span", { class: "grow" }), start),
    h("p", { class: "reason" }, figures.reason),
    facts(figures),
    h("section", { class: "panel" }, h("h3", null, "Directories ", seenAt(figures)), directoriesOf(figures, directories)),
    cleaning,
    h("section", { class: "panel" }, h("h3", null, "History"), historyOf(history)),
  );
}

function compactButton(row, context) {
  return h("button", { type: "button", class: "primary", onclick: () => openCompact([row], context) }, "Compact…");
}

function seenAt(figures) {
  return h("small", { class: "quiet", title: moment(figures.evaluated_ms) }, `as seen ${ago(figures.evaluated_ms)}`);
}

function facts(figures) {
  const fact = (name, value, hint) => h("div", { title: hint }, h("dt", null, name), h("dd", null, value));
  return h(
    "dl", { class: "facts" },
    fact("Deltas", count(figures.deltas)),
    fact("Delete deltas", count(figures.delete_deltas)),
    fact("Base", bytes(figures.base_bytes)),
    fact("Deltas' size", bytes(figures.delta_bytes)),
    fact("Ratio", ratio(figures.delta_size_ratio), "Delta bytes per byte of base"),
    fact("Aborted", plural(figures.aborted_directories, "directory", "directories"), `${figures.aborted_transactions} aborted transactions`),
    fact("To be cleaned", bytes(figures.obsolete_bytes), "Obsolete and aborted directories"),
    fact("Last compaction", ago(figures.last_compaction_ms), moment(figures.last_compaction_ms)),
  );
}

function directoriesOf(figures, directories) {
  if (!directories.length) return empty("No ACID directories", "None were seen, or nobody has looked yet.");
  const columns = [
    { title: "Directory", cell: (each) => h("code", null, each.path) },
    { title: "Kind", cell: (each) => each.kind.replace("_", " ") + (each.compacted ? ", compacted" : "") },
    { title: "State", cell: (each) => h("span", { class: `badge ${each.state}` }, each.state) },
    { title: "Files", number: true, cell: (each) => count(each.files) },
    { title: "Size", number: true, cell: (each) => bytes(each.size_bytes) },
  ];
  const hidden = figures.directory_count - directories.length;
  return [
    directoryTimeline(directories),
    h("details", { open: directories.length <= 12 },
      h("summary", null, plural(directories.length, "directory", "directories"), hidden > 0 && ` of ${count(figures.directory_count)}`),
      table(columns, directories)),
  ];
}

async function fillCleaning(panel, asked, context, tell) {
  const title = panel.firstElementChild;
  try {
    const { rows, blockers, keep_seconds: keepSeconds } = await get("cleaning", asked);
    tell(rows);
    const waiting = rows.find((row) => row.state === "ready for cleaning");
    show(panel, title,
      waiting && (keptFor(asked, waiting, keepSeconds, context) || blockersOf(blockers, waiting)),
      rows.length ? table(requestColumns(null), rows) : empty("No requests", "The metastore's queue has none for this partition."));
  } catch (error) {
    if (!context.stale()) show(panel, title, failure(error));
  }
}

function keptFor(entity, waiting, keepSeconds, context) {
  const keptUntil = waiting.commit_ms ? waiting.commit_ms + keepSeconds * 1000 : 0;
  if (keptUntil <= Date.now()) return undefined;
  const left = age(Date.now(), keptUntil);
  return h("p", null, `What request ${waiting.id} replaced is kept for an undo, for ${left} more (keep_replaced_hours). `,
    h("button", { type: "button", class: "plain", onclick: () => openUndo(entity, context) }, "Undo…"));
}

function blockersOf(blockers, waiting) {
  const since = waiting.commit_ms ? `Request ${waiting.id} has waited to be cleaned for ${age(waiting.commit_ms)}. ` : "";
  if (!blockers.length) return h("p", null, since, "Nobody is in the way: the next cleaning deletes what is obsolete.");
  const columns = [
    { title: "In the way", cell: (each) => `${each.kind} ${each.id}` },
    { title: "User", cell: (each) => each.user },
    { title: "Host", cell: (each) => each.host },
    { title: "For", number: true, cell: (each) => h("span", { title: moment(each.since_ms) }, age(each.since_ms)) },
    { title: "What", class: "wide", cell: (each) => each.description },
  ];
  return [h("p", { class: "blocked" }, since, "It waits for:"), table(columns, blockers, { id: "blockers" })];
}

function historyOf(history) {
  if (!history.length) return empty("No history", "Compactions and cleanings of the last 30 days are listed here.");
  return [historyChart(history), table(historyColumns(null), history)];
}
