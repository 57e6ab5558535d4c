// A list of rows of one height, of which only those on the screen exist; the window scrolls it.

const MARGIN = 12;  // rows beyond the edges of the screen

class Rows {
  /** `draw(i)` makes the row i; `choose(i, key)` is told of clicks and of keys: "Enter", "ArrowRight", "ArrowLeft". */
  constructor(role, label, draw, choose) {
    this.draw = draw;
    this.choose = choose;
    this.total = 0;
    this.active = 0;
    this.name = `rows${Rows.made++}`;
    this.host = el("div.rows", { role, tabindex: 0, "aria-label": label });
    this.host.addEventListener("keydown", (event) => this.key(event));
    this.host.addEventListener("click", (event) => {
      const row = event.target.closest(".item");
      if (row === null) return;
      this.active = Number(row.dataset.row);
      this.choose(this.active, "click");
      this.redraw();
    });
    const later = () => this.waiting ||= requestAnimationFrame(() => ((this.waiting = 0), this.redraw()));
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later);
  }

  get height() {
    return Rows.rowHeight ||= parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
  }

  set(total) {
    this.total = total;
    this.active = Math.max(0, Math.min(this.active, total - 1));
    this.redraw();
  }

  redraw() {
    if (!this.host.isConnected || this.host.offsetParent === null) return;
    this.host.style.height = `${this.total * this.height + 2}px`;
    const top = this.host.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / this.height) - MARGIN);
    const last = Math.min(this.total, Math.ceil((innerHeight - top) / this.height) + MARGIN);
    const rows = [];
    for (let i = first; i < last; i++) {
      const row = this.draw(i);
      row.id = `${this.name}-${i}`;
      row.dataset.row = i;
      row.style.top = `${i * this.height}px`;
      row.classList.toggle("active", i === this.active);
      rows.push(row);
    }
    this.host.replaceChildren(...rows);
    this.host.setAttribute("aria-activedescendant", this.total ? `${this.name}-${this.active}` : "");
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(innerHeight / this.height) - 6);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.total, End: this.total };
    if (event.key in steps) this.show(this.active + steps[event.key]);
    else if (["Enter", " ", "ArrowRight", "ArrowLeft"].includes(event.key)) this.choose(this.active, event.key === " " ? "Enter" : event.key);
    else return;
    event.preventDefault();
    this.redraw();
  }

  /** Makes a row the active one, and scrolls to it where it is not to be seen. */
  show(index) {
    this.active = Math.max(0, Math.min(index, this.total - 1));
    const y = this.host.getBoundingClientRect().top + this.active * this.height;
    const head = document.querySelector("header").offsetHeight;
    if (y < head) scrollBy(0, y - head - 4);
    const sheet = document.querySelector(".detail:not(.empty)");  // on a phone it covers the lower half
    const floor = sheet && getComputedStyle(sheet).position === "fixed" ? sheet.getBoundingClientRect().top : innerHeight;
    if (y >= head && y + this.height > floor) scrollBy(0, y + this.height - floor + 4);
    this.redraw();
  }
}
Rows.made = 0;
matchMedia("(max-width: 640px)").addEventListener("change", () => (Rows.rowHeight = 0));
