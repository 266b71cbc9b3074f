"use strict";

// A layered drawing, by the same steps as gradscope/inspect/export/layout.py: layers, bends, order, places.

const GAP = 22, LANE = 12, LAYER_GAP = 40, SWEEPS = 10, MOST_BENDS = 8000;

function mean(values, otherwise) {
  if (!values.length) return otherwise;
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}

// Arrows that close a cycle are turned round, so that all point down.
function withoutCycles(count, arrows) {
  const targets = Array.from({ length: count }, () => []);
  for (const [source, target] of arrows) targets[source].push(target);
  const entered = new Uint8Array(count), left = new Uint8Array(count), turned = new Set();
  for (let start = 0; start < count; start++) {
    if (entered[start]) continue;
    entered[start] = 1;
    const stack = [[start, 0]];
    while (stack.length) {
      const top = stack[stack.length - 1];
      if (top[1] === targets[top[0]].length) {
        left[top[0]] = 1;
        stack.pop();
        continue;
      }
      const child = targets[top[0]][top[1]++];
      if (!entered[child]) {
        entered[child] = 1;
        stack.push([child, 0]);
      } else if (!left[child]) turned.add(top[0] + " " + child);
    }
  }
  return arrows
    .filter(([source, target]) => source !== target)
    .map(([source, target]) => (turned.has(source + " " + target) ? [target, source] : [source, target]));
}

function layersOf(count, arrows) {
  const targets = Array.from({ length: count }, () => []), waiting = new Int32Array(count), layers = new Array(count).fill(0);
  for (const [source, target] of arrows) {
    targets[source].push(target);
    waiting[target]++;
  }
  const sources = [];
  for (let node = 0; node < count; node++) if (!waiting[node]) sources.push(node);
  const order = [...sources];
  for (let i = 0; i < order.length; i++) {
    for (const child of targets[order[i]]) {
      layers[child] = Math.max(layers[child], layers[order[i]] + 1);
      if (!--waiting[child]) order.push(child);
    }
  }
  for (const node of sources) {
    if (targets[node].length) layers[node] = Math.min(...targets[node].map((child) => layers[child])) - 1;
  }
  return layers;
}

class Rows {
  constructor(sizes, layers, arrows) {
    this.boxes = sizes.length;
    this.widths = sizes.map((size) => size[0]);
    this.layer = [...layers];
    this.bends = new Map();
    let room = MOST_BENDS;
    const segments = new Set();
    this.straight = new Set();
    for (const [source, target] of arrows) {
      room -= layers[target] - layers[source] - 1;
      if (room < 0) this.straight.add(target);
    }
    for (const [source, target] of arrows) {
      const route = this.route(source, target);
      if (route.length === 2 && layers[target] !== layers[source] + 1) continue;
      for (let i = 1; i < route.length; i++) segments.add(route[i - 1] * 1e6 + route[i]);
    }
    this.up = this.layer.map(() => []);
    this.down = this.layer.map(() => []);
    for (const segment of segments) {
      const source = Math.floor(segment / 1e6), target = segment % 1e6;
      this.down[source].push(target);
      this.up[target].push(source);
    }
    this.weights = this.layer.map((_, node) => {
      if (node >= this.boxes) return 8;
      return this.down[node].length && this.up[node].length ? 4 : 0.5;
    });
    this.rows = Array.from({ length: this.layer.reduce((a, b) => Math.max(a, b), 0) + 1 }, () => []);
    for (const node of this.firstOrder()) this.rows[this.layer[node]].push(node);
  }

  route(source, target) {
    const route = [source];
    if (!this.straight.has(target)) {
      for (let layer = this.layer[source] + 1; layer < this.layer[target]; layer++) {
        const key = target + " " + layer;
        if (!this.bends.has(key)) {
          this.bends.set(key, this.layer.length);
          this.layer.push(layer);
          this.widths.push(0);
        }
        route.push(this.bends.get(key));
      }
    }
    route.push(target);
    return route;
  }

  firstOrder() {
    const seen = new Uint8Array(this.layer.length), order = [];
    const starts = this.layer.map((_, node) => node).filter((node) => !this.up[node].length);
    starts.sort((a, b) => this.layer[a] - this.layer[b]);
    for (const start of [...starts, ...this.layer.keys()]) {
      const stack = [start];
      while (stack.length) {
        const node = stack.pop();
        if (seen[node]) continue;
        seen[node] = 1;
        order.push(node);
        for (let i = this.down[node].length - 1; i >= 0; i--) stack.push(this.down[node][i]);
      }
    }
    return order;
  }

  crossings() {
    let total = 0;
    for (let i = 0; i + 1 < this.rows.length; i++) {
      const place = new Map(this.rows[i + 1].map((node, at) => [node, at]));
      const seen = [];
      for (const node of this.rows[i]) {
        const ends = this.down[node].map((child) => place.get(child));
        for (const end of ends) for (const before of seen) total += before > end;
        seen.push(...ends);
      }
    }
    return total;
  }

  order() {
    let best = this.rows.map((row) => [...row]), fewest = this.crossings();
    for (let sweep = 0; sweep < SWEEPS && fewest; sweep++) {
      const downwards = sweep % 2 === 0, neighbours = downwards ? this.up : this.down;
      const rows = downwards ? this.rows : [...this.rows].reverse();
      const place = new Map();
      for (const row of rows) {
        const wish = new Map(row.map((node, at) => [node, mean(neighbours[node].map((n) => place.get(n)), at)]));
        row.sort((a, b) => wish.get(a) - wish.get(b));
        row.forEach((node, at) => place.set(node, at));
      }
      const crossings = this.crossings();
      if (crossings < fewest) {
        fewest = crossings;
        best = this.rows.map((row) => [...row]);
      }
    }
    this.rows = best;
  }

  middle(neighbours, x, node) {
    let sum = 0, total = 0;
    for (const n of neighbours) {
      sum += x[n] * this.weights[n];
      total += this.weights[n];
    }
    return total ? sum / total : x[node];
  }

  // Isotonic regression: the places nearest to the wishes that keep order and gaps.
  settle(row, wishes, x) {
    const offsets = [], pools = [];
    let offset = 0;
    row.forEach((node, i) => {
      if (i) {
        const before = row[i - 1];
        offset += (this.widths[before] + this.widths[node]) / 2 + (node < this.boxes && before < this.boxes ? GAP : LANE);
      }
      offsets.push(offset);
      let pool = [wishes[i] - offset, this.weights[node], 1];
      while (pools.length && pools[pools.length - 1][0] > pool[0]) {
        const [other, heavy, more] = pools.pop();
        pool = [(pool[0] * pool[1] + other * heavy) / (pool[1] + heavy), pool[1] + heavy, pool[2] + more];
      }
      pools.push(pool);
    });
    let i = 0;
    for (const [value, , count] of pools) for (let n = 0; n < count; n++, i++) x[row[i]] = value + offsets[i];
  }

  place() {
    const x = new Array(this.layer.length).fill(0);
    for (const row of this.rows) this.settle(row, row.map(() => 0), x);
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      const downwards = sweep % 2 === 0;
      const [near, far] = downwards ? [this.up, this.down] : [this.down, this.up];
      for (const row of downwards ? this.rows : [...this.rows].reverse()) {
        this.settle(row, row.map((node) => this.middle(near[node].length ? near[node] : far[node], x, node)), x);
      }
    }
    for (const row of this.rows) {
      this.settle(row, row.map((node) => this.middle([...this.up[node], ...this.down[node]], x, node)), x);
    }
    return x;
  }
}

function ports(arrows, centres, sizes, near, far) {
  const places = new Array(arrows.length).fill(0), ends = new Map();
  arrows.forEach((arrow, number) => {
    if (!ends.has(arrow[near])) ends.set(arrow[near], []);
    ends.get(arrow[near]).push(number);
  });
  for (const [box, numbers] of ends) {
    numbers.sort((a, b) => centres[arrows[a][far]][0] - centres[arrows[b][far]][0]);
    const step = Math.min(14, (sizes[box][0] * 0.7) / numbers.length);
    numbers.forEach((number, i) => (places[number] = centres[box][0] + step * (i - (numbers.length - 1) / 2)));
  }
  return places;
}

// sizes: [width, height] of each box; arrows: [source, target]. Returns centres, routes of points, and the extent.
function layOut(sizes, arrows) {
  if (!sizes.length) return { boxes: [], routes: [], width: 0, height: 0 };
  const forward = withoutCycles(sizes.length, arrows), layers = layersOf(sizes.length, forward);
  const rows = new Rows(sizes, layers, forward);
  rows.order();
  const x = rows.place();
  let left = Infinity, right = -Infinity, y = 0;
  x.forEach((at, node) => {
    left = Math.min(left, at - rows.widths[node] / 2);
    right = Math.max(right, at + rows.widths[node] / 2);
  });
  const tops = [], heights = [];
  for (const row of rows.rows) {
    const height = row.reduce((most, node) => Math.max(most, node < rows.boxes ? sizes[node][1] : 0), 0);
    tops.push(y);
    heights.push(height);
    y += height + LAYER_GAP;
  }
  const boxes = sizes.map((_, node) => [x[node] - left, tops[layers[node]] + heights[layers[node]] / 2]);
  const leaving = ports(arrows, boxes, sizes, 0, 1), arriving = ports(arrows, boxes, sizes, 1, 0);
  const routes = arrows.map(([source, target], number) => {
    const points = [[leaving[number], boxes[source][1] + sizes[source][1] / 2]];
    if (layers[target] > layers[source]) {
      for (const node of rows.route(source, target).slice(1, -1)) {
        const layer = rows.layer[node];
        points.push([x[node] - left, tops[layer]], [x[node] - left, tops[layer] + heights[layer]]);
      }
    }
    points.push([arriving[number], boxes[target][1] - sizes[target][1] / 2]);
    return points;
  });
  return { boxes, routes, width: right - left, height: y - LAYER_GAP };
}
