// The metastore's compaction queue: what waits or works, and what failed.

import { showAnswer } from "./answer.js";
import { empty, h, table } from "./dom.js";
import { age, ago, moment } from "./format.js";
import { requestBadge } from "./work.js";

export function requestColumns(partitionAddress) {
  return [
    { title: "Request", number: true, cell: (row) => String(row.id) },
    ...(partitionAddress ? [{ title: "Partition", cell: (row) => name(row, partitionAddress) }] : []),
    { title: "Type", cell: (row) => row.type },
    { title: "State", cell: requestBadge },
    { title: "Requested", number: true, cell: (row) => time(row.enqueue_ms ?? row.start_ms) },
    { title: "Since", number: true, hint: "Time in this state", cell: since },
    { title: "Worker", class: "wide", cell: (row) => h("span", { class: "clamp quiet", title: row.worker }, row.worker ?? "–") },
  ];
}

export function name(row, partitionAddress) {
  return h("a", { class: "name", href: partitionAddress(row) },
    h("span", { class: "quiet" }, `${row.database}.`), row.table, row.partition && h("code", null, row.partition));
}

export function time(milliseconds) {
  return h("span", { title: moment(milliseconds) }, milliseconds ? ago(milliseconds) : "–");
}

function since(row) {
  const from = { initiated: row.enqueue_ms, working: row.start_ms, "ready for cleaning": row.commit_ms }[row.state];
  return age(from ?? null);
}

export function queueView(parent, context) {
  const columns = requestColumns(context.partitionAddress);
  const ended = [...columns.slice(0, 4), { title: "Ended", number: true, cell: (row) => time(row.end_ms) },
    { title: "Message", class: "wide", cell: (row) => h("span", { class: "words" }, row.error_message ?? "–") }];
  return showAnswer(parent, "queue", context, ({ waiting, failed }) => [
    h("h2", null, "Waiting and in work"),
    waiting.length ? table(columns, waiting) : empty("Nothing waits", "Requests appear here while they wait, work, or wait to be cleaned."),
    h("h2", null, "Failures"),
    failed.length ? table(ended, failed) : empty("No failures", "None that the metastore remembers."),
  ]);
}
