"use strict";
// The data and the trees made of it. Nothing here touches the page.

const data = JSON.parse(document.getElementById("data").textContent);
const GAP = data.classes.indexOf("gap");
const ASYNC = data.classes.indexOf("async"), RESUMER = data.classes.indexOf("resumer");
const METRICS = data.metrics; // name, label, unit, which of them says how many
const STRIDE = 1 + METRICS.length;

const symbols = data.symbols.map(([name, module, c]) => ({ name, module: data.modules[module], cls: c & 15, doubtful: (c & 16) !== 0 }));

const HAS_ASYNC = symbols.some(s => s.cls === ASYNC);

// base is the tree of the whole recording: node 0 is the root, parents precede their children. row
// is what a frame of a run of nameless frames shows when it is folded: the symbol of the run, or
// ABSORBED if another frame shows the run. Other frames have SELF.
const SELF = -2, ABSORBED = -1, RUNS = data.runs || [];
const base = (() => {
  const n = data.nodes.length + 1;
  const parent = new Int32Array(n), symbol = new Int32Array(n), row = new Int32Array(n).fill(SELF);
  parent[0] = symbol[0] = -1;
  for (let i = 1; i < n; i++) {
    const s = data.nodes[i - 1];
    parent[i] = i - data.parents[i - 1];
    [symbol[i], row[i]] = s < 0 ? RUNS[-1 - s] : [s, SELF];
  }
  return { n, parent, symbol, row };
})();
for (const [, row] of RUNS) if (row >= 0) symbols[row].note = "frames of the runtime without names, folded into one; f shows each of them";

// nameRank gives each symbol its place in alphabetical order. Folding adds symbols, and
// then the ranks are computed again.
let nameRank = new Int32Array(0);
function rankNames() {
  if (nameRank.length === symbols.length) return;
  const order = symbols.map((_, i) => i).sort((a, b) => symbols[a].name < symbols[b].name ? -1 : symbols[a].name > symbols[b].name ? 1 : a - b);
  nameRank = new Int32Array(symbols.length);
  order.forEach((s, i) => { nameRank[s] = i; });
}

// DIFF holds the comparison of two recordings, see page/diff.js; null in the page of one.
const DIFF = data.diff || null, AFTER = -1, BEFORE = -2;

// eachValue calls f with the node, the category, the value in one metric, and the place in the source of
// each stack of a thread, or of all (-1). In a comparison -1 is the recording after, and -2 the one before.
function eachValue(thread, metric, f) {
  if (span) { eachInSpan(thread, metric, f); return; }
  data.stacks.forEach((row, t) => {
    if (thread >= 0 && thread !== t || DIFF && (t < DIFF.split ? AFTER : BEFORE) === thread) return;
    const kinds = data.kinds[t], places = data.places[t];
    for (let i = 0, k = 0; i < row.length; i += STRIDE, k++) f(row[i], kinds[k], row[i + 1 + metric], places[k]);
  });
}

// selfOf adds up one metric per node over the stacks of the chosen category.
function selfOf(thread, metric) {
  const self = new Float64Array(base.n), only = state.category;
  eachValue(thread, metric, (node, category, value) => { if (only < 0 || category === only) self[node] += value; });
  return self;
}

// categorySums adds up one metric over the stacks of each category.
function categorySums(thread, metric) {
  const sums = data.categories.map(() => 0);
  eachValue(thread, metric, (_, category, value) => { sums[category] += value; });
  return sums;
}

// valuesOf returns the values of the nodes: the metric, and how many there are. In a comparison
// the same of the other recording follows. Times of the recording after are divided by the scale.
function valuesOf(thread, metric) {
  const counts = METRICS[metric][3];
  return (DIFF ? [thread, thread === AFTER ? BEFORE : AFTER] : [thread]).flatMap(t => {
    const count = selfOf(t, counts), weight = metric === counts && !DIFF ? count : selfOf(t, metric);
    return [DIFF && t === AFTER ? weight.map(v => v / DIFF.scale) : weight, count];
  });
}

// sumUp makes totals out of a tree's own values.
function sumUp(parent, n, self) {
  const total = Float64Array.from(self.subarray(0, n));
  for (let i = n - 1; i > 0; i--) total[parent[i]] += total[i];
  return total;
}

// Grower adds nodes to a tree, those of one symbol below one node once if it must merge.
class Grower {
  constructor(room, merge) {
    this.parent = new Int32Array(room); this.symbol = new Int32Array(room); this.depth = new Int32Array(room);
    this.parent[0] = this.symbol[0] = -1;
    this.n = 1;
    this.index = merge ? new Map() : null;
    this.width = symbols.length + 1;
  }

  // room returns so many values for each node.
  room(values) { return Array.from({ length: values }, () => new Float64Array(this.parent.length)); }

  child(at, s) {
    const key = at * this.width + s;
    let next = this.index ? this.index.get(key) : undefined;
    if (next !== undefined) return next;
    next = this.n++;
    if (this.index) this.index.set(key, next);
    this.parent[next] = at; this.symbol[next] = s; this.depth[next] = this.depth[at] + 1;
    return next;
  }
}

// buildTree returns the tree of one thread (-1 = all) in one metric, without the frames
// of hidden classes: their callees move up to their callers. With fold, the frames that start
// a thread become one frame, and so does a run of nameless frames. The frames that start an async method
// disappear. Waiting stacks are below one frame.
function buildTree({ thread, metric, hidden, order, fold }) {
  const values = valuesOf(thread, metric), sums = values.map(v => sumUp(base.parent, base.n, v)), count = values[1];
  const { start, helps, site } = fold ? folds() : {};
  const grow = new Grower(base.n + (fold ? symbols.length + 1 : 0), fold || hidden.size > 0 || RUNS.length > 0 && base.n <= MAX_FOLDED);
  const own = grow.room(values.length), to = new Int32Array(base.n), leaf = new Int32Array(base.n);
  for (let i = 0; i < base.n; i++) {
    const s = base.symbol[i];
    let at = i > 0 ? to[base.parent[i]] : 0;
    to[i] = at;
    if (i > 0 && sums.every(v => v[i] === 0)) continue;
    if (i > 0 && !hidden.has(symbols[s].cls)) {
      if (!fold || !start[i] && !helps[i] && base.row[i] === SELF) at = grow.child(at, s);
      else if (!start[i] && base.row[i] >= 0) at = grow.child(at, base.row[i]);
      else if (start[i] && grow.symbol[at] !== START) at = grow.child(at, START);
    }
    to[i] = at;
    if (fold && site[i] >= 0 && (count[i] > 0 || DIFF && values[3][i] > 0)) at = grow.child(grow.child(0, WAITING), site[i]);
    leaf[i] = at;
    own.forEach((v, k) => { v[at] += values[k][i]; });
  }
  return Object.assign(finish(grow, own, metric, order), { leaf });
}

// finish sums a grown tree up and lays it out.
function finish(grow, own, metric, order) {
  const { n, parent, symbol, depth } = grow;
  return place({ n, parent, symbol, depth, metric, own, sums: own.map(v => sumUp(parent, n, v)) }, order);
}

// empty is whether nothing was measured in a node.
function empty(tree, i) { return tree.sums.every(v => !(v[i] > 0)); }

// sandwich returns one tree of both: a symbol at the root's only child, who called it
// (side -1) and whom it called (side 1) as that node's children.
function sandwich(tree, s, order) {
  const up = invert(tree, s, order), down = callees(tree, s, order), n = up.n + Math.max(0, down.n - 2);
  const joined = { n, metric: tree.metric, side: new Int8Array(n) };
  const join = (a, b, both) => { both.set(a.subarray(0, up.n)); both.set(b.subarray(2, down.n), up.n); return both; };
  for (const key of ["parent", "symbol", "depth"]) joined[key] = join(up[key], down[key], new Int32Array(n));
  joined.sums = up.sums.map((v, k) => join(v, down.sums[k], new Float64Array(n)));
  joined.own = down.own.map(v => join(new Float64Array(up.n), v, new Float64Array(n)));
  for (let i = 2; i < n; i++) joined.side[i] = i < up.n ? -1 : 1;
  for (let i = up.n; i < n; i++) if (joined.parent[i] > 1) joined.parent[i] += up.n - 2;
  if (n > 1) joined.own.forEach((v, k) => { v[1] = down.own[k][1]; });
  return place(joined, order);
}

// callees returns the tree of what a symbol calls, the symbol at the root's only child.
// What a recursion calls stands below it, where it was called.
function callees(tree, s, order) {
  const grow = new Grower(tree.n + 1, true), own = grow.room(tree.own.length), to = new Int32Array(tree.n);
  for (let i = 1; i < tree.n; i++) { // parents stand before their children
    if (empty(tree, i)) continue;
    const up = to[tree.parent[i]];
    if (up === 0 && tree.symbol[i] !== s) continue;
    const at = to[i] = grow.child(up, tree.symbol[i]);
    own.forEach((v, k) => { v[at] += tree.own[k][i]; });
  }
  return finish(grow, own, tree.metric, order);
}

// invert returns the tree of the callers of a symbol: the symbol at the root's only
// child, and above each node who called it. Of a recursion the outermost call counts.
function invert(tree, s, order) {
  const outer = [];
  let room = 2;
  const inside = new Uint8Array(tree.n);
  for (let i = 1; i < tree.n; i++) {
    const up = inside[tree.parent[i]];
    inside[i] = up || tree.symbol[i] === s ? 1 : 0;
    if (!up && tree.symbol[i] === s && !empty(tree, i)) { outer.push(i); room += tree.depth[i]; }
  }
  const grow = new Grower(room, true), own = grow.room(tree.own.length);
  for (const i of outer) {
    let at = 0;
    for (let j = i; j > 0; j = tree.parent[j]) at = grow.child(at, tree.symbol[j]);
    own.forEach((v, k) => { v[at] += tree.sums[k][i]; });
  }
  return finish(grow, own, tree.metric, order);
}

// MAX_INVERTED bounds the nodes of an inverted tree. If all callers of all leaves might be more,
// those of a light leaf are one node.
const MAX_INVERTED = 2e6, LIGHT = 1 / 20000;

// invertAll returns the tree from the leaves: what runs is at the root, and above each node who
// called it. A node's total is the time of the stacks that begin with it and its callees.
function invertAll(tree, order, room = MAX_INVERTED) {
  const leaves = [], add = (at, i) => own.forEach((v, k) => { v[at] += tree.own[k][i]; });
  let steps = 1;
  for (let i = 1; i < tree.n; i++) if (tree.own.some(v => v[i] > 0)) { leaves.push(i); steps += tree.depth[i]; }
  const most = Math.min(steps, room), grow = new Grower(most + 2 * leaves.length, false);
  const own = grow.room(tree.own.length);
  const entries = Int32Array.from(leaves), cursor = Int32Array.from({ length: tree.n }, (_, i) => i); // of a leaf, its caller to add next
  const queue = [[0, 0, leaves.length]]; // a node, and its part of entries
  for (let k = 0; k < queue.length; k++) { // parents stand before their children
    const [at, from, to] = queue[k], part = entries.subarray(from, to);
    const symbol = i => cursor[i] === 0 ? -1 : tree.symbol[cursor[i]];
    if (to - from > 1) part.sort((a, b) => symbol(a) - symbol(b));
    const heavy = steps <= room || part.reduce((sum, i) => sum + tree.self[i], 0) >= LIGHT * tree.total[0] && grow.n < most;
    for (let i = from, end; i < to; i = end) {
      const s = symbol(entries[i]);
      for (end = i; end < to && symbol(entries[end]) === s;) end++;
      if (s < 0) { for (let j = i; j < end; j++) add(at, entries[j]); continue; } // outermost
      if (!heavy) { const rest = grow.child(at, MORE); for (let j = i; j < to; j++) add(rest, entries[j]); break; }
      const next = grow.child(at, s);
      for (let j = i; j < end; j++) cursor[entries[j]] = tree.parent[cursor[entries[j]]];
      queue.push([next, i, end]);
    }
  }
  return Object.assign(finish(grow, own, tree.metric, order), { inverted: true });
}

// functions lists every symbol with its own weight and its total, in which a recursion
// counts once, heaviest first.
function functions(tree) {
  const rows = new Map(), open = new Map(), inside = new Uint8Array(tree.n);
  const stack = [[0, false]];
  while (stack.length > 0) { // a symbol is open while one of its calls is on the way from the root
    const [i, left] = stack.pop(), s = tree.symbol[i];
    if (left) { open.set(s, open.get(s) - 1); continue; }
    if (i > 0) {
      inside[i] = (open.get(s) || 0) > 0 ? 1 : 0;
      const row = rows.get(s) || { symbol: s, self: 0, total: 0, selfCount: 0, totalCount: 0 };
      row.self += tree.self[i];
      row.selfCount += tree.selfCount[i];
      if (!inside[i]) { row.total += tree.total[i]; row.totalCount += tree.count[i]; }
      rows.set(s, row);
      open.set(s, (open.get(s) || 0) + 1);
      stack.push([i, true]);
    }
    for (let j = tree.first[i]; j < tree.first[i + 1]; j++) stack.push([tree.child[j], false]);
  }
  return [...rows.values()].filter(r => r.total > 0);
}

// place sorts children and gives each node its left edge, in the metric's unit.
function place(tree, order) {
  [tree.self, tree.selfCount] = tree.own;
  [tree.total, tree.count] = tree.sums;
  const { n, parent, total, symbol } = tree;
  rankNames();
  const first = new Int32Array(n + 1), child = new Int32Array(Math.max(0, n - 1)), x = new Float64Array(n);
  for (let i = 1; i < n; i++) first[parent[i] + 1]++;
  for (let i = 0; i < n; i++) first[i + 1] += first[i];
  const fill = first.slice(0, n);
  for (let i = 1; i < n; i++) child[fill[parent[i]]++] = i;
  const byName = (a, b) => nameRank[symbol[a]] - nameRank[symbol[b]];
  const within = order === "name" ? byName : (a, b) => total[b] - total[a] || byName(a, b), { side } = tree;
  const compare = side ? (a, b) => side[a] - side[b] || within(a, b) : within;
  for (let i = 0; i < n; i++) {
    if (first[i + 1] - first[i] > 1) child.subarray(first[i], first[i + 1]).sort(compare);
    let at = x[i];
    for (let j = first[i]; j < first[i + 1]; j++) {
      if (side && j > first[i] && side[child[j]] !== side[child[j - 1]]) at = x[i]; // callees begin where callers do
      x[child[j]] = at;
      at += total[child[j]];
    }
  }
  return Object.assign(tree, { first, child, x });
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

// matched adds up the outermost matching nodes below i, so that nothing counts twice: in
// the tree's metric, in samples, and how many matching nodes there are in all. Of a
// tree with two sides the other one is left out.
function matched(tree, i, matches, side) {
  const sum = { weight: 0, samples: 0, calls: 0 }, under = new Uint8Array(tree.n), inside = new Uint8Array(tree.n);
  for (let j = i; j < tree.n; j++) { // parents stand before their children
    const up = tree.parent[j];
    if (j !== i && !(up >= i && under[up]) || side && tree.side[j] === -side) continue;
    under[j] = 1;
    const hit = j > 0 && matches[tree.symbol[j]] && (tree.total[j] > 0 || tree.count[j] > 0), open = j !== i && inside[up];
    if (hit) sum.calls++;
    if (hit && !open) { sum.weight += tree.total[j]; sum.samples += tree.count[j]; }
    inside[j] = hit || open ? 1 : 0;
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
  const unit = METRICS[metric][2];
  if (unit === "count") return Math.round(v).toLocaleString("en-US");
  if (unit === "bytes") return formatBytes(v);
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
    if (v >= size) return (v / size).toLocaleString("en-US", { maximumFractionDigits: v >= 100 * size ? 0 : 2 }) + " " + unit;
  }
  return v + " ns";
}

function formatBytes(v) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["KB", 1e3]]) {
    if (v >= size) return (v / size).toLocaleString("en-US", { maximumFractionDigits: v >= 100 * size ? 0 : 2 }) + " " + unit;
  }
  return v.toLocaleString("en-US") + " B";
}

// countName is what a metric counts.
function countName(metric) { return METRICS[METRICS[metric][3]][0].replace("_", " "); }

// counted says how many of what a metric measures there are.
function counted(n, metric) {
  const name = countName(metric);
  return n.toLocaleString("en-US") + " " + (n === 1 ? name.slice(0, -1) : name);
}

// isCount is whether a metric only counts.
function isCount(metric) { return METRICS[metric][3] === metric; }

// FEW is the number of samples below which a value is marked: its standard error is a third
// of it, or more.
const FEW = 10;

// sampled is whether a metric is an estimate by samples, and not counted or measured.
function sampled(metric) { return ["samples", "cpu_samples"].includes(METRICS[METRICS[metric][3]][0]); }

// isWeak is whether a value rests on few samples. What rests on none is read from a clock.
function isWeak(count, metric) { return sampled(metric) && count > 0 && count < FEW; }

// formatPercent writes a share that rests on so many samples of a metric, with no more
// digits than they carry, and a tilde before a weak one.
function formatPercent(part, whole, count, metric) {
  if (!(whole > 0)) return "-";
  const p = 100 * part / whole, n = percentDigits(p, count, metric), least = 10 ** -n;
  return mark(count, metric) + (p > 0 && p < least / 2 ? `<${least.toFixed(n)} %` : p.toFixed(n) + " %");
}

function mark(count, metric) { return isWeak(count, metric) ? "~" : ""; }

// percentDigits is how many decimals of a percentage its samples carry, by the standard
// error, of nearly all by one sample more or less.
function percentDigits(p, count, metric) {
  if (!(count > 0)) return p === 0 ? 0 : 1;
  if (!sampled(metric)) return 2;
  const deviation = Math.max(p / Math.sqrt(count) * Math.sqrt(Math.max(0, 1 - p / 100)), p / count);
  return deviation >= 0.5 ? 0 : deviation >= 0.05 ? 1 : 2;
}

// formatEstimate writes a value with the digits that its samples carry.
function formatEstimate(v, count, metric) {
  if (isCount(metric) || !sampled(metric) || !(count > 0)) return formatValue(v, metric);
  return mark(count, metric) + formatValue(Number(v.toPrecision(count < FEW ? 1 : count < 1000 ? 2 : 3)), metric);
}

// errorOf is the relative standard error of so many samples, "" of none.
function errorOf(count) { return count > 0 ? ` (± ${Math.max(1, Math.round(100 / Math.sqrt(count)))} %)` : ""; }

// shorten fits a name into n characters: first without parameters, then without leading
// namespaces, then without type arguments, then cut. An address in a module has no
// namespaces: it loses the module's ending, and then the module.
function shorten(name, n) {
  if (name.length <= n) return name;
  if (n < 2) return "";
  const at = NAMELESS.exec(name);
  if (at) {
    name = name.slice(0, at.index).replace(/\.(so[.\d]*|dll|exe)$/i, "") + at[0];
    return name.length <= n ? name : at[0].length + 1 <= n ? "…" + at[0] : name.slice(0, n - 1) + "…";
  }
  if (name[0] !== "[") {
    name = withoutParameters(name);
    while (name.length > n) {
      const rest = dropSegment(name);
      if (rest === "") break;
      name = rest;
    }
    if (name.length > n) name = withoutTypeArguments(name);
  }
  return name.length <= n ? name : name.slice(0, n - 1) + "…";
}

// withoutParameters removes the parameter list at the end of a name. "(lambda)" and
// "operator()" are parts of the name.
function withoutParameters(name) {
  if (name.endsWith(" const")) name = name.slice(0, -6);
  if (!name.endsWith(")")) return name;
  for (let i = name.length - 1, depth = 0; i > 0; i--) {
    if (name[i] === ")") depth++;
    else if (name[i] === "(") depth--;
    if (depth === 0) return name[i - 1] === " " || name.endsWith("operator", i) ? name : name.slice(0, i);
  }
  return name;
}

// withoutTypeArguments writes Map<…>.Get for Map<int, long>.Get.
function withoutTypeArguments(name) {
  let out = "", level = 0;
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    if (c === "<" && i > 0 && level++ === 0) out += "<…";
    else if (c === ">" && level > 0 && --level === 0) out += c;
    else if (level === 0) out += c;
  }
  return level === 0 ? out : name;
}

// dropSegment removes the text up to the first '.', '::', or '!' outside of angle brackets.
// It returns "" if no such mark is there, or if nothing would be left.
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
