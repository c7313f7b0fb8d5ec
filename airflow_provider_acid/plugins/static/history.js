// What compactions and cleanings came to, with a plot of time, bytes and ratio.

import { showAnswer } from "./answer.js";
import { historyChart } from "./charts.js";
import { empty, h, table } from "./dom.js";
import { bytes, count, moment, seconds } from "./format.js";
import { name, time } from "./queue.js";

export function historyView(parent, context) {
  return showAnswer(parent, "history", context, ({ total, records }) => {
    if (!records.length) {
      return empty("Nothing was compacted yet", "Compactions and cleanings of the last 30 days are listed here.");
    }
    const more = total > records.length
      && h("p", { class: "quiet" }, `The newest ${count(records.length)} of ${count(total)} are shown.`);
    return [historyChart(records), table(historyColumns(context.partitionAddress), records), more];
  });
}

export function historyColumns(partitionAddress) {
  return [
    { title: "When", cell: (record) => time(record.ended_ms) },
    ...(partitionAddress ? [{ title: "Partition", cell: (record) => name(plain(record.entity), partitionAddress) }] : []),
    { title: "What", cell: (record) => (record.kind === "cleaning" ? "cleaning" : record.type ?? "compaction") },
    { title: "Outcome", cell: (record) => h("span", { class: `badge ${record.state}` }, record.state.replaceAll("_", " ")) },
    { title: "Time", number: true, cell: (record) => seconds(record.seconds) },
    { title: "Before", number: true, cell: (record) => (record.bytes_before ? bytes(record.bytes_before) : "–") },
    { title: "After", number: true, cell: (record) => (record.bytes_before ? bytes(record.bytes_after) : "–") },
    { title: "Rows", number: true, cell: (record) => (record.rows ? count(record.rows) : "–") },
    { title: "Message", class: "wide", cell: (record) => h("span", { class: "words clamp", title: record.message }, words(record)) },
    { title: "Task", cell: task },
  ];
}

function plain(entity) {
  return { ...entity, partition: entity.partition ?? "" };
}

function words(record) {
  return record.message || (record.kind === "cleaning" ? `${count(record.deleted)} deleted` : "–");
}

function task({ task: place, ended_ms: ended }) {
  if (!place.dag_id) return "–";
  const mapped = place.map_index >= 0 ? `/mapped/${place.map_index}` : "";
  const path = ["dags", place.dag_id, "runs", place.run_id, "tasks", place.task_id].map(encodeURIComponent).join("/");
  const href = new URL(`../${path}${mapped}`, document.baseURI).pathname;
  return h("a", { href, target: "_top", title: `${place.dag_id} · ${place.run_id}\n${moment(ended)}` }, place.task_id);
}
