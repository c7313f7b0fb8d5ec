// What the page can have done to a partition: compact it, and take its newest compaction back.

import { h } from "./dom.js";
import { openStart } from "./start.js";

const TYPES = [
  ["auto", "Auto", "What the thresholds ask for, if anything"],
  ["minor", "Minor", "Merge deltas into one, keep the base"],
  ["major", "Major", "Write a new base"],
];

export function openCompact(rows, context, onStarted) {
  const fields = h("fieldset", null, h("legend", null, "Type"), TYPES.map(([value, title, hint]) => h(
    "label", { class: "choice" },
    h("input", { type: "radio", name: "type", value, checked: value === "auto" }),
    h("span", null, h("b", null, title), h("small", { class: "quiet" }, hint)),
  )));
  const { compact_dag_id: dagId } = context.overview;
  const said = rows.length === 1 ? rows[0].reason : "A run for each table, one application for all partitions of it.";
  openStart({ title: "Compact", dagId, said, fields, confOf: ({ type }) => ({ type: type.value }), onStarted }, rows, context);
}

export function openUndo(row, context) {
  const said = "The newest compaction is taken back: every reader reads again what it replaced, the same rows by the same "
    + "ids. It waits for readers and writers of the partition, and is refused by name where it is not possible. Where "
    + "the partition is due, it is compacted again unless the table has no_auto_compaction.";
  openStart({ title: "Undo", dagId: context.overview.undo_dag_id, said, confOf: () => ({}) }, [row], context);
}
