// Elements from plain values. Texts are always text, never HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "width%") element.style.width = `${value}%`;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function show(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter(Boolean));
}

export function empty(title, ...text) {
  return h("div", { class: "empty" }, h("strong", null, title), h("p", null, ...text));
}

export function failure(error, again) {
  return h(
    "div", { class: "empty error", role: "alert" },
    h("strong", null, error.title ?? "This cannot be shown"),
    h("p", null, error.message),
    again && h("button", { class: "plain", type: "button", onclick: again }, "Try again"),
  );
}

export function loading() {
  return h("div", { class: "loading", role: "status" }, "Loading…");
}

// What may be wider than the screen; by keyboard, too, it is scrolled.
export function scrolled(...content) {
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" }, content);
}

// A table of objects: columns are {title, cell, number, hint}.
export function table(columns, rows, attributes) {
  const side = (column) => (column.number ? "number" : column.class);
  return scrolled(
    h(
      "table", attributes,
      h("thead", null, h("tr", null, columns.map((column) =>
        h("th", { class: side(column), title: column.hint, scope: "col" }, column.title)))),
      h("tbody", null, rows.map((row) =>
        h("tr", null, columns.map((column) => h("td", { class: side(column) }, column.cell(row)))))),
    ),
  );
}
