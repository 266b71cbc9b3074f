// The debugger in a cell of a notebook: a front that speaks the protocol (docs/protocol.md) by the messages of a widget.

const BEFORE = 8;
const AFTER = 24;
const LARGEST_PICTURE = 4096; // elements

// Verb, sign, key, what it does. The keys are those of the terminal UI.
const VERBS = [
  ["reverse-continue", "⇤", "C", "Go back to where a breakpoint would have stopped"],
  ["back", "◀", "N", "Look at the node that ran before"],
  ["step", "▶", "n", "Run this node, stop before the next"],
  ["into", "↧", "s", "Stop again after this node, with what it produced"],
  ["out", "↥", "f", "Run until the backward of this module has ended"],
  ["continue", "⇥", "c", "Run to the next breakpoint or failure"],
  ["next-backward", "⇉", "]", "Go to the first node of the next backward"],
  ["pause", "‖", "p", "Stop a running program before its next node"],
  ["go-live", "●", "L", "From the past, go to where the program is"],
  ["skip", "⤼", "x", "Leave out the node that is about to run"],
  ["abort", "■", "q", "End the program"],
];
const MARKS = { done: "✓", current: "▶", pending: "", failed: "✗", skipped: "–" };
const ENDED = ["finished", "failed"];

/** Requests to the program, and their answers. */
class Program {
  constructor(model, onStanding) {
    this.model = model;
    this.onStanding = onStanding;
    this.waiting = new Map();
    this.next = Math.floor(Math.random() * 2 ** 30); // another view of the widget must not take the answers
    this.serial = -1;
    this.listener = (message) => this.receive(message);
    model.on("msg:custom", this.listener);
  }

  ask(verb, fields = {}) {
    const id = this.next++;
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.model.send({ type: "request", id, verb: { verb, ...fields } });
    return answer;
  }

  receive(message) {
    const asked = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (asked && message.type === "reply") asked.resolve(message.result);
    if (asked && message.type === "failure") asked.reject(new Error(message.text));
    const standing = message.standing;
    if (standing && standing.serial > this.serial) {
      this.serial = standing.serial;
      this.onStanding(standing);
    }
  }

  close() {
    this.model.off("msg:custom", this.listener);
  }
}

/** Return an element; of its properties, those that are functions listen to events, others are attributes. */
function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function number(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value; // nan, inf
  return Number.isInteger(value) && Math.abs(value) < 1e6 ? String(value) : value.toPrecision(4);
}

function shape(sizes) {
  return sizes ? `(${sizes.join(", ")})` : "";
}

function place(location) {
  return location ? `${location.filename.split("/").pop()}:${location.lineno}` : "";
}

/** Return a bar for a norm, as long as its logarithm is large among those of others. */
function normBar(norm, norms) {
  if (typeof norm === "string") return element("span", { class: "gs-bad" }, norm);
  const logs = norms.filter((other) => typeof other === "number" && other > 0).map(Math.log10);
  if (!norm || !logs.length) return "";
  const low = Math.min(...logs) - 1;
  const part = (Math.log10(norm) - low) / (Math.max(...logs) - low);
  return element("span", { class: "gs-bar", style: `width: ${(70 * part).toFixed(0)}px` });
}

/** Return how magnitudes are distributed: a bar for each power of two. */
function histogram(bins) {
  const drawn = element("span", { class: "gs-histogram" });
  if (!bins.length) return drawn;
  const counts = new Map(bins);
  const most = Math.max(...counts.values());
  const powers = [...counts.keys()];
  for (let k = Math.min(...powers); k <= Math.max(...powers); k++) {
    const height = counts.has(k) ? Math.max(1, (20 * counts.get(k)) / most) : 0;
    const title = `${counts.get(k) ?? 0} in [2^${k}, 2^${k + 1})`;
    drawn.append(element("i", { style: `height: ${height.toFixed(0)}px`, title }));
  }
  return drawn;
}

/** Draw numbers, the last dimension to the right: blue below zero, red above, black what is not finite. */
function heatMap(page) {
  const columns = page.shape.length ? page.shape[page.shape.length - 1] : 1;
  const rows = Math.ceil(page.values.length / columns);
  const values = page.values.map((value) => (Array.isArray(value) ? Math.hypot(...value) : Number(value)));
  const largest = Math.max(...values.filter(Number.isFinite).map(Math.abs), 0) || 1;
  const size = Math.max(1, Math.min(14, Math.floor(420 / columns)));
  const canvas = element("canvas", { width: columns * size, height: rows * size, class: "gs-heat" });
  const pen = canvas.getContext("2d");
  values.forEach((value, at) => {
    const strength = Math.round(255 * (1 - Math.abs(value) / largest));
    const color = value < 0 ? `rgb(${strength} ${strength} 255)` : `rgb(255 ${strength} ${strength})`;
    pen.fillStyle = Number.isFinite(value) ? color : "black";
    pen.fillRect((at % columns) * size, Math.floor(at / columns) * size, size, size);
  });
  canvas.title = `largest magnitude ${number(largest)}`;
  return canvas;
}

function samePlace(one, other) {
  const facts = ["state", "task_index", "task_count", "arrangement", "node_count", "current", "live"];
  return facts.every((fact) => one[fact] === other[fact]) && one.reason?.text === other.reason?.text;
}

class View {
  constructor(model, el) {
    this.program = new Program(model, (standing) => this.stands(standing));
    this.standing = null;
    this.selected = -1;
    this.drawing = 0;
    this.buttons = new Map(VERBS.map(([verb, sign, key, title]) => [verb, this.button(verb, sign, key, title)]));
    this.state = element("span", { class: "gs-state" });
    this.losses = element("span", { class: "gs-losses" });
    this.told = element("pre", { class: "gs-told" });
    this.nodes = element("table", { class: "gs-nodes" });
    this.node = element("div", { class: "gs-node" });
    this.points = element("span", { class: "gs-points" });
    this.error = element("pre", { class: "gs-error", role: "alert" });
    this.answer = element("pre", { class: "gs-answer" });
    const keydown = (event) => this.keydown(event);
    this.root = element(
      "div",
      { class: "gs-debugger", tabindex: "0", "data-lm-suppress-shortcuts": "true", keydown },
      element("div", { class: "gs-row" }, ...this.buttons.values(), this.state, this.losses),
      this.error,
      this.told,
      element("div", { class: "gs-columns" }, element("div", { class: "gs-scroll" }, this.nodes), this.node),
      element(
        "div",
        { class: "gs-row" },
        this.prompt("evaluate", "grad.norm()", (expression) => this.evaluate(expression)),
        this.prompt("grad =", "grad * 0.5", (expression) => this.setGrad(expression)),
        this.prompt("break", "op:Mul*, param:*, nan", (text) => this.addBreakpoint(text)),
        this.points,
      ),
      this.answer,
    );
    el.append(this.root);
    this.refreshLosses();
  }

  close() {
    this.program.close();
    this.root.remove();
  }

  // --- what a person does ---

  button(verb, sign, key, title) {
    const click = () => this.obey(verb);
    return element("button", { title: `${title} (${key})`, "aria-label": verb, click }, sign);
  }

  prompt(label, placeholder, act) {
    const input = element("input", { placeholder, "aria-label": label, spellcheck: "false" });
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && input.value.trim()) this.tell(act(input.value.trim()));
    });
    return element("label", {}, `${label} `, input);
  }

  keydown(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const verb = VERBS.find(([, , key]) => key === event.key);
    const moves = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
    if (verb) this.obey(verb[0]);
    else if (event.key in moves) this.select(this.selected + moves[event.key]);
    else if (event.key === "t") this.goTo(this.selected);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  obey(verb) {
    if (!this.buttons.get(verb).disabled) this.tell(this.program.ask(verb));
  }

  goTo(index) {
    const past = index < this.standing.live || ENDED.includes(this.standing.state);
    this.tell(this.program.ask(past ? "goto" : "run-to", { index }));
  }

  async evaluate(expression) {
    this.answer.textContent = `${expression} = ${await this.program.ask("evaluate", { expression })}`;
  }

  async setGrad(expression) {
    await this.program.ask("set-grad", { slot: 0, expression });
    this.refresh();
  }

  addBreakpoint(text) {
    const [spec, condition] = text.split(/\s+if\s+/, 2);
    return this.program.ask("add-breakpoint", { spec, ...(condition ? { condition } : {}) });
  }

  /** Show why something could not be done, or nothing. */
  async tell(answer) {
    this.error.textContent = "";
    try {
      await answer;
    } catch (error) {
      this.error.textContent = error.message;
    }
  }

  // --- what is shown ---

  stands(standing) {
    const before = this.standing;
    this.standing = standing;
    this.showPoints();
    if (before && samePlace(before, standing)) return; // every answer tells where the program stands
    this.selected = standing.current;
    const where = standing.node_count ? `, node ${standing.current} of ${standing.node_count}` : "";
    const why = standing.reason ? `: ${standing.reason.text}` : "";
    const backward = standing.task_count > 1 ? `backward ${standing.task_index} of ${standing.task_count}, ` : "";
    this.state.textContent = `${backward}${standing.state}${standing.ended ? "" : where}${why}`;
    this.enable();
    this.refresh();
    this.refreshLosses();
  }

  enable() {
    const { state, ended, recorded } = this.standing;
    const running = state === "running";
    const paused = !running && !ENDED.includes(state) && state !== "not started";
    const past = ["back", "reverse-continue"];
    for (const [verb, button] of this.buttons) {
      if (verb === "pause") button.disabled = !running;
      else if (verb === "abort") button.disabled = ended;
      else if (verb === "go-live") button.disabled = state !== "replaying";
      else if (past.includes(verb)) button.disabled = running || !recorded;
      else button.disabled = !paused;
    }
  }

  showPoints() {
    const remove = (id) => () => this.tell(this.program.ask("remove-breakpoint", { id }));
    const chips = this.standing.breakpoints.map(({ id, spec, condition, hits }) =>
      element(
        "span",
        { class: "gs-point", title: `${hits} hits` },
        condition ? `${spec} if ${condition} ` : `${spec} `,
        element("button", { click: remove(id), "aria-label": `remove breakpoint ${id}` }, "×"),
      ),
    );
    this.points.replaceChildren(...chips);
  }

  async refreshLosses() {
    await this.tell(
      this.program.ask("losses").then((losses) => {
        const latest = losses.slice(-3).map(number).join(", ");
        this.losses.textContent = latest ? `loss ${losses.length > 3 ? "… " : ""}${latest}` : "";
      }),
    );
  }

  /** Read the nodes around, and the one at hand; what another stop has overtaken is not shown. */
  async refresh() {
    const mine = ++this.drawing;
    const { state, current, node_count: count } = this.standing;
    if (state === "running" || current < 0) return;
    const first = Math.max(0, current - BEFORE);
    await this.tell(
      Promise.all([
        this.program.ask("records", { start: first, stop: Math.min(count, current + AFTER) }),
        this.program.ask("inspect", { index: current }),
        state.startsWith("paused") ? this.program.ask("explain") : "",
      ]).then(([records, node, told]) => {
        if (mine !== this.drawing) return;
        this.told.textContent = told;
        this.showNodes(records);
        this.showNode(node);
      }),
    );
  }

  showNodes(records) {
    const norms = records.map((node) => node.norm);
    const headings = ["", "", "node", "of", "norm", "", "line"].map((text) => element("th", {}, text));
    const rows = records.map((node) => this.nodeRow(node, norms));
    this.nodes.replaceChildren(element("tr", {}, ...headings), ...rows);
  }

  nodeRow(node, norms) {
    const cells = [
      MARKS[node.state],
      String(node.index),
      node.name,
      node.parameter || node.module,
      number(node.norm),
      normBar(node.norm, norms),
      place(node.location),
    ].map((content) => element("td", {}, content));
    const row = element("tr", {
      class: `gs-${node.state}`,
      "data-index": String(node.index),
      "aria-selected": String(node.index === this.selected),
      title: node.location ? node.location.source : undefined,
      click: () => this.select(node.index),
      dblclick: () => this.goTo(node.index),
    });
    row.append(...cells);
    return row;
  }

  select(index) {
    const row = this.nodes.querySelector(`[data-index="${index}"]`);
    if (!row) return;
    this.selected = index;
    for (const other of this.nodes.querySelectorAll("[data-index]")) {
      other.setAttribute("aria-selected", String(other === row));
    }
    const mine = ++this.drawing;
    this.tell(
      this.program.ask("inspect", { index }).then((node) => {
        if (mine === this.drawing) this.showNode(node);
      }),
    );
  }

  showNode(node) {
    const headings = ["", "shape", "dtype", "norm", "magnitudes", "min", "max", "mean", "zeros", "bad", "version"];
    const at = node.index === this.standing.current ? "" : `at_node(${node.index}).`;
    const rows = [
      ...this.gradientRows("in", node.grad_outputs, `${at}grads`),
      ...this.gradientRows("out", node.grad_inputs, `${at}produced`),
      ...node.saved.map((saved) => this.savedRow(saved, `${at}saved["${saved.name}"]`)),
    ];
    this.picture = element("div");
    this.node.replaceChildren(
      element("b", {}, `node ${node.index}: ${node.name}`),
      ` ${node.parameter || node.module} ${node.edited ? "(edited)" : ""}`,
      element("div", {}, `${place(node.location)} `, element("code", {}, node.location ? node.location.source : "")),
      element("table", {}, element("tr", {}, ...headings.map((text) => element("th", {}, text))), ...rows),
      this.picture,
    );
  }

  gradientRows(direction, group, expression) {
    return (group ?? []).map((summary, at) =>
      summary
        ? this.tensorRow(`gradient ${direction} [${at}]`, summary, "", `${expression}[${at}]`)
        : element("tr", {}, element("td", {}, `gradient ${direction} [${at}]`), element("td", {}, "undefined")),
    );
  }

  savedRow(saved, expression) {
    const versions = { released: "released", modified: `${saved.saved_version}, now ${saved.current_version}: modified` };
    const version = versions[saved.state] ?? number(saved.saved_version);
    const name = `saved ${saved.name}`;
    if (saved.summary) return this.tensorRow(name, saved.summary, version, expression);
    const cells = [name, shape(saved.shape), saved.dtype, "", "", "", "", "", "", "", version];
    return element("tr", {}, ...cells.map((text) => element("td", {}, text)));
  }

  tensorRow(name, summary, version, expression) {
    const bad = [summary.nans && `${summary.nans} NaN`, summary.infs && `${summary.infs} Inf`].filter(Boolean);
    const cells = [
      name,
      shape(summary.shape),
      summary.dtype,
      number(summary.norm),
      histogram(summary.histogram),
      number(summary.min),
      number(summary.max),
      number(summary.mean),
      String(summary.zeros),
      element("span", { class: "gs-bad" }, bad.join(", ")),
      version.includes("modified") ? element("span", { class: "gs-bad" }, version) : version,
    ];
    const show = () => this.tell(this.showPicture(name, expression));
    const row = element("tr", { class: "gs-tensor", title: "Click: a heat map", click: show });
    row.append(...cells.map((content) => element("td", {}, content)));
    return row;
  }

  async showPicture(name, expression) {
    const page = await this.program.ask("elements", { expression, start: 0, stop: LARGEST_PICTURE });
    const total = page.shape.reduce((product, size) => product * size, 1);
    const part = total > page.values.length ? `, the first ${page.values.length} of ${total} elements` : "";
    this.picture.replaceChildren(element("div", {}, `${name} ${shape(page.shape)}${part}`), heatMap(page));
  }
}

function render({ model, el }) {
  const view = new View(model, el);
  return () => view.close();
}

export default { render };
