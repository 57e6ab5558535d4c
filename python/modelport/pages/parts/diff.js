// What differs between two: how much of each kind, then each of them.

const FIRST = 100;  // of a kind, at once
const KINDS = { changed: "~", added: "+", removed: "−" };

const ask = el("input", { type: "search", id: "ask", placeholder: "Search what differs", "aria-label": "Search", autocomplete: "off", spellcheck: "false" });
const shown = el("div");

function summary() {
  const rows = data.sections.filter(([, same, changes]) => same || changes.length).map(([name, same, changes]) => {
    const of = (kind) => changes.filter((change) => change[0] === kind).length;
    const figure = (kind) => (of(kind) ? el(`span.${kind}`, {}, count(of(kind))) : el("span.soft", {}, "0"));
    return [changes.length ? el("a", { href: `#${name}` }, name) : name, figure("changed"), figure("added"), figure("removed"), count(same)];
  });
  return card("Counts", null, data.same ? el("p.verdict.good", {}, "There is no difference.") : null, el("div.counts", {}, table(["", ">changed", ">added", ">removed", ">the same"], rows)), data.notes.length ? list(data.notes) : null);
}

function line([kind, part, name, words]) {
  return el("li", {}, el(`b.mono.${kind}`, { title: kind }, `${KINDS[kind]} `), part ? el("span.badge", {}, part) : null, part ? " " : "", el("code", {}, name), words ? el("span.soft", {}, `  ${words}`) : null);
}

function draw() {
  const words = ask.value.toLowerCase().split(/\s+/).filter(Boolean);
  const cards = data.sections.map(([name, , changes]) => {
    const rows = changes.filter((change) => words.every((word) => change.join(" ").toLowerCase().includes(word)));
    if (rows.length === 0) return null;
    const host = el("ul.plain", {}, ...rows.slice(0, FIRST).map(line));
    return fill(card(name, count(rows.length), host, more(rows.length - FIRST, () => host.append(...rows.slice(FIRST).map(line)))), [], { id: name }, []);
  });
  shown.replaceChildren(...cards.filter(Boolean));
}

ask.addEventListener("input", draw);
addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== ask) (ask.focus(), event.preventDefault());
});
byId("page").replaceChildren(
  el("header", {}, el("div.wide", {}, el("div.top.alone", {}, el("div.names", {}, el("h1", {}, data.title), el("p", {}, `${data.before} → ${data.after}`)), el("div.ask", {}, ask)))),
  el("main.wide", {}, summary(), shown));
draw();
document.documentElement.dataset.ready = "1";
