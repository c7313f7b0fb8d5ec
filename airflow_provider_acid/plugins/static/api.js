// What this page asks its own application and, in the user's name, Airflow's API.

export class Failure extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
    if (status === 401) this.title = "You are not signed in";
    if (status === 403) this.title = "You may not see this";
    if (code === "not_configured") this.title = "No place to keep figures is configured";
    if (code === "unavailable") this.title = "No answer";
  }
}

async function request(url, options) {
  let answer;
  try {
    answer = await fetch(url, { credentials: "same-origin", ...options });
  } catch {
    throw new Failure(0, "unavailable", "Airflow's API server does not answer.");
  }
  let content = null;
  try {
    content = await answer.json();
  } catch {
    // An answer without JSON is told by its status.
  }
  if (answer.ok) return content;
  throw new Failure(answer.status, content?.detail?.code ?? "", words(answer.status, content?.detail));
}

function words(status, detail) {
  if (typeof detail === "string") return detail;
  if (detail?.message) return detail.message;
  if (Array.isArray(detail)) return detail.map((item) => item.msg ?? "").join("; ");
  return `Airflow answered with status ${status}.`;
}

export function get(name, parameters, signal) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters ?? {})) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== null && item !== undefined && item !== "") query.append(key, item);
    }
  }
  return request(`api/${name}?${query}`, { signal });
}

export function getDag(dagId) {
  return request(`../api/v2/dags/${encodeURIComponent(dagId)}`);
}

export function getUnfinishedRuns(dagId) {
  return request(`../api/v2/dags/${encodeURIComponent(dagId)}/dagRuns?state=queued&state=running&limit=100&order_by=-id`);
}

export function trigger(dagId, conf) {
  return request(`../api/v2/dags/${encodeURIComponent(dagId)}/dagRuns`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ logical_date: null, conf }),
  });
}
