// How it was made: which captures were tried, what each step took.

function making() {
  const cards = [];
  if (data.steps.length) {
    const slowest = Math.max(...data.steps.map((row) => row[1]), 1e-9);
    const most = Math.max(...data.steps.map((row) => row[2] || 0), 1);
    const bar = (part, kind) => el("div.bar", { style: { width: `${Math.max(1, 100 * part)}%`, background: colour(kind) } });
    const rows = data.steps.map(([name, taken, memory]) => [name,
      el("div", {}, seconds(taken), bar(taken / slowest, 0)),
      memory === null ? "" : el("div", {}, bytes(memory), bar(memory / most, 2))]);
    const all = data.steps.reduce((sum, row) => sum + row[1], 0);
    cards.push(card("Steps", seconds(all), el("div.steps", {}, table(["step", "time", "memory at its peak"], rows))));
  }
  if (data.attempts.length) {
    const several = models.length > 1;
    const line = ([part, name, why, became]) => el("span", {}, several ? el("span.badge", {}, part) : null, several ? " " : "", el("b", {}, name), el("span.soft", {}, `, because ${why}: `), became);
    cards.push(card("Captures that were tried", data.attempts.length, list(data.attempts.map(line))));
  }
  if (data.notes.length) cards.push(card("Notes", data.notes.length, list(data.notes)));
  if (cards.length === 0) cards.push(card("Steps", null, el("p", {}, "An artifact is the same bytes whenever it is written, so that it does not hold how long that took. To have steps and attempts here:"),
    el("pre", {}, "modelport export onnx MODEL OUT --json > run.json\nmodelport inspect OUT --html page.html --report run.json")));
  return el("div", {}, ...cards);
}
