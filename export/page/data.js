"use strict";
// The data and the trees made of it. Nothing here touches the page.

const data = JSON.parse(document.getElementById("data").textContent);
const GAP = data.classes.indexOf("gap");
const METRICS = [["samples", "Samples"], ["wall", "Wall time"], ["cpu", "CPU time"]];

const symbols = data.symbols.map(([name, module, c]) => ({ name, module: data.modules[module], cls: c & 7, doubtful: (c & 8) !== 0 }));

// base is the tree of the whole recording: node 0 is the root, parents stand
// before their children.
const base = (() => {
  const n = data.nodes.length + 1;
  const parent = new Int32Array(n), symbol = new Int32Array(n);
  parent[0] = symbol[0] = -1;
  for (let i = 1; i < n; i++) {
    parent[i] = i - data.parents[i - 1];
    symbol[i] = data.nodes[i - 1];
  }
  return { n, parent, symbol };
})();

// nameRank gives each symbol its place in alphabetical order.
const nameRank = (() => {
  const order = symbols.map((_, i) => i).sort((a, b) => symbols[a].name < symbols[b].name ? -1 : symbols[a].name > symbols[b].name ? 1 : a - b);
  const rank = new Int32Array(symbols.length);
  order.forEach((s, i) => { rank[s] = i; });
  return rank;
})();

// selfOf adds up one metric per node over a thread, or over all (-1).
function selfOf(thread, metric) {
  const self = new Float64Array(base.n);
  data.stacks.forEach((row, t) => {
    if (thread >= 0 && thread !== t) return;
    for (let i = 0; i < row.length; i += 4) self[row[i]] += row[i + 1 + metric];
  });
  return self;
}

// sumUp makes totals out of a tree's own values.
function sumUp(parent, n, self) {
  const total = Float64Array.from(self.subarray(0, n));
  for (let i = n - 1; i > 0; i--) total[parent[i]] += total[i];
  return total;
}

// buildTree returns the tree of one thread (-1 = all) in one metric, without
// the frames of hidden classes: their callees move up to their callers.
function buildTree({ thread, metric, hidden, order }) {
  const weight = selfOf(thread, metric), count = metric === 0 ? weight : selfOf(thread, 0);
  const seen = sumUp(base.parent, base.n, count), heavy = metric === 0 ? seen : sumUp(base.parent, base.n, weight);
  const parent = new Int32Array(base.n), symbol = new Int32Array(base.n), depth = new Int32Array(base.n);
  const self = new Float64Array(base.n), selfCount = new Float64Array(base.n), to = new Int32Array(base.n);
  const index = new Map(), width = symbols.length + 1;
  parent[0] = symbol[0] = -1;
  let n = 1;
  for (let i = 0; i < base.n; i++) {
    let at = 0;
    if (i > 0) {
      at = to[base.parent[i]];
      const s = base.symbol[i];
      if (seen[i] === 0 && heavy[i] === 0) { to[i] = at; continue; }
      if (!hidden.has(symbols[s].cls)) {
        const key = at * width + s; // without hidden frames every node is its own, and the index would cost time only
        let next = hidden.size === 0 ? undefined : index.get(key);
        if (next === undefined) {
          next = n++;
          if (hidden.size > 0) index.set(key, next);
          parent[next] = at; symbol[next] = s; depth[next] = depth[at] + 1;
        }
        at = next;
      }
    }
    to[i] = at;
    self[at] += weight[i];
    selfCount[at] += count[i];
  }
  const tree = { n, parent, symbol, depth, self, metric, total: sumUp(parent, n, self), count: sumUp(parent, n, selfCount) };
  place(tree, order);
  return tree;
}

// place sorts children and gives each node its left edge, in the metric's unit.
function place(tree, order) {
  const { n, parent, total, symbol } = tree;
  const first = new Int32Array(n + 1), child = new Int32Array(Math.max(0, n - 1)), x = new Float64Array(n);
  for (let i = 1; i < n; i++) first[parent[i] + 1]++;
  for (let i = 0; i < n; i++) first[i + 1] += first[i];
  const fill = first.slice(0, n);
  for (let i = 1; i < n; i++) child[fill[parent[i]]++] = i;
  const byName = (a, b) => nameRank[symbol[a]] - nameRank[symbol[b]];
  const compare = order === "name" ? byName : (a, b) => total[b] - total[a] || byName(a, b);
  for (let i = 0; i < n; i++) {
    if (first[i + 1] - first[i] > 1) child.subarray(first[i], first[i + 1]).sort(compare);
    let at = x[i];
    for (let j = first[i]; j < first[i + 1]; j++) { x[child[j]] = at; at += total[child[j]]; }
  }
  Object.assign(tree, { first, child, x });
}

// pathOf lists the nodes from the root to i.
function pathOf(tree, i) {
  const path = [];
  for (; i >= 0; i = tree.parent[i]) path.push(i);
  return path.reverse();
}

// follow finds the node that a path of symbols leads to, as far as it goes.
function follow(tree, path) {
  let at = 0;
  for (const s of path) {
    let next = -1;
    for (let j = tree.first[at]; j < tree.first[at + 1]; j++) if (tree.symbol[tree.child[j]] === s) next = tree.child[j];
    if (next >= 0) at = next;
  }
  return at;
}

// matchedWeight adds up the outermost matching nodes below i, so that nothing
// counts twice.
function matchedWeight(tree, i, matches) {
  let sum = 0;
  const stack = [i];
  while (stack.length > 0) {
    const at = stack.pop();
    if (at > 0 && matches[tree.symbol[at]]) { sum += tree.total[at]; continue; }
    for (let j = tree.first[at]; j < tree.first[at + 1]; j++) stack.push(tree.child[j]);
  }
  return sum;
}

// classShares gives each class its part of the leaves, and gaps the part of the
// stacks that have any, before a class is hidden.
function classShares(thread, metric) {
  const self = selfOf(thread, metric), shares = new Array(data.classes.length).fill(0), broken = new Uint8Array(base.n);
  let all = 0;
  for (let i = 1; i < base.n; i++) {
    const c = symbols[base.symbol[i]].cls;
    broken[i] = c === GAP || broken[base.parent[i]] ? 1 : 0;
    if (broken[i]) shares[GAP] += self[i];
    if (c !== GAP) shares[c] += self[i];
    all += self[i];
  }
  return shares.map(s => all > 0 ? s / all : 0);
}

function formatValue(v, metric) {
  if (metric === 0) return v.toLocaleString("en-US");
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (v >= size) return (v / size).toLocaleString("en-US", { maximumFractionDigits: v >= 100 * size ? 0 : 2 }) + " " + unit;
  }
  return v + " ns";
}

function formatPercent(part, whole) {
  if (!(whole > 0)) return "-";
  const p = 100 * part / whole;
  return p > 0 && p < 0.01 ? "<0.01 %" : p.toFixed(2) + " %";
}

// shorten fits a name into n characters: first without arguments, then
// without leading namespaces, then cut.
function shorten(name, n) {
  if (name.length <= n) return name;
  if (n < 2) return "";
  if (name[0] !== "[") {
    const paren = name.indexOf("(");
    if (paren > 0) name = name.slice(0, paren);
    while (name.length > n) {
      const rest = dropSegment(name);
      if (rest === "") break;
      name = rest;
    }
  }
  return name.length <= n ? name : name.slice(0, n - 1) + "…";
}

// dropSegment takes away what stands before the first '.', '::' or '!'
// outside of angle brackets; "" if there is none or nothing would be left.
function dropSegment(name) {
  let level = 0;
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    if (c === "<") level++;
    else if (c === ">") level--;
    else if (level === 0 && i > 0 && (c === "." || c === "!" || c === ":" && name[i + 1] === ":")) {
      return name.slice(i + (c === ":" ? 2 : 1));
    }
  }
  return "";
}
