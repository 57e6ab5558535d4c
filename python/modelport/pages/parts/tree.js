// The graph by module: branches are rows only where they are open.

class Tree {
  constructor(choose) {
    this.chosenBy = choose;
    this.rows = new Rows("tree", "Modules, operators and weights", (i) => this.row(i), (i, how) => this.act(i, how));
    this.open = [];
    this.flat = [];
  }

  use(model) {
    if (this.model === model) return;
    this.model = model;
    this.open = new Uint8Array(model.modules.length);
    this.chosen = -1;
    // The first module that has more than one thing in it is open, and all on the way to it.
    let module = 0;
    while (module < model.firstNode) {
      this.open[module] = 1;
      const inside = model.inside[module];
      if (inside.length !== 1) break;
      module = inside[0];
    }
    this.lay();
  }

  /** The visible rows anew: things and how deep they are. */
  lay() {
    this.flat = [];
    const stack = [[0, 0]];
    while (stack.length) {
      const [thing, depth] = stack.pop();
      this.flat.push([thing, depth]);
      if (thing < this.model.firstNode && this.open[thing]) {
        const inside = this.model.inside[thing];
        for (let i = inside.length - 1; i >= 0; i--) stack.push([inside[i], depth + 1]);
      }
    }
    this.rows.set(this.flat.length);
  }

  all(open) {
    this.open.fill(open ? 1 : 0);
    this.open[0] = 1;
    this.lay();
  }

  act(index, how) {
    const [thing, depth] = this.flat[index];
    const isModule = thing < this.model.firstNode;
    const isOpen = isModule && this.open[thing];
    if (how === "ArrowLeft" && !isOpen) {
      let above = index;
      while (above > 0 && this.flat[above][1] >= depth) above -= 1;
      this.rows.show(above);
    } else if (how === "ArrowRight" && (isOpen || !isModule)) {
      if (isOpen) this.rows.show(index + 1);
    } else if (isModule) {
      this.open[thing] = isOpen ? 0 : 1;
      this.choose(thing);
      this.lay();
    } else {
      this.choose(thing);
      this.rows.show(index);
    }
  }

  choose(thing) {
    this.chosen = thing;
    this.chosenBy(thing);
  }

  /** Opens all on the way to a thing and goes there. */
  reveal(thing) {
    for (let above = this.model.home(thing); above >= 0; above = this.model.modules[above][1]) this.open[above] = 1;
    this.choose(thing);
    this.lay();
    this.rows.show(this.flat.findIndex(([one]) => one === thing));
  }

  row(index) {
    const [thing, depth] = this.flat[index];
    const model = this.model;
    const kind = model.kind(thing);
    const row = el(`div.item.${kind}`, { role: "treeitem", "aria-level": depth + 1, style: { "padding-left": `${10 + Math.min(depth, 12) * 16}px` } });
    if (thing === this.chosen) row.classList.add("chosen");
    row.append(el("span.twist", { "aria-hidden": true }, kind === "module" ? (this.open[thing] ? "▾" : "▸") : kind === "node" ? "ƒ" : "▪"));
    row.append(el("span.label", {}, model.label(thing)));
    if (kind === "module") {
      row.setAttribute("aria-expanded", String(Boolean(this.open[thing])));
      const [, , nodes, parameters, size] = model.module(thing);
      row.append(el("span.about.second", {}, plural(nodes, "node")), el("span.figure", {}, parameters ? amount(parameters) : ""));
      const share = model.modules[0][4] ? (100 * size) / model.modules[0][4] : 0;
      row.append(el("span.share", { title: `${share.toFixed(1)} % of the bytes` }, el("i", { style: { width: `${share}%` } })));
    } else if (kind === "node") {
      const [, , source, text, inputs] = model.node(thing);
      row.append(el("span.about.second", {}, text && text.includes("(") ? text : [inputs.filter(Boolean).join(", "), text].filter(Boolean).join("; ")), el("span.figure", {}, model.places[source][0]));
    } else {
      const [, type, sizes, , size] = model.weight(thing);
      row.append(el("span.about.second", {}, `${type}${shape(sizes)}`), el("span.figure", {}, bytes(size)));
    }
    return row;
  }
}
