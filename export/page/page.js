// The controls around the picture.

const $ = id => document.getElementById(id);
const state = { thread: -1, metric: 0, hidden: new Set(), order: "heavy", shape: "flame", pattern: null };
const picture = new Picture($("view"), $("canvas"), $("space"));
let tree;

function rootLabel() { return (state.thread < 0 ? "all threads" : data.threads[state.thread][0]) + " - " + formatValue(tree.total[0], state.metric) + (state.metric === 0 ? " samples" : ""); }

function element(name, text, props) {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  return Object.assign(e, props);
}

// rebuild makes the tree anew and keeps the zoom where it can.
function rebuild() {
  const path = tree ? pathOf(tree, picture.focus).slice(1).map(i => tree.symbol[i]) : [];
  tree = buildTree(state);
  picture.show({ tree, focus: follow(tree, path), shape: state.shape });
  $("empty").hidden = tree.total[0] > 0;
  $("empty").textContent = state.metric > 0 ? "No " + METRICS[state.metric][1] + " in this selection." : "No samples in this selection.";
  drawLegend();
  drawCrumbs();
  drawMatched();
}

function zoom(i) {
  hideTip();
  picture.show({ focus: i });
  drawCrumbs();
  drawMatched();
}

function drawLegend() {
  const shares = classShares(state.thread, state.metric);
  $("legend").replaceChildren(...data.classes.map((name, c) => {
    const b = element("button", undefined, { title: `${name}: ${formatPercent(shares[c], 1)} of ${c === GAP ? "stacks have one" : "leaves"}; click to ${state.hidden.has(c) ? "show" : "hide"} these frames` });
    b.dataset.cls = name;
    b.setAttribute("aria-pressed", String(!state.hidden.has(c)));
    const swatch = element("i", undefined, { className: c === GAP ? "gap" : "" });
    swatch.style.setProperty("--c", `var(--${name})`);
    b.append(swatch, name, element("small", sharePercent(shares[c])));
    b.onclick = () => { if (!state.hidden.delete(c)) state.hidden.add(c); rebuild(); };
    return b;
  }));
}

function sharePercent(s) { return s > 0 && s < 0.001 ? "<0.1 %" : (100 * s).toFixed(s > 0 && s < 0.1 ? 1 : 0) + " %"; }

// drawCrumbs lists the way to the zoomed frame; a long one loses its middle.
function drawCrumbs() {
  const path = pathOf(tree, picture.focus), items = [];
  if (path.length === 1) items.push(element("span", "Click a frame to zoom in."));
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

function setSearch(text) {
  state.pattern = null;
  let bad = false;
  if (text !== "") {
    try { state.pattern = new RegExp(text, /[A-Z]/.test(text) ? "" : "i"); } catch { bad = true; }
  }
  $("search").classList.toggle("bad", bad);
  $("search").title = bad ? "not a regular expression yet" : "capital letters make the search case-sensitive";
  picture.matches = state.pattern && symbols.map(s => state.pattern.test(s.name) || state.pattern.test(s.module));
  picture.redraw();
  drawMatched(bad);
}

function drawMatched(bad) {
  const m = picture.matches, out = $("matched");
  if (bad) { out.value = "bad pattern"; return; }
  out.value = m ? "matched " + formatPercent(matchedWeight(tree, picture.focus, m), tree.total[picture.focus]) : "";
}

function showTip(i, x, y) {
  const s = i > 0 ? symbols[tree.symbol[i]] : null, tip = $("tip"), rows = [], up = i > 0 ? tree.parent[i] : 0;
  if (s && s.module) rows.push(["module", s.module]);
  if (s) rows.push(["class", data.classes[s.cls]]);
  rows.push(["samples", formatValue(tree.count[i], 0)]);
  if (state.metric > 0) rows.push([METRICS[state.metric][1].toLowerCase(), formatValue(tree.total[i], state.metric)]);
  rows.push(["self", formatValue(tree.self[i], state.metric) + " (" + formatPercent(tree.self[i], tree.total[0]) + ")"]);
  rows.push(["of total", formatPercent(tree.total[i], tree.total[0])]);
  if (i > 0) rows.push(["of parent", formatPercent(tree.total[i], tree.total[up])]);
  if (picture.focus > 0) rows.push(["of zoomed", i === picture.focus || tree.depth[i] > tree.depth[picture.focus] ? formatPercent(tree.total[i], tree.total[picture.focus]) : "-"]);
  const table = element("table");
  for (const [k, v] of rows) { const tr = table.insertRow(); tr.insertCell().textContent = k; tr.insertCell().textContent = v; }
  tip.replaceChildren(element("b", s ? s.name : rootLabel()), table);
  if (s && s.doubtful) tip.append(element("div", "doubtful: found by a guess, may not have been called", { className: "warn" }));
  if (s && s.cls === GAP) tip.append(element("div", "frames are missing here", { className: "warn" }));
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), below = y + 18 + box.height < innerHeight;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
  tip.style.top = Math.max(4, below ? y + 18 : y - box.height - 12) + "px";
  $("status").textContent = (s ? s.name : rootLabel()) + "  ·  " + formatPercent(tree.total[i], tree.total[0]) + " of total";
}

function hideTip() {
  $("tip").hidden = true;
  $("status").textContent = "/  search   ·   Esc  clear, then reset   ·   Backspace  zoom out   ·   i  flip";
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

function onKey(e) {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
  if (e.key === "Escape") {
    if ($("search").value !== "") { $("search").value = ""; setSearch(""); } else if (!typing) zoom(0);
    if (typing) e.target.blur();
  } else if (typing) {
    return;
  } else if (e.key === "/") {
    $("search").focus();
    $("search").select();
  } else if (e.key === "i") {
    choose("shape", state.shape === "flame" ? "icicle" : "flame");
  } else if (e.key === "Backspace") {
    zoom(Math.max(0, tree.parent[picture.focus]));
  } else {
    return;
  }
  e.preventDefault();
}

// choose presses one button of a group and draws.
function choose(group, value) {
  state[group] = value;
  for (const b of $(group).children) b.setAttribute("aria-pressed", String(b.dataset.v === String(value)));
  if (group === "shape") picture.show({ shape: value }); else rebuild();
}

function fillControls() {
  METRICS.forEach(([, label], m) => {
    const measured = data.stacks.some(row => { for (let i = 1 + m; i < row.length; i += 4) if (row[i] > 0) return true; return false; });
    const b = element("button", label, { disabled: !measured, title: measured ? "" : "not measured" });
    b.dataset.v = String(m);
    $("metric").append(b);
  });
  for (const group of ["metric", "shape", "order"]) {
    for (const b of $(group).children) {
      b.onclick = () => choose(group, group === "metric" ? Number(b.dataset.v) : b.dataset.v);
      b.setAttribute("aria-pressed", String(b.dataset.v === String(state[group])));
    }
  }
  const order = data.threads.map((_, i) => i).sort((a, b) => data.threads[b][1] - data.threads[a][1] || a - b);
  $("thread").append(element("option", `all threads (${data.threads.length})`, { value: "-1" }),
    ...order.map(i => element("option", `${data.threads[i][0]}: ${formatValue(data.threads[i][1], 0)}`, { value: String(i) })));
  $("thread").onchange = e => { state.thread = Number(e.target.value); e.target.blur(); rebuild(); };
}

function start() {
  $("facts").textContent = data.facts.join("  ·  ");
  $("title").title = data.title;
  $("notes").hidden = data.notes.length === 0;
  $("notes").firstElementChild.textContent = data.notes.length === 1 ? "1 note" : data.notes.length + " notes";
  $("notes").lastElementChild.replaceChildren(...data.notes.map(n => element("li", n)));
  fillControls();
  $("search").addEventListener("input", e => setSearch(e.target.value));
  $("canvas").addEventListener("mousemove", onMove);
  $("canvas").addEventListener("mouseleave", () => { picture.hover = -1; picture.redraw(); hideTip(); });
  $("canvas").addEventListener("click", e => { const i = pointed(e); if (i >= 0) zoom(i); });
  addEventListener("keydown", onKey);
  hideTip();
  rebuild();
}

start();
