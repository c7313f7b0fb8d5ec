// Plots as SVG: directories along their write ids, and compactions along time.

import { h, svg } from "./dom.js";
import { bytes, count, moment, seconds } from "./format.js";

const WIDTH = 960;
const LEFT = 8;
const BAR = 12;
const LANE = 16;
const MAX_LANES = 40;

// Write ids of directories leave large gaps, so those that occur are put beside each other.
export function directoryTimeline(directories) {
  const ids = [...new Set(directories.flatMap((each) => [each.min_write_id || each.max_write_id, each.max_write_id]))];
  ids.sort((one, other) => one - other);
  const step = Math.min(56, (WIDTH - 2 * LEFT) / ids.length);
  const x = new Map(ids.map((id, place) => [id, LEFT + place * step]));
  const lanes = [];
  const bars = directories.map((each) => {
    const start = each.kind === "base" ? LEFT : x.get(each.min_write_id || each.max_write_id);
    const end = x.get(each.max_write_id) + step - 2;
    let lane = lanes.findIndex((last) => last <= start);
    if (lane === -1) lane = lanes.push(0) - 1;
    lanes[lane] = end;
    return { each, start, end, lane };
  });
  const shown = bars.filter((bar) => bar.lane < MAX_LANES);
  const height = Math.min(lanes.length, MAX_LANES) * LANE + 26;
  const every = Math.ceil(56 / step);
  const drawing = svg(
    "svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "timeline", role: "img", "aria-label": "Directories by write id" },
    shown.map(({ each, start, end, lane }) => svg(
      "rect", { x: start, y: lane * LANE + 2, width: Math.max(end - start, 3), height: BAR, rx: 3, class: `${each.kind} ${each.state}` },
      svg("title", null, `${each.path}\n${each.state}, ${bytes(each.size_bytes)}, write ids ${each.min_write_id}–${each.max_write_id}`),
    )),
    ids.map((id, place) => place % every === 0
      && svg("text", { x: x.get(id) + step / 2 - 1, y: height - 6, class: "tick" }, String(id))),
  );
  return h("figure", null, drawing, h("figcaption", { class: "keys" },
    key("base", "base"), key("delta", "delta"), key("delete_delta", "delete delta"), key("delta obsolete", "obsolete"),
    key("delta aborted", "aborted"), key("delta uncommitted", "not committed"),
    h("span", { class: "quiet" }, "along write ids →")));
}

function key(kind, title) {
  return h("span", null, svg("svg", { viewBox: "0 0 14 10", class: "key timeline" },
    svg("rect", { x: 1, y: 1, width: 12, height: 8, rx: 2, class: kind })), title);
}

const PANE = { width: 420, height: 140, left: 72, top: 8, bottom: 20 };

// Three plots of the same compactions: how long they took, bytes before and after, and their ratio.
export function historyChart(records) {
  const done = records.filter((record) => record.kind === "compaction" && record.state === "compacted");
  const failed = records.filter((record) => record.state === "failed" || record.state === "refused");
  if (!done.length) return null;
  const times = [...done, ...failed].map((record) => record.ended_ms);
  const span = [Math.min(...times), Math.max(...times)];
  const share = (record) => (record.bytes_before ? record.bytes_after / record.bytes_before : null);
  return h("section", null, h(
    "div", { class: "plots" },
    pane("Time", done, failed, span, [{ kind: "after", of: (record) => record.seconds }], seconds),
    pane("Bytes before and after", done, failed, span, [
      { kind: "before", of: (record) => record.bytes_before }, { kind: "after", of: (record) => record.bytes_after },
    ], bytes),
    pane("Bytes after per byte before", done, failed, span, [{ kind: "after", of: share }], (value) => value.toFixed(2)),
  ), h("p", { class: "keys plot-keys" }, dot("after major", "major"), dot("after minor", "minor"), dot("before", "before"),
    h("span", null, svg("svg", { viewBox: "0 0 10 10", class: "plot" },
      svg("line", { x1: 5, x2: 5, y1: 1, y2: 9, class: "failed" })), "failed or refused")));
}

function dot(kind, title) {
  return h("span", null, svg("svg", { viewBox: "0 0 10 10", class: "plot" }, svg("circle", { cx: 5, cy: 5, r: 3.5, class: kind })), title);
}

function pane(title, done, failed, [first, last], series, format) {
  const { width, height, left, top, bottom } = PANE;
  const values = done.flatMap((record) => series.map((each) => each.of(record))).filter((value) => value !== null);
  const most = Math.max(...values, 1e-9) * 1.08;
  const x = (time) => left + 6 + (last > first ? (time - first) / (last - first) : 0.5) * (width - left - 14);
  const y = (value) => height - bottom - (value / most) * (height - top - bottom);
  const point = (record, { kind, of }) => of(record) !== null && svg(
    "circle", { cx: x(record.ended_ms), cy: y(of(record)), r: 3, class: `${kind} ${record.type}` },
    svg("title", null, `${name(record)}\n${record.type}, ${format(of(record))}\n${moment(record.ended_ms)}`),
  );
  const drop = (record) => series.length > 1 && svg("line", {
    x1: x(record.ended_ms), x2: x(record.ended_ms), y1: y(series[0].of(record)), y2: y(series[1].of(record)), class: "drop",
  });
  const date = (time) => new Date(time).toLocaleDateString(undefined, { month: "short", day: "numeric" });
  const hour = (time) => new Date(time).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  const label = last - first > 86_400_000 ? date : hour;
  return h("figure", null, h("figcaption", null, title), svg(
    "svg", { viewBox: `0 0 ${width} ${height}`, class: "plot", role: "img", "aria-label": `${title} of ${count(done.length)} compactions` },
    [0, 0.5, 1].map((part) => [
      svg("line", { x1: left, x2: width, y1: y(part * most / 1.08), y2: y(part * most / 1.08), class: "grid" }),
      svg("text", { x: left - 6, y: y(part * most / 1.08) + 3, class: "tick end" }, format(part * most / 1.08)),
    ]),
    failed.map((record) => svg("line", {
      x1: x(record.ended_ms), x2: x(record.ended_ms), y1: height - bottom, y2: height - bottom - 8, class: "failed",
    }, svg("title", null, `${name(record)}\n${record.state}: ${record.message}`))),
    done.map(drop), done.flatMap((record) => series.map((each) => point(record, each))),
    svg("text", { x: left, y: height - 5, class: "tick start" }, label(first)),
    last > first && svg("text", { x: width - 2, y: height - 5, class: "tick end" }, label(last)),
  ));
}

function name({ entity }) {
  return entity.partition ? `${entity.database}.${entity.table}/${entity.partition}` : `${entity.database}.${entity.table}`;
}
