// The cards at the top: partitions by health, the queue, failures, what a cleaning would free.

import { get } from "./api.js";
import { h, show } from "./dom.js";
import { age, bytes, count, entityName, moment, plural } from "./format.js";

export const STATES = {
  healthy: "Healthy",
  due_minor: "Minor due",
  due_major: "Major due",
  held: "Held back",
};

const FAILED = ["failed", "refused", "aborted"];

export function badge(state) {
  return h("span", { class: `badge ${state}` }, STATES[state] ?? state);
}

export function notConfigured() {
  return h(
    "div", { class: "empty" },
    h("strong", null, "No place to keep figures is configured"),
    h("p", null, "The sensor keeps what it sees of partitions, and the operators what became of them, in a directory that "
      + "Airflow's workers and API server both reach. Name one, and this page fills with the next evaluation:"),
    h("pre", null, "[hive_acid]\nhealth_location = file:/shared/airflow/hive-acid-health"),
    h("p", { class: "quiet" }, "Any storage that tables may lie on will do: file:, hdfs://, s3a://."),
  );
}

export function overviewCards(context) {
  const queue = card("Queue", h("p", { class: "quiet" }, "Asking the metastore…"));
  const onRecord = h("dd", null, "…");
  fillFromQueue(queue, onRecord, context);
  return h("section", { class: "cards" }, partitions(context), queue, failures(context, onRecord), leftovers(context.overview));
}

function card(title, ...content) {
  return h("article", { class: "card" }, h("h2", null, title), h("div", { class: "content" }, content));
}

function partitions({ overview, address }) {
  const total = overview.partitions;
  const known = Object.keys(STATES).filter((state) => overview.states[state] > 0);
  const share = (state) => (100 * overview.states[state]) / total;
  return card(
    "Partitions",
    h("p", { class: "figure" }, count(total), h("small", null, ` in ${plural(overview.tables, "table")}`)),
    total > 0 && h("div", { class: "stack", role: "img", "aria-label": "Partitions by health" },
      known.map((state) => h("span", { class: state, "width%": share(state), title: STATES[state] }))),
    h("ul", { class: "legend" }, known.map((state) => h("li", null,
      h("a", { href: address("partitions", [], { state }) },
        h("i", { class: state }), `${STATES[state]} `, h("b", null, count(overview.states[state])))))),
  );
}

function leftovers(overview) {
  return card(
    "Deltas",
    h("p", { class: "figure" }, count(overview.deltas + overview.delete_deltas),
      h("small", null, ` with ${bytes(overview.delta_bytes)}`)),
    h("dl", { class: "pairs" },
      h("dt", null, "Bases"), h("dd", null, bytes(overview.base_bytes)),
      h("dt", null, "Delete deltas"), h("dd", null, count(overview.delete_deltas)),
      h("dt", { title: "Replaced and kept for an undo, waiting for a cleaning, or of aborted transactions" }, "To be cleaned"),
      h("dd", null, bytes(overview.obsolete_bytes))),
  );
}

async function fillFromQueue(queueCard, onRecord, { metastore, address }) {
  const place = queueCard.querySelector(".content");
  try {
    const queue = await get("queue", { metastore });
    show(place, queueContent(queue));
    const failed = FAILED.reduce((sum, state) => sum + (queue.states[state] ?? 0), 0);
    show(onRecord, h("a", { href: address("queue") }, count(failed)));
  } catch (error) {
    show(place, h("p", { class: "problem", role: "alert" }, error.message));
    show(onRecord, h("span", { class: "quiet" }, "not known"));
  }
}

function queueContent(queue) {
  const states = ["initiated", "working", "ready for cleaning"];
  const waiting = states.reduce((sum, state) => sum + (queue.states[state] ?? 0), 0);
  return [
    h("p", { class: "figure" }, count(waiting), h("small", null, " in work")),
    h("dl", { class: "pairs" }, states.map((state) => [
      h("dt", null, state[0].toUpperCase() + state.slice(1)),
      h("dd", null, count(queue.states[state] ?? 0), since(state, queue)),
    ])),
  ];
}

function since(state, queue) {
  const oldest = { initiated: queue.oldest_initiated_ms, "ready for cleaning": queue.oldest_cleaning_ms }[state];
  return oldest ? h("small", { class: "quiet" }, ` oldest ${age(oldest)}`) : null;
}

// Those of any task that wrote its history here, also where it got as far as no request; and the metastore's own record.
function failures({ overview, address, partitionAddress }, onRecord) {
  const { failures_last_day: number, last_failure: last } = overview;
  return card(
    "Failures",
    h("p", { class: number ? "figure bad" : "figure" }, count(number), h("small", null, " in the last day")),
    h("dl", { class: "pairs" }, h("dt", { title: "Requests of anybody, as far back as it keeps them" }, "On the metastore's record"), onRecord),
    last
      ? h("p", { class: "clamp", title: `${moment(last.ended_ms)}: ${last.message}` },
        h("a", { href: partitionAddress(last) }, entityName(last)), ` ${last.message}`)
      : h("p", { class: "quiet" }, h("a", { href: address("history") }, "Nothing failed"), " in the last day."),
  );
}
