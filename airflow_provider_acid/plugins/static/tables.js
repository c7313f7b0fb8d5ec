// A line per table: how many of its partitions are due or held back, and what they have; those first with most due.

import { showAnswer } from "./answer.js";
import { empty, h, table } from "./dom.js";
import { bytes, count } from "./format.js";
import { name, time } from "./queue.js";

export function tablesView(parent, context) {
  return showAnswer(parent, "tables", context, ({ total, tables }) => {
    if (!total) return empty("No table is known yet", "Tables appear with their first partition.");
    const more = total > tables.length && h("p", { class: "quiet" }, `${count(tables.length)} of ${count(total)} are shown.`);
    return [table(columns(context.address), tables), more];
  });
}

function columns(address) {
  const partitions = (row) => address("partitions", [], { search: `${row.database}.${row.table}/` });
  return [
    { title: "Table", cell: (row) => name(row, partitions) },
    { title: "Partitions", number: true, cell: (row) => count(row.partitions) },
    { title: "Due", number: true, cell: (row) => count(row.due) },
    { title: "Held back", number: true, cell: (row) => count(row.held) },
    { title: "Deltas", number: true, cell: (row) => count(row.deltas + row.delete_deltas),
      hint: "Deltas that hold rows + delete deltas" },
    { title: "Delta size", number: true, cell: (row) => bytes(row.delta_bytes) },
    { title: "Base size", number: true, cell: (row) => bytes(row.base_bytes) },
    { title: "To clean", number: true, cell: (row) => bytes(row.obsolete_bytes),
      hint: "Replaced and kept for an undo, waiting for a cleaning, or of aborted transactions" },
    { title: "Oldest figures", number: true, cell: (row) => time(row.oldest_evaluation_ms) },
  ];
}
