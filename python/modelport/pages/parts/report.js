// The page of one artifact: what is asked, what is chosen, which of the views is shown.

const started = performance.now();
const views = {};
const state = { model: models[0], view: "Overview" };

const aside = el("section.card.detail.empty", { "aria-label": "Details", "aria-live": "polite" });
const tree = new Tree((thing) => showDetail(thing));
const weights = new Weights((model, thing) => go(model, thing));
const search = new Search((model, thing) => go(model, thing));

function showDetail(thing) {
  const shut = el("button.shut", { "aria-label": "Close", onclick: () => aside.classList.add("empty") }, "✕");
  aside.replaceChildren(shut, ...detail(state.model, thing, (other) => go(state.model, other)));
  aside.classList.remove("empty");
  aside.scrollTop = 0;
}

function go(model, thing) {
  ask.value = "";
  use(model);
  show("Graph");
  tree.reveal(thing);
}

function use(model) {
  if (state.model === model) return;
  state.model = model;
  if (choice) choice.value = String(models.indexOf(model));
  aside.classList.add("empty");
  aside.replaceChildren(el("p.soft", {}, CHOOSE));
  drawn.clear();
  show(state.view);
}

const CHOOSE = "Choose a module, an operator or a weight.";
const drawn = new Set();
const draw = {
  Overview: (host) => host.replaceChildren(...overview(state.model)),
  Graph: (host) => {
    if (!host.hasChildNodes()) host.append(el("div.tools", {}, el("button", { onclick: () => tree.all(true) }, "Open all"), el("button", { onclick: () => tree.all(false) }, "Close all")), el("div.beside", {}, tree.rows.host, aside));
    tree.use(state.model);
  },
  Weights: (host) => {
    if (!host.hasChildNodes()) host.append(weights.host);
    weights.use(state.model);
  },
  Check: (host) => host.replaceChildren(...check(data.check)),
  Steps: (host) => host.replaceChildren(making()),
};
const offered = Object.keys(draw).filter((name) =>
  (name !== "Graph" || models.some((model) => model.nodes.length)) && (name !== "Weights" || models.some((model) => model.weights.length)));

function show(name) {
  state.view = name;
  const asked = ask.value.trim() !== "";
  search.host.hidden = !asked;
  for (const [view, host] of Object.entries(views)) host.hidden = asked || view !== name;
  for (const tab of tabs.children) {
    const chosen = tab.textContent === name;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
  if (asked) search.rows.redraw();
  else if (!drawn.has(name)) {
    drawn.add(name);
    draw[name](views[name]);
  }
  if (name === "Graph") tree.rows.redraw();
  if (name === "Weights") weights.rows.redraw();
}

const ask = el("input", { type: "search", id: "ask", placeholder: "Search modules, operators, weights", "aria-label": "Search", autocomplete: "off", spellcheck: "false" });
ask.addEventListener("input", () => {
  if (ask.value.trim() !== "") search.find(ask.value);
  show(state.view);
  scrollTo(0, 0);
});
ask.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" || event.key === "Enter") search.rows.host.focus();
  if (event.key === "Enter" && search.found.length) go(...search.found[0]);
});
const choice = models.length < 2 ? null : el("select", { "aria-label": "Part", onchange: () => use(models[Number(choice.value)]) }, ...models.map((model, i) => el("option", { value: i }, model.name)));

const tabs = el("div.tabs", { role: "tablist" }, ...offered.map((name) => el("button", { role: "tab", "aria-controls": `view-${name}`, onclick: () => ((ask.value = ""), show(name), scrollTo(0, 0)) }, name)));
tabs.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = offered[(offered.indexOf(state.view) + step + offered.length) % offered.length];
  show(next);
  [...tabs.children].find((tab) => tab.textContent === next).focus();
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (ask.value) (ask.value = ""), show(state.view);
    else aside.classList.add("empty");
  } else if (event.key === "/" && document.activeElement !== ask) {
    ask.focus();
    event.preventDefault();
  }
});

for (const name of offered) views[name] = el("div", { id: `view-${name}`, role: "tabpanel", "aria-label": name, hidden: true });
aside.append(el("p.soft", {}, CHOOSE));
byId("page").replaceChildren(
  el("header", {}, el("div.wide", {},
    el("div.top", {}, el("div.names", {}, el("h1", {}, data.title), el("p", {}, [data.kind, data.path].filter(Boolean).join(" · "))), el("div.ask", {}, choice, ask)), tabs)),
  el("main.wide", {}, ...Object.values(views), search.host));
show("Overview");
document.documentElement.dataset.ready = Math.round(performance.now() - started);
