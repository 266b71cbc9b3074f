"use strict";

// data.nodes: [title, subtitle, group, kind, mark, details] with texts by their place in data.texts;
// data.groups: [name, parent, details]; group 0 is the whole graph; data.edges: source, target, source, target, ...
const data = JSON.parse(document.getElementById("graph").textContent);
const { texts, nodes, groups, edges } = data;
const SVG = "http://www.w3.org/2000/svg";
const MOST_BOXES = 1200, FEW_BOXES = 70;
const canvas = document.getElementById("canvas"), aside = document.querySelector("aside");
const status = document.querySelector(".status"), search = document.getElementById("search");
const view = { x: 0, y: 0, scale: 1 };
const open = new Set([0]);
let shown = [], drawn = new Map(), extent = { width: 1, height: 1 }, selected = null, hits = [], hit = -1;

const children = groups.map(() => ({ groups: [], nodes: [] }));
groups.forEach(([, parent], group) => group && children[parent].groups.push(group));
nodes.forEach(([, , group], node) => children[group].nodes.push(node));
const sizeOf = (group) => children[group].groups.length + children[group].nodes.length;

function ancestors(group) {
  const found = [];
  for (let at = group; at; at = groups[at][1]) found.push(at);
  return found.reverse();
}

// What stands for a node: itself, or the outermost closed group around it, written as -group.
function standsFor(node) {
  for (const group of ancestors(nodes[node][2])) if (!open.has(group)) return -group;
  return node + 1;
}

function openUntilFull() {
  let count = sizeOf(0);
  const queue = [...children[0].groups];
  while (queue.length) {
    const group = queue.shift();
    if (count + sizeOf(group) - 1 > FEW_BOXES) continue;
    open.add(group);
    count += sizeOf(group) - 1;
    queue.push(...children[group].groups);
  }
}

// --- drawing ---

const pen = document.createElement("canvas").getContext("2d");
function widthOf(text, font) {
  pen.font = font;
  return pen.measureText(text).width;
}

function element(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
}

function describe(id) {
  if (id < 0) {
    const [name, , details] = groups[-id];
    return { title: texts[name], lines: [texts[details].split("\n")[0]], kind: "group", mark: groups[-id][3] };
  }
  const [title, subtitle, , kind, mark] = nodes[id - 1];
  return { title: texts[title], lines: texts[subtitle] ? texts[subtitle].split("\n") : [], kind, mark };
}

function draw() {
  const place = new Map(), weights = new Map();
  const stand = nodes.map((_, node) => standsFor(node));
  for (const id of stand) if (!place.has(id)) place.set(id, place.size);
  for (let i = 0; i < edges.length; i += 2) {
    const source = stand[edges[i]], target = stand[edges[i + 1]];
    if (source === target) continue;
    const key = place.get(source) * 1e6 + place.get(target);
    weights.set(key, (weights.get(key) || 0) + 1);
  }
  shown = [...place.keys()];
  const looks = shown.map(describe);
  const sizes = looks.map((look) => [
    Math.max(56, widthOf(look.title, "600 12px system-ui"), ...look.lines.map((line) => widthOf(line, "10px system-ui"))) + 22,
    30 + 14 * look.lines.length,
  ]);
  const arrows = [...weights.keys()].map((key) => [Math.floor(key / 1e6), key % 1e6]);
  const layout = layOut(sizes, arrows);
  extent = layout;
  const scene = document.getElementById("scene");
  scene.replaceChildren();
  drawn = new Map();
  const counts = [...weights.values()];
  arrows.forEach(([source, target], i) => {
    const line = element("path", { class: "arrow", d: pathOf(layout.routes[i]), "marker-end": "url(#tip)" }, scene);
    line.dataset.source = shown[source];
    line.dataset.target = shown[target];
    const [x, y] = layout.routes[i][layout.routes[i].length - 1];
    if (counts[i] > 1) element("text", { class: "count", x: x + 4, y: y - 9 }, scene, "×" + counts[i]);
  });
  looks.forEach((look, i) => drawBox(scene, shown[i], look, sizes[i], layout.boxes[i]));
  const folded = nodes.length === shown.length ? "" : `, drawn as ${shown.length.toLocaleString()}`;
  status.textContent = `${nodes.length.toLocaleString()} nodes${folded}`;
  if (selected === null) mark();
  else select(selected);  // what it offers to fold or unfold has changed
}

function pathOf(points) {
  let path = `M${points[0].map(Math.round)}`;
  for (let i = 1; i < points.length; i++) {
    const [x, y] = points[i - 1], [toX, toY] = points[i], middle = (y + toY) / 2;
    path += x === toX ? `L${toX} ${toY}` : `C${x} ${middle} ${toX} ${middle} ${toX} ${toY}`;
  }
  return path;
}

function drawBox(scene, id, look, [width, height], [x, y]) {
  const box = element("g", { class: `box ${look.kind}${look.mark ? " bad" : ""}`, tabindex: 0, role: "button" }, scene);
  element("title", {}, box, detailsOf(id));
  if (look.kind === "group") element("rect", { x: x - width / 2 + 4, y: y - height / 2 + 4, width, height, rx: 7 }, box);
  element("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: look.kind === "leaf" ? 12 : 7 }, box);
  element("text", { class: "title", x, y: y - height / 2 + 19 }, box, look.title);
  look.lines.forEach((line, i) => element("text", { class: "line", x, y: y - height / 2 + 33 + 14 * i }, box, line));
  box.addEventListener("click", () => select(id));
  box.addEventListener("dblclick", () => id < 0 && unfold(-id));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    select(id);
    if (id < 0) unfold(-id);
  });
  drawn.set(id, { box, x, y });
}

// --- folding ---

function unfold(group) {
  if (shown.length + sizeOf(group) > MOST_BOXES) {
    status.textContent = `too many boxes to draw (at most ${MOST_BOXES}): fold something first`;
    return;
  }
  const before = drawn.get(-group);
  open.add(group);
  selected = -group;
  draw();
  const first = children[group].nodes[0];
  keepInPlace(before, drawn.get(first === undefined ? -children[group].groups[0] : standsFor(first)));
}

function fold(group) {
  open.delete(group);
  selected = -group;
  draw();
  reveal(-group);
}

// --- looking ---

function apply() {
  document.getElementById("scene").setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
}

function fit() {
  const { width, height } = canvas.getBoundingClientRect();
  view.scale = Math.min(1.4, Math.max(0.02, Math.min((width - 40) / extent.width, (height - 40) / extent.height)));
  // A long graph is shown from its loss, at a size that can be read.
  if (view.scale < 0.35) view.scale = Math.min(0.8, Math.max(0.35, (width - 40) / extent.width));
  const middle = extent.width * view.scale > width ? drawn.get(shown[0]).x : extent.width / 2;
  view.x = width / 2 - middle * view.scale;
  view.y = Math.max(20, (height - extent.height * view.scale) / 2);
  apply();
}

function reveal(id) {
  const at = drawn.get(id);
  if (!at) return;
  const { width, height } = canvas.getBoundingClientRect();
  view.x = width / 2 - at.x * view.scale;
  view.y = height / 2 - at.y * view.scale;
  apply();
}

function keepInPlace(before, after) {
  if (!before || !after) return;
  view.x += (before.x - after.x) * view.scale;
  view.y += (before.y - after.y) * view.scale;
  apply();
}

function zoom(factor, x, y) {
  const scale = Math.min(4, Math.max(0.02, view.scale * factor));
  view.x = x - ((x - view.x) * scale) / view.scale;
  view.y = y - ((y - view.y) * scale) / view.scale;
  view.scale = scale;
  apply();
}

function zoomMiddle(factor) {
  const { width, height } = canvas.getBoundingClientRect();
  zoom(factor, width / 2, height / 2);
}

// --- selection ---

function detailsOf(id) {
  return id < 0 ? texts[groups[-id][2]] : `node ${id - 1}\n${texts[nodes[id - 1][5]]}`;
}

function button(label, action, parent) {
  const made = document.createElement("button");
  made.textContent = label;
  made.addEventListener("click", action);
  parent.appendChild(made);
}

function select(id) {
  selected = id;
  const heading = document.createElement("h2"), buttons = document.createElement("div");
  const details = document.createElement("pre");
  heading.textContent = describe(id).title;
  buttons.className = "buttons";
  details.textContent = detailsOf(id);
  if (id < 0 && !open.has(-id)) button("Unfold", () => unfold(-id), buttons);
  else if (id < 0) button("Fold", () => fold(-id), buttons);
  const around = id < 0 ? ancestors(-id).slice(0, -1) : ancestors(nodes[id - 1][2]);
  for (const group of around) if (open.has(group)) button(`Fold ${texts[groups[group][0]]}`, () => fold(group), buttons);
  aside.replaceChildren(heading, buttons, details);
  mark();
}

function mark() {
  const found = new Set(hits.map(standsFor));
  for (const [id, { box }] of drawn) {
    box.classList.toggle("selected", id === selected);
    box.classList.toggle("hit", found.has(id));
  }
  for (const line of document.querySelectorAll(".arrow")) {
    line.classList.toggle("near", selected !== null && [line.dataset.source, line.dataset.target].includes(String(selected)));
  }
}

// --- search ---

const haystack = nodes.map(([title, , group, , , details]) =>
  [title, details, ...ancestors(group).map((at) => groups[at][0])].map((at) => texts[at]).join("\n").toLowerCase());

function find() {
  const wanted = search.value.trim().toLowerCase();
  hits = [];
  hit = -1;
  if (wanted) haystack.forEach((text, node) => text.includes(wanted) && hits.push(node));
  status.textContent = wanted ? `${hits.length.toLocaleString()} found; Enter goes from one to the next` : "";
  mark();
}

function next(step) {
  if (!hits.length) return;
  hit = (hit + step + hits.length) % hits.length;
  const node = hits[hit], around = ancestors(nodes[node][2]);
  if (around.some((group) => !open.has(group))) {
    let count = shown.length;
    for (const group of around) if (!open.has(group)) count += sizeOf(group);
    if (count <= MOST_BOXES) around.forEach((group) => open.add(group));
    draw();
  }
  select(standsFor(node));
  reveal(standsFor(node));
  status.textContent = `${hit + 1} of ${hits.length.toLocaleString()}`;
}

// --- events ---

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const { left, top } = canvas.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - left, event.clientY - top);
}, { passive: false });
canvas.addEventListener("pointerdown", (event) => {
  const start = { x: event.clientX - view.x, y: event.clientY - view.y };
  const move = (now) => {
    canvas.classList.add("dragging");
    view.x = now.clientX - start.x;
    view.y = now.clientY - start.y;
    apply();
  };
  const end = () => {
    canvas.classList.remove("dragging");
    window.removeEventListener("pointermove", move);
  };
  window.addEventListener("pointermove", move);
  window.addEventListener("pointerup", end, { once: true });
});
search.addEventListener("input", find);
search.addEventListener("keydown", (event) => event.key === "Enter" && next(event.shiftKey ? -1 : 1));
document.addEventListener("keydown", (event) => {
  if (event.target === search) return;
  if (event.key === "/") {
    event.preventDefault();
    search.focus();
  } else if (event.key === "+" || event.key === "=") zoomMiddle(1.25);
  else if (event.key === "-") zoomMiddle(0.8);
  else if (event.key === "0") fit();
});
document.getElementById("fit").addEventListener("click", fit);
document.getElementById("fold").addEventListener("click", () => {
  open.clear();
  open.add(0);
  draw();
  fit();
});
document.getElementById("unfold").addEventListener("click", () => {
  if (nodes.length > MOST_BOXES) {
    status.textContent = `too many nodes to draw at once (at most ${MOST_BOXES}): unfold what you want to see`;
    return;
  }
  groups.forEach((_, group) => open.add(group));
  draw();
  fit();
});

openUntilFull();
draw();
fit();
