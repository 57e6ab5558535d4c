// The parts of the artifact with what is looked up in them: who makes a value, who uses it, what is in a module.

class Model {
  constructor(part) {
    Object.assign(this, part);
    this.firstNode = this.modules.length;
    this.firstWeight = this.firstNode + this.nodes.length;
    this.total = this.firstWeight + this.weights.length;
  }

  /** Things have one number each: modules, then nodes, then weights. */
  kind(thing) {
    return thing < this.firstNode ? "module" : thing < this.firstWeight ? "node" : "weight";
  }
  module(thing) { return this.modules[thing]; }
  node(thing) { return this.nodes[thing - this.firstNode]; }
  weight(thing) { return this.weights[thing - this.firstWeight]; }

  label(thing) {
    const kind = this.kind(thing);
    if (kind === "node") return this.node(thing)[0];
    const [path, above] = kind === "module" ? this.module(thing) : [this.weight(thing)[0], this.weight(thing)[5]];
    const prefix = above < 0 ? "" : `${this.modules[above][0]}.`;
    return path === "" ? data.title : path.startsWith(prefix) ? path.slice(prefix.length) : path;
  }

  home(thing) {
    const kind = this.kind(thing);
    return kind === "module" ? this.module(thing)[1] : kind === "node" ? this.node(thing)[1] : this.weight(thing)[5];
  }

  /** What is in each module: its weights, then modules and nodes as they come in the graph. */
  get inside() {
    if (this.insides) return this.insides;
    this.insides = this.modules.map(() => []);
    this.weights.forEach((weight, i) => this.insides[weight[5]].push(this.firstWeight + i));
    const placed = new Uint8Array(this.modules.length);
    const settle = (module) => {
      if (module <= 0 || placed[module]) return;
      placed[module] = 1;
      settle(this.modules[module][1]);
      this.insides[this.modules[module][1]].push(module);
    };
    this.nodes.forEach((node, i) => {
      settle(node[1]);
      this.insides[node[1]].push(this.firstNode + i);
    });
    this.modules.forEach((_, module) => settle(module));
    return this.insides;
  }

  /** Of each value: the things that make it and use it. */
  get values() {
    if (this.links) return this.links;
    this.links = new Map();
    const at = (name) => this.links.get(name) || this.links.set(name, { from: null, to: [] }).get(name);
    this.weights.forEach((weight, i) => (at(weight[0]).from = this.firstWeight + i));
    this.nodes.forEach((node, i) => {
      for (const name of node[5]) at(name).from = this.firstNode + i;
      for (const name of node[4]) at(name).to.push(this.firstNode + i);
    });
    return this.links;
  }

  /** What a search looks at, one text for each thing. */
  get texts() {
    if (this.found) return this.found;
    const lines = this.modules.map((module) => module[0] || data.title);
    for (const [op, module, source, , , results] of this.nodes)
      lines.push(`${op} ${results.join(" ")} ${this.modules[module][0]} ${this.places[source].join(" ")}`);
    for (const [name, type] of this.weights) lines.push(`${name} ${type}`);
    return (this.found = lines.map((line) => line.toLowerCase()));
  }
}

const models = (data.parts || []).map((part) => new Model(part));
