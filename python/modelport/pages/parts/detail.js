// All that is known of one module, node or weight. Values lead to who makes and who uses them.

const FEW = 40;  // links of one value that are shown at once

function detail(model, thing, go) {
  const kind = model.kind(thing);
  const parts = { module: moduleDetail, node: nodeDetail, weight: weightDetail }[kind](model, thing, go);
  return [el("h2.mono", {}, kind === "weight" ? model.weight(thing)[0] : model.label(thing)), ...parts];
}

const linkTo = (model, thing, go, text) => el("button.link.mono", { onclick: () => go(thing) }, text || model.label(thing));

function under(title, ...children) {
  return [el("h3", {}, title), ...children];
}

function moduleDetail(model, thing, go) {
  const [path, above, nodes, parameters, size] = model.module(thing);
  const kinds = new Map();
  const lines = new Map();
  model.nodes.forEach(([op, home, source]) => {
    for (let at = home; at >= thing; at = model.modules[at][1]) {
      if (at !== thing) continue;
      kinds.set(op, (kinds.get(op) || 0) + 1);
      if (home === thing && model.places[source][0]) lines.set(source, (lines.get(source) || 0) + 1);
    }
  });
  return [
    path ? el("p.soft.small", {}, el("code", {}, path)) : null,
    pairs([["nodes", count(nodes)], ["parameters", count(parameters)], ["bytes", bytes(size)]]),
    above >= 0 ? under("in", linkTo(model, above, go)) : null,
    lines.size ? under("lines of its own", list([...lines.keys()].slice(0, FEW).map((source) => place(model.places[source])))) : null,
    kinds.size ? under("operators", ...bars([...kinds].sort((a, b) => b[1] - a[1]))) : null,
  ].flat().filter(Boolean);
}

function nodeDetail(model, thing, go) {
  const [op, home, source, text, inputs, results] = model.node(thing);
  return [
    place(model.places[source]),
    under("in", linkTo(model, home, go, model.modules[home][0] || model.label(0))),
    text ? under(text.startsWith(`${op}(`) ? "call" : "attributes", el("pre", {}, text)) : null,
    inputs.length ? under("takes", list(inputs.map((name) => fromValue(model, name, go)))) : null,
    results.length ? under("gives", list(results.map((name) => toValue(model, name, go)))) : null,
  ].flat().filter(Boolean);
}

function weightDetail(model, thing, go) {
  const [name, type, sizes, parameters, size, home, file] = model.weight(thing);
  const used = model.values.get(name).to;
  return [
    pairs([["type", type], ["shape", shape(sizes)], ["parameters", count(parameters)], ["bytes", `${bytes(size)} (${count(size)})`], ["kept in", file || "the file itself"]]),
    under("in", linkTo(model, home, go, model.modules[home][0] || model.label(0))),
    under("used by", users(model, used, go)),
  ].flat();
}

function fromValue(model, name, go) {
  if (name === "") return el("span.soft", {}, "left out");
  const maker = (model.values.get(name) || {}).from;
  if (maker === null || maker === undefined) return el("span", {}, el("code", {}, name), el("span.soft.small", {}, "  input"));
  return el("span", {}, el("code", {}, name), el("span.soft.small", {}, "  from "), linkTo(model, maker, go));
}

function toValue(model, name, go) {
  const used = model.values.get(name).to;
  return el("span", {}, el("code", {}, name), el("span.soft.small", {}, used.length ? "  to " : "  output"), users(model, used, go));
}

function users(model, used, go) {
  if (used.length === 0) return null;
  const links = used.slice(0, FEW).flatMap((user, i) => [i ? ", " : "", linkTo(model, user, go)]);
  return el("span", {}, ...links, used.length > FEW ? ` and ${count(used.length - FEW)} more` : "");
}
