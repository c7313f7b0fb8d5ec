// What the doctor found last: what is wrong first, each with why it matters and what to do.

import { showAnswer } from "./answer.js";
import { empty, h, table } from "./dom.js";
import { ago, moment, plural } from "./format.js";

const BADGES = { problem: "failed", warning: "kept", note: "initiated", ok: "healthy" };
const OLD_MILLISECONDS = 2 * 86_400_000; // It looks once a day.

const COLUMNS = [
  { title: "", cell: ({ severity }) => h("span", { class: `badge ${BADGES[severity] ?? "held"}` }, severity) },
  { title: "Check", cell: ({ check }) => check },
  { title: "What was seen, and why it matters", class: "wide", cell: seen },
  { title: "What to do", class: "wide", cell: ({ remedy }) => h("span", { class: "words" }, remedy) },
];

function seen({ seen: what, why }) {
  return h("span", { class: "words" }, what, why && h("span", { class: "quiet" }, h("br"), why));
}

function summary({ looked_ms: looked, findings }) {
  const counts = ["problem", "warning", "note"]
    .map((severity) => [findings.filter((finding) => finding.severity === severity).length, severity])
    .filter(([number]) => number > 0)
    .map(([number, severity]) => plural(number, severity));
  const isOld = Date.now() - looked > OLD_MILLISECONDS;
  return h("p", { title: moment(looked) }, counts.join(", ") || "Nothing is wrong", `; looked ${ago(looked)}. `,
    isOld && h("strong", null, "That is long ago: is the DAG acid_doctor paused, or failing?"));
}

export function doctorView(parent, context) {
  return showAnswer(parent, "doctor", context, (report) => [
    h("h2", null, "What the doctor found"),
    report ? [summary(report), table(COLUMNS, report.findings)]
      : empty("The doctor has not looked", "The DAG acid_doctor does once a day: install it, and switch it on."),
  ]);
}
