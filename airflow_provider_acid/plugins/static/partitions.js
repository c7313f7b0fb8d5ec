// The table of partitions; filtered, sorted and cut into pages by the server.

import { get } from "./api.js";
import { openCompact } from "./compact.js";
import { empty, failure, h, scrolled, show } from "./dom.js";
import { ago, bytes, count, entityName, moment, ratio } from "./format.js";
import { STATES, badge } from "./overview.js";
import { isInWork, requestBadge, runBadge, startedRuns } from "./work.js";

const LIMIT = 50;
const TYPING_MILLISECONDS = 250;

const COLUMNS = [
  { name: "table", title: "Partition", cell: nameCell },
  { name: "state", title: "Health", cell: health },
  { name: "delta_count", title: "Deltas", number: true, cell: deltas, hint: "Deltas that hold rows + delete deltas" },
  { name: "delta_size_ratio", title: "Ratio", number: true, cell: ratioCell, hint: "Delta bytes per byte of base" },
  { name: "delta_bytes", title: "Delta size", number: true, cell: (row) => bytes(row.delta_bytes) },
  { name: "base_bytes", title: "Base size", number: true, cell: (row) => bytes(row.base_bytes) },
  { name: "aborted_directories", title: "Aborted", number: true, cell: (row) => zero(row.aborted_directories, count),
    hint: "Directories of aborted transactions" },
  { name: "obsolete_bytes", title: "To clean", number: true, cell: (row) => zero(row.obsolete_bytes, bytes),
    hint: "Bytes replaced and kept for an undo, waiting for a cleaning, or of aborted transactions" },
  { name: "last_compaction_ms", title: "Last compaction", number: true, cell: last },
];

let link = () => "#";

// What somebody has ticked, by name: it outlasts a refresh, another page of the list, and another filter.
const chosen = new Map();
let chosenIn = "";

function nameCell(row) {
  return h("a", { class: "name", href: link(row), title: `${entityName(row)}\n${row.reason}` },
    h("span", { class: "quiet" }, `${row.database}.`), row.table, row.partition && h("code", null, row.partition));
}

function health(row) {
  return [badge(row.state), row.state === "held" && h("span", { class: "why", title: row.reason }, row.reason)];
}

function deltas(row) {
  return [count(row.deltas), row.delete_deltas > 0 && h("span", { class: "deletes" }, ` + ${count(row.delete_deltas)}`)];
}

function ratioCell(row) {
  if (row.delta_size_ratio === null) return h("span", { class: "quiet", title: "No base yet" }, "no base");
  const width = Math.min(100, 100 * row.delta_size_ratio);
  return [ratio(row.delta_size_ratio), h("span", { class: "meter" }, h("span", { "width%": width }))];
}

function zero(value, format) {
  return value ? format(value) : h("span", { class: "quiet" }, "–");
}

function last(row) {
  if (!row.last_compaction_ms) return h("span", { class: "quiet" }, "–");
  return h("span", { title: moment(row.last_compaction_ms) }, ago(row.last_compaction_ms));
}

export async function partitionsView(parent, context) {
  link = context.partitionAddress;
  if (chosenIn !== context.metastore) chosen.clear();
  chosenIn = context.metastore;
  const asked = question(context.here.query);
  const results = h("div");
  show(parent, toolbar(context, asked), results);
  await list(results, context, asked);
}

function question(query) {
  return {
    search: query.get("search") ?? "",
    state: query.get("state") ?? "",
    sort: query.get("sort") ?? "delta_count",
    descending: query.get("ascending") === null,
    offset: Math.max(0, Number.parseInt(query.get("offset") ?? "0", 10) || 0),
  };
}

function addressOf(context, asked) {
  const { search, state, sort, descending, offset } = asked;
  const query = { search, state, sort: sort === "delta_count" ? "" : sort, offset: offset || "" };
  return context.address("partitions", [], { ...query, ascending: descending ? "" : "1" });
}

function toolbar(context, asked) {
  let typing;
  const go = (changes) => { window.location.hash = addressOf(context, { ...asked, offset: 0, ...changes }); };
  const search = h("input", {
    type: "search", placeholder: "Search database.table/partition", value: asked.search, "aria-label": "Search",
    oninput: (event) => {
      window.clearTimeout(typing);
      typing = window.setTimeout(() => go({ search: event.target.value.trim() }), TYPING_MILLISECONDS);
    },
  });
  if (asked.search) queueMicrotask(() => { search.focus(); search.setSelectionRange(search.value.length, search.value.length); });
  const states = [["", "All"], ...Object.entries(STATES)];
  return h(
    "div", { class: "toolbar" }, search,
    h("div", { class: "chips", role: "group", "aria-label": "Health" }, states.map(([state, title]) =>
      h("button", { type: "button", "aria-pressed": String(asked.state === state), onclick: () => go({ state }) }, title))),
  );
}

async function list(results, context, asked) {
  const parameters = { ...asked, metastore: context.metastore, limit: LIMIT };
  let page;
  try {
    page = await get("partitions", parameters);
  } catch (error) {
    return context.stale() || show(results, failure(error, context.redraw));
  }
  if (context.stale()) return undefined;
  if (page.total === 0) return show(results, nothing(context, asked));
  const places = new Map();
  const together = h("div", { class: "together", role: "group", "aria-label": "Chosen partitions" });
  show(results, together, grid(context, asked, page, places, () => offer(together, places, context)), pager(context, asked, page));
  offer(together, places, context);
  return sayWhatIsInWork(places, parameters, context);
}

// Rows say what is under way for them; what was asked for already is not asked for again.
async function sayWhatIsInWork(places, parameters, context) {
  const runs = startedRuns(context);
  const requests = await requestsOf(parameters);
  for (const [name, run] of await runs) if (!requests.has(name)) say(places.get(name), runBadge(run), true);
  for (const [name, request] of requests) say(places.get(name), requestBadge(request), isInWork(request));
}

async function requestsOf(parameters) {
  try {
    const { requests } = await get("requests", parameters);
    return new Map(requests.map((request) => [entityName(request), request]));
  } catch {
    return new Map(); // The card "Queue" says why.
  }
}

function say(place, what, isAskedFor) {
  place?.health.append(" ", what);
  if (isAskedFor) place?.actions.replaceChildren();
}

// What can be done with all that is ticked.
function offer(together, places, context) {
  const none = () => {
    chosen.clear();
    for (const { tick } of places.values()) tick.checked = false;
    show(together);
  };
  const compact = () => openCompact([...chosen.values()], context, none);
  show(together, chosen.size > 0 && [
    h("button", { type: "button", class: "primary", onclick: compact }, `Compact ${count(chosen.size)} chosen…`),
    h("button", { type: "button", class: "plain", onclick: none }, "Choose none"),
  ]);
}

function nothing(context, asked) {
  if (asked.search || asked.state) {
    return empty("No partition matches", h("a", { href: context.address("partitions") }, "Show all partitions"));
  }
  return empty("No partition is known yet", "They appear after the next run of acid_compaction, or of any DAG with an "
    + "AcidCompactionSensor, that looks at a table.");
}

function grid(context, asked, page, places, onChoice) {
  const sortable = (column) => {
    const sorted = column.name === asked.sort;
    const descending = sorted ? !asked.descending : column.number === true;
    const href = addressOf(context, { ...asked, sort: column.name, descending, offset: 0 });
    const direction = sorted ? (asked.descending ? "descending" : "ascending") : null;
    return h("th", { class: column.number ? "number" : null, "aria-sort": direction, scope: "col", title: column.hint },
      h("a", { href }, column.title));
  };
  const row = (each) => {
    const cells = COLUMNS.map((column) => h("td", { class: column.number ? "number" : null }, column.cell(each)));
    const name = entityName(each);
    const choose = () => {
      if (tick.checked) chosen.set(name, each);
      else chosen.delete(name);
      onChoice();
    };
    const tick = h("input", { type: "checkbox", "aria-label": `Choose ${name}`, onchange: choose });
    tick.checked = chosen.has(name);
    const compact = h("button", {
      type: "button", class: "plain", onclick: () => openCompact([each], context), "aria-label": `Compact ${name}`,
    }, "Compact");
    const health = cells[COLUMNS.findIndex((column) => column.name === "state")];
    const actions = h("td", { class: "actions" }, tick, compact);
    places.set(name, { health, actions, tick });
    return h("tr", null, cells, actions);
  };
  return scrolled(h(
    "table", { class: "partitions" },
    h("thead", null, h("tr", null, COLUMNS.map(sortable), h("th", { class: "actions" }))),
    h("tbody", null, page.rows.map(row)),
  ));
}

function pager(context, asked, page) {
  const end = Math.min(asked.offset + LIMIT, page.total);
  const lastPage = Math.floor((page.total - 1) / LIMIT) * LIMIT;
  const to = (offset, title, possible) => possible
    ? h("a", { class: "button", href: addressOf(context, { ...asked, offset }) }, title)
    : h("span", { class: "button off", "aria-disabled": "true" }, title);
  return h(
    "div", { class: "pager" },
    h("span", { class: "quiet" }, `${count(asked.offset + 1)}–${count(end)} of ${count(page.total)}`),
    to(0, "First", asked.offset > 0), to(asked.offset - LIMIT, "Previous", asked.offset > 0),
    to(end, "Next", end < page.total), to(lastPage, "Last", asked.offset < lastPage),
  );
}
