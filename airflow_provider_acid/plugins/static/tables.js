// A line per table: how many of its partitions are due or held back, and what they have; those first with most due.

import { get } from "./api.js";
import { empty, failure, h, loading, show, table } from "./dom.js";
import { bytes, count } from "./format.js";
import { time } from "./queue.js";

export async function tablesView(parent, { metastore, stale, address, redraw }) {
  show(parent, loading());
  let found;
  try {
    found = await get("tables", { metastore });
  } catch (error) {
    return stale() || show(parent, failure(error, redraw));
  }
  if (stale()) return undefined;
  if (!found.total) return show(parent, empty("No table is known yet", "Tables appear with their first partition."));
  const more = found.total > found.tables.length
    && h("p", { class: "quiet" }, `${count(found.tables.length)} of ${count(found.total)} are shown.`);
  return show(parent, table(columns(address), found.tables), more);
}

function columns(address) {
  const partitions = (row) => address("partitions", [], { search: `${row.database}.${row.table}/` });
  return [
    { title: "Table", cell: (row) => h("a", { class: "name", href: partitions(row) },
      h("span", { class: "quiet" }, `${row.database}.`), row.table) },
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
