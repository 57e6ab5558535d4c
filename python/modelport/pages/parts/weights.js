// All weights in one list, by size, by name or as the file has them.

const ORDERS = {
  "by size": (model) => (a, b) => model.weights[b][4] - model.weights[a][4],
  "by name": (model) => (a, b) => (model.weights[a][0] < model.weights[b][0] ? -1 : 1),
  "as in the file": () => (a, b) => a - b,
};

class Weights {
  constructor(go) {
    this.go = go;
    this.rows = new Rows("listbox", "Weights", (i) => this.row(i), (i, how) => (how === "click" || how === "Enter") && this.go(this.model, this.model.firstWeight + this.order[i]));
    this.tools = el("div.tools", {}, ...Object.keys(ORDERS).map((name) => el("button", { onclick: () => this.sort(name) }, name)));
    this.types = el("section.card");
    this.host = el("div", {}, this.types, el("p.small", {}), this.tools, this.rows.host);
  }

  use(model) {
    this.model = model;
    this.largest = model.weights.reduce((most, weight) => Math.max(most, weight[4]), 1);
    this.types.replaceChildren(el("h2", {}, "Weights ", el("span.count", {}, count(model.weights.length))), ...types(model));
    this.sort("by size");
  }

  sort(name) {
    for (const button of this.tools.children) button.setAttribute("aria-pressed", String(button.textContent === name));
    this.order = this.model.weights.map((_, i) => i).sort(ORDERS[name](this.model));
    this.rows.active = 0;
    this.rows.set(this.order.length);
  }

  row(index) {
    const [name, type, sizes, , size] = this.model.weights[this.order[index]];
    return el("div.item.weight", { role: "option" }, el("span.label", { title: name }, name), el("span.about.second", {}, `${type}${shape(sizes)}`),
      el("span.figure", {}, bytes(size)), el("span.share", {}, el("i", { style: { width: `${(100 * size) / this.largest}%` } })));
  }
}
