// The controls around the picture.

const $ = id => document.getElementById(id);
const PICTURES = new Set(["flame", "icicle", "callers"]);
const state = { thread: -1, metric: 0, hidden: new Set(), order: "heavy", shape: "flame", fold: false, invert: false, sort: "self", of: -1, category: -1, search: "", pattern: null };
const picture = new Picture($("view"), $("canvas"), $("space"));
let whole, tree; // of all calls; what is shown: that, the same from the leaves, or callers and callees of one function

function rootLabel() {
  const value = isCount(state.metric) ? counted(tree.total[0], state.metric) : formatValue(tree.total[0], state.metric);
  if (tree.side) return "callers and callees of " + symbols[state.of].name + " - " + value;
  if (DIFF) return (state.thread === BEFORE ? "before" : "after") + (tree.inverted ? ", from the leaves" : "") + " - " + value;
  return (state.thread < 0 ? "all threads" : data.threads[state.thread][0]) + (tree.inverted ? ", from the leaves" : "") + " - " + value;
}

function element(name, text, props) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  return Object.assign(e, props);
}

// INVERTIBLE are the views that the switch "Inverted" turns around.
const INVERTIBLE = new Set(["flame", "icicle", "tree"]);

// inverted returns the inverted tree. It is made once for each tree of all calls.
function inverted() { return whole.inverse || (whole.inverse = invertAll(whole, state.order)); }

// rebuild makes the tree again, and keeps the zoom if the focused path still exists.
function rebuild() {
  const path = tree ? pathOf(tree, picture.focus).slice(1).map(i => tree.symbol[i]) : [];
  whole = buildTree(state);
  show(path);
}

// show draws the view there is to show, zoomed along a path of symbols.
function show(path) {
  const callers = state.shape === "callers" && state.of >= 0;
  tree = callers ? sandwich(whole, state.of, state.order) : state.invert && INVERTIBLE.has(state.shape) ? inverted() : whole;
  $("invert").setAttribute("aria-pressed", String(!!tree.inverted));
  $("view").hidden = !PICTURES.has(state.shape);
  $("text").hidden = PICTURES.has(state.shape);
  if (state.pattern) matchAll();
  picture.show({ tree, focus: callers ? Math.max(0, follow(tree, [state.of])) : follow(tree, path), shape: callers ? "icicle" : state.shape === "icicle" ? "icicle" : "flame" });
  $("empty").hidden = whole.total[0] > 0;
  $("empty").textContent = "No " + (state.metric > 0 ? METRICS[state.metric][1] : "samples") + " in this selection.";
  drawLegend();
  drawCategories();
  drawTime();
  draw();
}

// draw draws the current view again. It does not rebuild the tree.
function draw() {
  if (state.shape === "top") drawTop($("text"));
  if (state.shape === "changes") drawChanges($("text"));
  if (state.shape === "tree") drawTree($("text"));
  if (state.shape === "threads") drawThreads($("text"));
  drawCrumbs();
  drawMatched();
  remember();
}

function zoom(i) {
  hideTip();
  picture.show({ focus: i });
  draw();
}

// callersOf shows who calls a function, and below whom it calls.
function callersOf(s) {
  state.of = s;
  press("shape", state.shape = "callers");
  show([]);
}

const FEW_SAMPLES = "~ fewer than 10 samples";

function drawLegend() {
  if (DIFF) { drawDiffLegend(); return; }
  const shares = classShares(state.thread, state.metric);
  const used = new Set(symbols.map(s => s.cls));
  $("async").setAttribute("aria-pressed", String(!state.hidden.has(ASYNC)));
  $("legend").replaceChildren(...data.classes.flatMap((name, c) => {
    if (!used.has(c)) return [];
    const b = element("button", undefined, { title: `${name}: ${sharePercent(shares[c])} of ${c === GAP ? "stacks have one" : "leaves"}; click to ${state.hidden.has(c) ? "show" : "hide"} these frames` });
    b.dataset.cls = name;
    b.setAttribute("aria-pressed", String(!state.hidden.has(c)));
    const swatch = element("i", undefined, { className: c === GAP ? "gap" : "" });
    swatch.style.setProperty("--c", `var(--${name})`);
    b.append(swatch, name, element("small", sharePercent(shares[c])));
    b.onclick = () => { if (!state.hidden.delete(c)) state.hidden.add(c); rebuild(); };
    return [b];
  }));
  if (tree.count.some(n => isWeak(n, state.metric))) $("legend").append(element("span", FEW_SAMPLES));
}

const CATEGORY_COLORS = ["managed", "type", "native", "kernel", "runtime", "unsampled", "stub", "gap", "root", "gap2"];

// drawCategories draws the bar of categories. A button is as wide as the share of its category, and
// shows only the stacks of it.
function drawCategories() {
  const sums = categorySums(state.thread, state.metric), all = sums.reduce((a, b) => a + b, 0), bar = $("categories");
  bar.hidden = DIFF !== null || !(all > 0);
  if (state.category < 0) delete bar.dataset.only; else bar.dataset.only = data.categories[state.category];
  bar.replaceChildren(...data.categories.flatMap((name, c) => {
    if (!(sums[c] > 0) && state.category !== c) return [];
    const share = sharePercent(all > 0 ? sums[c] / all : 0);
    const b = element("button", `${name} ${share}`, { title: `${name}: ${share} of ${METRICS[state.metric][1]}; click to see ${state.category === c ? "all" : "only these stacks"}`, onclick: () => setCategory(state.category === c ? -1 : c) });
    b.setAttribute("aria-pressed", String(state.category === c));
    b.style.flexGrow = String(sums[c] / (all || 1));
    b.style.setProperty("--c", `var(--${CATEGORY_COLORS[c]})`);
    return [b];
  }));
}

// setCategory shows the stacks of one category, -1 = all.
function setCategory(c) {
  state.category = c;
  rebuild();
  const pressed = $("categories").querySelector("[aria-pressed=true]");
  if (pressed) pressed.focus();
}

function sharePercent(s) { return s > 0 && s < 0.001 ? "<0.1 %" : (100 * s).toFixed(s > 0 && s < 0.1 ? 1 : 0) + " %"; }

// HINTS are what a click does in the views that are text.
const HINTS = {
  top: "Click a function to see its callers and callees.",
  changes: "Click a function to see its callers and callees.",
  tree: "Click a row to open it.",
  threads: "Colors: CPU time by class. Gray line: the thread waits. Click a thread to see its stacks.",
};

// drawCrumbs lists the way to the zoomed frame; a long one loses its middle.
function drawCrumbs() {
  const path = pathOf(tree, picture.focus), items = [];
  if (path.length === 1) items.push(element("span", HINTS[state.shape] || "Click a frame to zoom in."));
  const reset = element("button", "⟲ reset", { className: "reset", title: "show everything (Esc)", onclick: () => zoom(0) });
  if (path.length > 1) items.push(reset);
  path.forEach((i, k) => {
    if (path.length === 1) return;
    if (path.length > 7 && k > 1 && k < path.length - 4) {
      if (k === 2) items.push(element("span", "› … "));
      return;
    }
    const name = i === 0 ? "all" : symbols[tree.symbol[i]].name;
    if (items.length > 1) items.push(element("span", "›"));
    const text = shorten(name, 30), here = k === path.length - 1;
    const crumb = here ? element("b", text, { title: name }) : element("button", text, { title: name, onclick: () => zoom(i) });
    if (here || text.length <= 12) crumb.style.flex = "none"; // where room is short, long names give way
    items.push(crumb);
  });
  $("crumbs").replaceChildren(...items);
}

function matchAll() { picture.matches = symbols.map(s => state.pattern.test(s.name) || state.pattern.test(s.module)); }

function setSearch(text) {
  let bad = false;
  state.search = text;
  state.pattern = picture.matches = null;
  if (text !== "") {
    try { state.pattern = new RegExp(text, /[A-Z]/.test(text) ? "" : "i"); matchAll(); } catch { bad = true; }
  }
  $("search").classList.toggle("bad", bad);
  $("search").title = bad ? "not a regular expression yet" : "capital letters make the search case-sensitive";
  picture.redraw();
  if (bad) $("matched").value = "bad pattern"; else draw();
}

// drawMatched says what share matches, in the metric and how many there are.
function drawMatched() {
  const m = picture.matches;
  $("previous").disabled = $("next").disabled = !m || !PICTURES.has(state.shape);
  if (!m) { $("matched").value = ""; return; }
  if (tree.side) { $("matched").value = `matched callers ${sideShare(-1)} · callees ${sideShare(1)}`; return; }
  const sum = matched(tree, picture.focus, m), share = formatPercent(sum.weight, tree.total[picture.focus], sum.samples, state.metric);
  $("matched").value = `matched ${share} · ` + (isCount(state.metric) ? "" : formatEstimate(sum.weight, sum.samples, state.metric) + " · ") + counted(sum.samples, state.metric);
}

function sideShare(side) {
  const sum = matched(tree, picture.focus, picture.matches, side);
  return formatPercent(sum.weight, tree.total[picture.focus], sum.samples, state.metric);
}

// shareOf is a node's share of another, as text.
function shareOf(i, whole) { return formatPercent(tree.total[i], whole, tree.count[i], state.metric); }

// findNext chooses the next match, from left to right and from the root outwards.
function findNext(step) {
  if (!picture.matches) return;
  const order = [], stack = [picture.focus];
  while (stack.length > 0) {
    const i = stack.pop();
    if (i > 0 && tree.total[i] > 0 && picture.matches[tree.symbol[i]]) order.push(i);
    for (let j = tree.first[i + 1] - 1; j >= tree.first[i]; j--) stack.push(tree.child[j]);
  }
  if (order.length === 0) return;
  const at = order.indexOf(picture.chosen), k = at < 0 ? (step > 0 ? 0 : order.length - 1) : (at + step + order.length) % order.length;
  choose(order[k]);
  $("status").value = `${k + 1} of ${order.length}  ·  ` + $("status").value;
}

// NOTES explain classes that are no code of the program.
const NOTES = {
  kernel: "the thread was in the kernel, whose own functions are not shown",
  async: "an async method that awaits what runs; it is on no stack",
  resumer: "a frame that only resumed the async method that it called",
  unsampled: "CPU time without samples, by the clock of the process",
};

// selfShare is the share of a node's own value in the tree, as text.
function selfShare(i) { return formatPercent(tree.self[i], tree.total[0], tree.selfCount[i], state.metric); }

function showTip(i, x, y) {
  const s = i > 0 ? symbols[tree.symbol[i]] : null, tip = $("tip"), rows = [], up = i > 0 ? tree.parent[i] : 0;
  if (s && s.module) rows.push(["module", s.module]);
  if (s) rows.push(["class", data.classes[s.cls]]);
  rows.push([countName(state.metric), formatValue(tree.count[i], 0) + (sampled(state.metric) ? errorOf(tree.count[i]) : "")]);
  if (!isCount(state.metric)) rows.push([METRICS[state.metric][1].toLowerCase(), formatEstimate(tree.total[i], tree.count[i], state.metric)]);
  if (!tree.inverted && (!tree.side || tree.side[i] >= 0)) rows.push(["self", formatEstimate(tree.self[i], tree.selfCount[i], state.metric) + " (" + selfShare(i) + ")"]);
  if (s) rows.push(...lineRows(i));
  rows.push(["of total", shareOf(i, whole.total[0]) + (DIFF ? "" : boundsText(tree.total[i], tree.count[i], whole))]);
  if (i > 0) rows.push([tree.inverted || tree.side && tree.side[i] < 0 ? "of callee" : "of parent", shareOf(i, tree.total[up])]);
  if (picture.focus > 0) rows.push(["of zoomed", i === picture.focus || tree.depth[i] > tree.depth[picture.focus] ? shareOf(i, tree.total[picture.focus]) : "-"]);
  if (DIFF) rows.push(...changeRows(changeOf(tree, i)));
  const table = element("table");
  for (const [k, v] of rows) { const tr = table.insertRow(); tr.insertCell().textContent = k; tr.insertCell().textContent = v; }
  tip.replaceChildren(element("b", s ? s.name : rootLabel()), table);
  if (s && s.doubtful) tip.append(element("div", "doubtful: found by a guess, may not have been called", { className: "warn" }));
  if (s && s.note) tip.append(element("div", s.note));
  if (isWeak(tree.count[i], state.metric)) tip.append(element("div", "~ rests on fewer than 10 samples", { className: "warn" }));
  if (s && s.name.endsWith(" (inlined)")) tip.append(element("div", "the JIT compiler put its code into its caller"));
  if (s && NOTES[data.classes[s.cls]]) tip.append(element("div", NOTES[data.classes[s.cls]]));
  if (s && s.cls === GAP) tip.append(element("div", "frames are missing here", { className: "warn" }));
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), below = y + 18 + box.height < innerHeight;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
  tip.style.top = Math.max(4, below ? y + 18 : y - box.height - 12) + "px";
  $("status").value = (s ? s.name : rootLabel()) + "  ·  " + shareOf(i, whole.total[0]) + " of total";
}

function hideTip() {
  $("tip").hidden = true;
  $("status").value = "Point at a frame to see its figures. Press ? for the keys.";
}

function pointed(e) {
  const box = $("canvas").getBoundingClientRect();
  return picture.at(e.clientX - box.left, e.clientY - box.top);
}

function onMove(e) {
  const i = pointed(e);
  if (i !== picture.hover) { picture.hover = i; picture.redraw(); }
  $("canvas").style.cursor = i >= 0 ? "pointer" : "default";
  if (i >= 0) showTip(i, e.clientX, e.clientY); else hideTip();
}

