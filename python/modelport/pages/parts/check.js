// The comparison with the model: how much each output differs at each size, on a scale of powers of ten.

function check(report) {
  if (report === null) return [card("Check", null, el("p", {}, "This page was made without the report of a check. To have one here:"),
    el("pre", {}, "modelport check OUT --json > check.json\nmodelport inspect OUT --html page.html --report check.json"))];
  if (!report.rows) return [quality(report)];
  const verdict = el(`p.verdict.${report.ok ? "good" : "bad"}`, {}, report.ok ? "The values are those of the model." : "The values differ from the model's.");
  const rows = report.rows.map((row) => [row.size, Object.entries(row.axes).map((pair) => pair.join(" ")).join(", "), el("code", {}, row.output), figure(row.absolute), figure(row.relative),
    row.cosine === null || row.cosine === undefined ? "" : row.cosine.toFixed(6), row.argmax === null || row.argmax === undefined ? "" : `${(100 * row.argmax).toPrecision(4)} %`,
    el(`span.${row.ok === false ? "bad" : "soft"}`, {}, row.ok === null ? row.what : row.ok ? row.what || "ok" : row.what || "differs")]);
  const skipped = (report.skipped || []).map((skip) => `${skip.size}: skipped, ${skip.why}`);
  return [
    card("Differences by output and size", null, verdict, report.first ? el("p", {}, "The first value that differs: ", el("code", {}, report.first.text)) : null, plot(report)),
    card("Numbers", null, el("div.scroll", {}, table(["size", "axes", "output", ">largest", ">relative", ">cosine", ">argmax", ""], rows)), skipped.length ? list(skipped) : null),
  ];
}

const figure = (value) => (typeof value === "number" ? (value === 0 ? "0" : Math.abs(value) < 1e-3 ? value.toExponential(1) : value.toPrecision(2)) : String(value));

function quality(report) {
  const shown = Object.entries(report).filter(([, value]) => ["number", "string", "boolean"].includes(typeof value));
  return card("Check", null, el(`p.verdict.${report.ok ? "good" : "bad"}`, {}, report.ok ? "Within what was allowed." : "More than what was allowed."),
    pairs(shown.map(([name, value]) => [name.replaceAll("_", " "), typeof value === "number" ? String(Number(value.toPrecision(6))) : String(value)])));
}

const ROW = 26;

/** A line for each output, a dot for each size; what is equal stands at the left, what has no number at the right. */
function plot(report) {
  const rows = report.rows.filter((row) => row.ok !== null);
  const outputs = [...new Set(rows.map((row) => row.output))];
  const sizes = [...new Set(rows.map((row) => row.size))];
  const logs = rows.map((row) => row.relative).filter((value) => typeof value === "number" && value > 0).map(Math.log10);
  const low = Math.floor(Math.min(-7, ...logs)) - 1;
  const high = Math.ceil(Math.max(...logs, Math.log10(report.atol || 1e-4))) + 1;
  const wide = Math.max(300, Math.min(900, document.documentElement.clientWidth - 80));
  const left = Math.min(0.38 * wide, 24 + 7.4 * Math.max(8, ...outputs.map((name) => name.length)));
  const x = (power) => left + ((power - low) / (high - low)) * (wide - left - 14);
  const height = outputs.length * ROW + 34;
  const at = (value) => x(typeof value !== "number" ? high : value === 0 ? low : Math.log10(value));
  const shown = (name) => (name.length * 7.4 + 16 > left ? `${name.slice(0, Math.floor((left - 24) / 7.4))}…` : name);
  const every = Math.ceil((high - low) / Math.max(2, (wide - left) / 56));
  const powers = Array.from({ length: high - low + 1 }, (_, i) => low + i).filter((power) => (power - low) % every === 0);
  const marks = powers.map((power) => [svg("line.rule", { x1: x(power), x2: x(power), y1: 6, y2: height - 22 }),
    svg("text", { x: x(power), y: height - 6, "text-anchor": "middle" }, power === low ? "0" : `1e${power}`)]);
  const bound = report.atol > 0 ? svg("line.bound", { x1: at(report.atol), x2: at(report.atol), y1: 2, y2: height - 22 }, svg("title", {}, `tolerance ${report.atol}`)) : null;
  const names = outputs.map((name, i) => svg("text.strong", { x: 0, y: 6 + (i + 0.5) * ROW + 4 }, shown(name), svg("title", {}, name)));
  const dots = rows.map((row) => {
    const size = sizes.indexOf(row.size);
    const y = 6 + (outputs.indexOf(row.output) + 0.5) * ROW + (size - (sizes.length - 1) / 2) * Math.min(5, 18 / sizes.length);
    return svg("circle", { cx: at(row.relative), cy: y, r: 4, style: { fill: colour(size) } }, svg("title", {}, `${row.output}, ${row.size}: ${figure(row.relative)}`));
  });
  const legend = sizes.map((size, i) => el("span", {}, el("span.dot", { style: { background: colour(i) } }), size));
  return el("div", {},
    svg("svg", { viewBox: `0 0 ${wide} ${height}`, width: wide, role: "img", "aria-label": "largest relative difference of each output at each size" }, ...marks.flat(), bound, ...names, ...dots),
    el("div.legend.small", {}, ...legend, bound ? el("span.bad", {}, `┆ tolerance ${report.atol}`) : null));
}
