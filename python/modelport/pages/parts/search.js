// One box over all modules, operators and weights of all parts: every word has to be there.

class Search {
  constructor(go) {
    this.go = go;
    this.found = [];
    this.said = el("p.soft.small", { role: "status" });
    this.rows = new Rows("listbox", "What was found", (i) => this.row(i), (i, how) => (how === "click" || how === "Enter") && this.go(...this.found[i]));
    this.host = el("div", {}, this.said, this.rows.host);
  }

  find(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const tally = { module: 0, node: 0, weight: 0 };
    this.found = [];
    for (const model of models) {
      model.texts.forEach((line, thing) => {
        if (!words.every((word) => line.includes(word))) return;
        this.found.push([model, thing]);
        tally[model.kind(thing)] += 1;
      });
    }
    this.said.textContent = `${plural(tally.module, "module")}, ${plural(tally.node, "operator")}, ${plural(tally.weight, "weight")}`;
    this.rows.active = 0;
    this.rows.host.hidden = this.found.length === 0;
    this.rows.set(this.found.length);
  }

  row(index) {
    const [model, thing] = this.found[index];
    const kind = model.kind(thing);
    const home = kind === "node" ? model.modules[model.node(thing)[1]][0] : "";
    const label = kind === "module" ? model.module(thing)[0] || data.title : kind === "weight" ? model.weight(thing)[0] : model.label(thing);
    const figure = kind === "node" ? model.places[model.node(thing)[2]][0] : kind === "weight" ? bytes(model.weight(thing)[4]) : plural(model.module(thing)[2], "node");
    return el(`div.item.${kind}`, { role: "option" },
      el("span.label", {}, label), el("span.about", {}, home),
      models.length > 1 ? el("span.badge", {}, model.name) : null, el("span.figure", {}, figure));
  }
}
