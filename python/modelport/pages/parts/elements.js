// Elements and numbers. Text goes into the page as text alone: nothing here reads markup.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

/** An element: el("p.soft", {title: "x", onclick: f}, "text", child, ...). */
function el(kind, attributes = {}, ...children) {
  const [tag, ...classes] = kind.split(".");
  return fill(document.createElement(tag || "div"), classes, attributes, children);
}

function svg(kind, attributes = {}, ...children) {
  const [tag, ...classes] = kind.split(".");
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), classes, attributes, children);
}

function fill(element, classes, attributes, children) {
  for (const name of classes) element.classList.add(name);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, item] of Object.entries(value)) element.style.setProperty(key, item);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const card = (title, count, ...children) =>
  el("section.card", {}, el("h2", {}, title, count === null ? null : el("span.count", {}, `  ${count}`)), ...children);

const count = (number) => number.toLocaleString("en");
const plural = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

function scaled(number, units) {
  let unit = 0;
  while (number >= 999.5 && unit < units.length - 1) {
    number /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? number : number.toPrecision(3)}${units[unit]}`;
}
const bytes = (size) => scaled(size, [" B", " kB", " MB", " GB", " TB"]);
const amount = (number) => scaled(number, ["", " k", " M", " G", " T"]);
const seconds = (taken) => (taken < 0.01 ? `${(taken * 1000).toPrecision(2)} ms` : taken < 10 ? `${taken.toFixed(2)} s` : `${taken.toFixed(1)} s`);
const colour = (index) => `var(--c${Math.min(index, 7)})`;
const shape = (sizes) => (sizes === null ? "" : `[${sizes.join(", ")}]`);

/** Name, bar, number for each row; the first `most` of them, the others behind a button. */
function bars(rows, number = count, most = 12) {
  const largest = Math.max(1, ...rows.map((row) => row[1]));
  const line = ([name, size]) => [
    el("span.name", { title: name }, name),
    el("span", {}, el("div.bar", { style: { width: `${(100 * size) / largest}%` } })),
    el("span.number.small", {}, number(size)),
  ];
  const grid = el("div.bars", {}, ...rows.slice(0, most).map(line));
  return [grid, more(rows.length - most, () => grid.append(...rows.slice(most).flatMap(line)))];
}

function more(left, show) {
  if (left <= 0) return null;
  const button = el("button.link.more.small", { onclick: () => (show(), button.remove()) }, `${count(left)} more`);
  return button;
}

function table(heads, rows) {
  const side = (i) => (heads[i].startsWith(">") ? ".right" : "");
  return el("table", {},
    el("thead", {}, el("tr", {}, ...heads.map((head, i) => el(`th${side(i)}`, {}, head.replace(">", ""))))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((cell, i) => el(`td${side(i)}`, {}, cell))))));
}

const pairs = (rows) => el("dl", {}, ...rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
const list = (rows) => el("ul.plain", {}, ...rows.map((row) => el("li", {}, row)));
const place = ([line, inside]) => (line ? el("span.soft.small", {}, el("code", {}, line), inside ? ` in ${inside}` : "") : null);
