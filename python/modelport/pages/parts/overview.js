// The first look: how large it is, what goes in and out, where it is valid.

function overview(model) {
  const [, , , parameters, size] = model.modules[0];
  const nodes = model.operators.reduce((sum, row) => sum + row[1], 0);
  const onDisk = data.files.reduce((sum, row) => sum + row[1], 0);
  const tiles = [
    [parameters ? amount(parameters) : null, "parameters"], [size ? bytes(size) : null, "of weights"],
    [count(nodes), nodes === 1 ? "node" : "nodes"], [model.modules.length > 1 ? count(model.modules.length) : null, "modules"],
    [onDisk ? bytes(onDisk) : null, "on disk"], [data.check ? (data.check.ok ? "equal" : "differs") : null, "from the model"],
  ].filter(([number]) => number !== null);
  return [
    el("div.tiles", {}, ...tiles.map(([number, what]) => el("div.tile", {}, el("b", {}, number), el("span", {}, what === "from the model" && data.check.ok ? "to the model" : what)))),
    el("div.cards", {},
      values("Inputs", model.inputs), values("Outputs", model.outputs), axes(model), limits(model),
      model.types.length ? card("Weights by type", null, ...types(model)) : null,
      model.operators.length ? card("Operators", count(model.operators.length), ...bars(model.operators)) : null,
      model.fusions.length ? fusions(model) : null, model.delegates.length ? delegates(model) : null,
      data.files.length ? card("Files", null, table(["file", ">size"], data.files.map(([name, kept]) => [el("code", {}, name), bytes(kept)]))) : null,
      card("About", null, pairs([...data.facts, ...model.facts, ...(data.path ? [["path", el("code", {}, data.path)]] : [])])),
      data.metadata.length ? card("Metadata", data.metadata.length, pairs(data.metadata)) : null,
      model.missing.length ? card("Not in the file", null, list(model.missing)) : null),
  ];
}

function values(title, rows) {
  if (rows.length === 0) return null;
  const line = ([name, type, sizes]) => el("li", {}, el("code", {}, name), " ", el("span.soft.small", {}, `${type}${shape(sizes)}`));
  const host = el("ul.plain", {}, ...rows.slice(0, 12).map(line));
  return card(title, rows.length, host, more(rows.length - 12, () => host.append(...rows.slice(12).map(line))));
}

function axes(model) {
  if (model.axes.length === 0) return null;
  const why = ([what, line, inside]) => el("div.small", {}, what, line ? " by " : "", place([line, inside]));
  const rows = model.axes.map(([name, sizes, example, reasons]) => el("div", {},
    el("div.axis", {}, el("code", {}, name), el("span", {}, example === null ? null : el("span.soft.small", {}, `example ${example}, `), sizes)),
    ...reasons.map(why)));
  return card("Axes", model.axes.length, list(rows));
}

const limits = (model) => (model.limits.length ? card("Limits", model.limits.length, list(model.limits)) : null);

function types(model) {
  const total = model.types.reduce((sum, row) => sum + row[1], 0) || 1;
  const stack = el("div.stack", { role: "img", "aria-label": "share of each type" },
    ...model.types.map(([, size], i) => el("div", { style: { background: colour(i), "flex-grow": size / total } })));
  const legend = el("div.legend", {}, ...model.types.map(([type, size], i) =>
    el("span", {}, el("span.dot", { style: { background: colour(i) } }), el("code", {}, type), ` ${bytes(size)}`, el("span.soft.small", {}, `  ${((100 * size) / total).toPrecision(3)} %`))));
  return [stack, legend];
}

function fusions(model) {
  const rows = model.fusions.map(([name, places, whyNot]) => [name, count(places), whyNot || el("span.soft", {}, "everywhere")]);
  return card("Fusions", null, table(["fusion", ">places", "not elsewhere, because"], rows));
}

function delegates(model) {
  const rows = model.delegates.map(([backend, nodes, size]) => [el("code", {}, backend), nodes === null ? "" : count(nodes), bytes(size)]);
  return card("Delegates", rows.length, table(["backend", ">nodes", ">size"], rows));
}
