// All models of a fleet: how many there are of each kind, what went wrong, and each of them.

const [NAME, FORMAT, STATE, SECONDS, BYTES, MEMORY, CODE, WHAT, MODEL, PLACE, SAID] = Array.from({ length: 11 }, (_, i) => i);
const ask = el("input", { type: "search", id: "ask", placeholder: "Search models, formats, errors", "aria-label": "Search", autocomplete: "off", spellcheck: "false" });
const texts = data.rows.map((row) => [row[NAME], row[FORMAT], row[STATE], row[CODE], row[WHAT], row[MODEL]].join(" ").toLowerCase());
const aside = el("section.card.detail.empty", { "aria-label": "Details", "aria-live": "polite" }, el("p.soft", {}, "Choose a model."));
let found = [];

const rows = new Rows("listbox", "Models", (i) => {
  const row = data.rows[found[i]];
  const failed = row[STATE] === "failed";
  return el("div.item", { role: "option" }, el("span.label", {}, row[NAME]), el("span.badge", {}, row[FORMAT]),
    el(`span.about${failed ? ".bad" : ".second"}`, {}, failed ? `${row[CODE]} ${row[WHAT]}`.trim() : row[STATE]),
    el("span.figure", {}, failed || row[BYTES] === null ? "" : bytes(row[BYTES])), el("span.figure", {}, seconds(row[SECONDS])));
}, (i) => {
  const row = data.rows[found[i]];
  const known = [["format", row[FORMAT]], ["state", row[STATE]], ["time", seconds(row[SECONDS])], ["size", row[BYTES] === null ? "" : bytes(row[BYTES])],
    ["memory", row[MEMORY] === null ? "" : bytes(row[MEMORY])], ["checkpoint", el("code", {}, row[MODEL])], ["machine", row[PLACE]]].filter(([, value]) => value !== "");
  aside.replaceChildren(el("button.shut", { "aria-label": "Close", onclick: () => aside.classList.add("empty") }, "✕"), el("h2.mono", {}, row[NAME]),
    ...(row[WHAT] ? [el("p.bad", {}, `${row[CODE]} ${row[WHAT]}`.trim())] : []), pairs(known), ...(row[SAID] ? [el("h3", {}, "what it said last"), el("pre", {}, row[SAID])] : []));
  aside.classList.remove("empty");
});

function draw() {
  const words = ask.value.toLowerCase().split(/\s+/).filter(Boolean);
  found = texts.flatMap((text, i) => (words.every((word) => text.includes(word)) ? [i] : []));
  rows.host.hidden = found.length === 0;
  rows.set(found.length);
}

function only(word) {
  ask.value = word;
  draw();
}

const errors = new Map();
for (const row of data.rows) if (row[STATE] === "failed") errors.set(row[CODE] || "ended", (errors.get(row[CODE] || "ended") || 0) + 1);
const { total, made, kept, failed } = data.counts;
const tiles = [[count(total), "in all"], [count(made), "made"], [count(kept), "kept from before"], [count(failed), "failed"], [seconds(data.seconds), "took"], [count(Math.round((60 * data.rows.length) / Math.max(data.seconds, 0.001))), "a minute"]];
ask.addEventListener("input", draw);
addEventListener("keydown", (event) => {
  if (event.key === "Escape") aside.classList.add("empty");
  else if (event.key === "/" && document.activeElement !== ask) (ask.focus(), event.preventDefault());
});
byId("page").replaceChildren(
  el("header", {}, el("div.wide", {}, el("div.top.alone", {}, el("div.names", {}, el("h1", {}, data.title), el("p", {}, data.path)), el("div.ask", {}, ask)))),
  el("main.wide", {}, el("div.tiles", {}, ...tiles.map(([number, what]) => el("div.tile", {}, el("b", {}, number), el("span", {}, what)))),
    errors.size ? card("What went wrong", null, ...bars([...errors].sort((a, b) => b[1] - a[1]))) : "",
    el("div.tools", {}, ...["", "failed", "made", "kept"].map((word) => el("button", { onclick: () => only(word) }, word || "all"))),
    el("div.beside", {}, rows.host, aside)));
draw();
document.documentElement.dataset.ready = "1";
