// A dialog that starts a DAG for partitions, a run for each table of theirs: by Airflow's API in the user's name, so that
// Airflow's rights decide.

import { getDag, trigger } from "./api.js";
import { h, show } from "./dom.js";
import { entityName } from "./format.js";

const dialog = document.getElementById("start");

// What is to be done has a title, a DAG, fields of its own, and values of its form for the run's conf.
export function openStart({ title, dagId, said, fields, confOf, onStarted }, rows, context) {
  const message = h("p", { class: "message", role: "status" });
  const start = h("button", { type: "submit", class: "primary" }, "Start");
  const close = h("button", { type: "button", class: "plain", onclick: () => dialog.close() }, "Cancel");
  const form = h(
    "form", { method: "dialog" },
    h("h2", { id: "start-title" }, title),
    h("ul", { class: "entities" }, rows.map((row) => h("li", null, h("code", null, entityName(row))))),
    said && h("p", { class: "quiet" }, said),
    fields,
    h("label", { class: "choice" }, h("input", { type: "checkbox", name: "decide_only" }),
      h("span", null, h("b", null, "Dry run"), h("small", { class: "quiet" }, "Only log what would be done"))),
    message,
    h("footer", null, close, start),
  );
  const left = byTable(rows);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const shared = {
      decide_only: form.elements.decide_only.checked,
      hive_acid_conn_id: context.metastore,
      ...confOf(form.elements),
    };
    submit(dagId, left, shared, { start, close, message, onStarted });
  });
  show(dialog, form);
  dialog.showModal();
  checkDag(dagId, start, message);
}

// The partitions of each table, one on a line.
function byTable(rows) {
  const found = new Map();
  for (const { database, table, partition } of rows) {
    const name = `${database}.${table}`;
    const before = found.get(name)?.partition;
    found.set(name, { database, table, partition: before ? `${before}\n${partition}` : partition || null });
  }
  return [...found.values()];
}

async function checkDag(dagId, start, message) {
  try {
    const dag = await getDag(dagId);
    if (dag.is_paused) tell(message, `The DAG ${dagId} is paused: the run waits until somebody unpauses it.`, "warning");
  } catch (error) {
    if (error.status === 404) {
      start.disabled = true;
      tell(message, `There is no DAG ${dagId} in this Airflow. Write this line into a file of its DAGs folder: from airflow_provider_acid.installed_dags import ${dagId}`, "problem");
    } else if (error.status === 403) {
      start.disabled = true;
      tell(message, `You have no right to see the DAG ${dagId}.`, "problem");
    }
  }
}

// What is started leaves `left`, so that another try starts the others.
async function submit(dagId, left, shared, { start, close, message, onStarted }) {
  start.disabled = true;
  tell(message, "Starting…");
  const started = [];
  try {
    while (left.length > 0) {
      const run = await trigger(dagId, { ...left[0], ...shared });
      left.shift();
      const href = new URL(`../dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(run.dag_run_id)}`, document.baseURI);
      started.push(started.length > 0 && ", ", h("a", { href: href.pathname, target: "_top" }, run.dag_run_id));
    }
    show(message, "Started: ", started);
    message.className = "message good";
    close.textContent = "Close";
    start.hidden = true;
    onStarted?.();
  } catch (error) {
    start.disabled = false;
    const text = error.status === 403 ? `You have no right to start the DAG ${dagId}.` : error.message;
    tell(message, text, "problem");
    if (started.length > 0) message.prepend("Started: ", ...started.filter(Boolean), ". Of the others: ");
  }
}

function tell(message, text, kind = "") {
  message.className = `message ${kind}`;
  message.textContent = text;
}
