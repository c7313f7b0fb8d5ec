// Figures and times for people.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const whole = new Intl.NumberFormat("en-US");

export function count(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  let left = value;
  while (left >= 1024 && unit < UNITS.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${unit === 0 || left >= 100 ? Math.round(left) : left.toFixed(1)} ${UNITS[unit]}`;
}

export function ratio(value) {
  if (value === null || value === undefined) return "–";
  return value >= 10 ? value.toFixed(0) : value.toFixed(2);
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 60) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
  return `${Math.floor(value / 3600)} h ${Math.round((value % 3600) / 60)} min`;
}

export function age(milliseconds, now = Date.now()) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  const passed = Math.max(0, (now - milliseconds) / 1000);
  if (passed < 60) return `${Math.round(passed)} s`;
  if (passed < 3600) return `${Math.floor(passed / 60)} min`;
  if (passed < 172800) return `${Math.floor(passed / 3600)} h`;
  return `${Math.floor(passed / 86400)} days`;
}

export function ago(milliseconds) {
  return milliseconds ? `${age(milliseconds)} ago` : "never";
}

export function moment(milliseconds) {
  if (!milliseconds) return "–";
  return new Date(milliseconds).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

export function entityName(row) {
  return row.partition ? `${row.database}.${row.table}/${row.partition}` : `${row.database}.${row.table}`;
}

export function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}
