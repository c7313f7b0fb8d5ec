// Which view is shown, by the part of the address after "#"; one module per view.

import { get } from "./api.js";
import { doctorView } from "./doctor.js";
import { failure, h, loading, show } from "./dom.js";
import { ago, moment } from "./format.js";
import { historyView } from "./history.js";
import { notConfigured, overviewCards } from "./overview.js";
import { partitionView } from "./partition.js";
import { partitionsView } from "./partitions.js";
import { queueView } from "./queue.js";
import { tablesView } from "./tables.js";
import { followTheme } from "./theme.js";

const TABS = {
  partitions: { title: "Partitions", draws: partitionsView },
  tables: { title: "Tables", draws: tablesView },
  queue: { title: "Queue", draws: queueView },
  history: { title: "History", draws: historyView },
  doctor: { title: "Doctor", draws: doctorView },
};
const REFRESH_MILLISECONDS = 30_000;
const OLD_MILLISECONDS = 86_400_000; // After a day without a look its figures tell of another day.

const view = document.getElementById("view");
let drawn = 0;
let isDrawing = false;
let cards = h("section");
let shown = "";

// Where we are: {name, path, query}; the metastore is part of the query and kept from view to view.
function place() {
  const [path, query] = window.location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map(decodeURIComponent);
  return { name: parts[0] || "partitions", path: parts.slice(1), query: new URLSearchParams(query ?? "") };
}

export function address(name, path = [], query = {}) {
  const parameters = new URLSearchParams();
  const metastore = place().query.get("metastore");
  if (metastore) parameters.set("metastore", metastore);
  for (const [key, value] of Object.entries(query)) if (value !== "" && value !== null) parameters.set(key, value);
  const text = parameters.toString();
  return `#/${[name, ...path.map(encodeURIComponent)].join("/")}${text ? `?${text}` : ""}`;
}

export function partitionAddress(row) {
  return address("partition", [row.database, row.table, row.partition].filter(Boolean));
}

function kindOf(here) {
  return here.name in TABS ? `${here.name}?${here.query.get("metastore") ?? ""}` : window.location.hash;
}

function tabs(current) {
  show(document.getElementById("tabs"), Object.entries(TABS).map(([name, { title }]) =>
    h("a", { href: address(name), "aria-current": name === current ? "page" : null }, title)));
}

function head(overview) {
  const choice = document.getElementById("metastore");
  document.getElementById("metastore-choice").hidden = overview.metastores.length < 2;
  show(choice, overview.metastores.map((name) => h("option", { selected: name === overview.metastore }, name)));
  const freshness = document.getElementById("freshness");
  const newest = overview.newest_evaluation_ms;
  const isOld = newest && Date.now() - newest > OLD_MILLISECONDS;
  freshness.textContent = newest ? `Evaluated ${ago(newest)}` : "";
  freshness.classList.toggle("old", Boolean(isOld));
  freshness.title = newest ? `Newest look at a partition: ${moment(newest)}` : "";
  if (isOld) freshness.title += ". No sensor has looked since: is its DAG paused, or failing?";
}

// What somebody who does not see the page is told: that another view is there, not all that is in it.
function said(title) {
  document.getElementById("said").textContent = `${title} shown`;
}

// Draws the view of the address. What came too late, because another one is asked for by then, is not shown.
// Turning a page, sorting or searching keeps the cards at the top as they are.
async function draw({ quietly = false, turned = false } = {}) {
  drawn += 1;
  const mine = drawn;
  const here = place();
  const stale = () => mine !== drawn;
  const metastore = here.query.get("metastore") ?? undefined;
  tabs(here.name);
  shown = kindOf(here);
  if (!quietly && !turned) show(view, loading());
  isDrawing = true;
  try {
    const overview = await get("overview", { metastore });
    if (stale()) return;
    head(overview);
    const context = { here, overview, metastore: overview.metastore, stale, address, partitionAddress, redraw: draw };
    if (here.name === "partition") return await partitionView(view, context);
    const body = h("section");
    if (!turned || !cards.isConnected) cards = overviewCards(context);
    show(view, cards, body);
    const { title, draws } = TABS[here.name] ?? TABS.partitions;
    await draws(body, context);
    if (!stale() && !quietly) said(title);
  } catch (error) {
    if (stale()) return;
    show(view, error.code === "not_configured" ? notConfigured() : failure(error, () => draw()));
  } finally {
    if (!stale()) isDrawing = false;
  }
}

// A list that is being typed into, or a dialog, is not drawn anew under somebody's hands; nor what a slow server is still
// being asked for, which would be asked for more and more.
function refreshQuietly() {
  const busy = isDrawing || document.querySelector("dialog[open]") || view.contains(document.activeElement);
  if (!document.hidden && !busy) draw({ quietly: true });
}

document.getElementById("refresh").addEventListener("click", () => draw());
document.getElementById("metastore").addEventListener("change", (event) => {
  const { name } = place();
  window.location.hash = `#/${name === "partition" ? "partitions" : name}?metastore=${encodeURIComponent(event.target.value)}`;
});
window.addEventListener("hashchange", () => draw({ turned: kindOf(place()) === shown }));
window.setInterval(refreshQuietly, REFRESH_MILLISECONDS);
followTheme();
draw();
