// The keyboard, the controls, and the link to what is shown.

// choose marks a frame, zooms out where it is too narrow to see, and says what it is.
function choose(i) {
  if (!picture.wide(i)) { // as far as needed: the outermost caller that makes it visible
    let at = i;
    while (at > 0 && tree.total[tree.parent[at]] * 200 < tree.total[i] * picture.width) at = tree.parent[at];
    picture.show({ focus: at });
    drawCrumbs();
  }
  picture.chosen = i;
  picture.reveal(i);
  $("tip").hidden = true;
  $("status").value = $("live").textContent = describe(i);
  remember();
}

// beside finds the next child of the same caller that is not empty.
function beside(i, step) {
  const up = tree.parent[i];
  if (up < 0) return i;
  const same = j => !tree.side || tree.side[tree.child[j]] === tree.side[i];
  for (let j = tree.first[up], at = -1; j < tree.first[up + 1]; j++) {
    if (tree.child[j] === i) at = j;
    if (at < 0) continue;
    const to = at + step;
    if (to < tree.first[up] || to >= tree.first[up + 1] || !same(to) || !(tree.total[tree.child[to]] > 0)) return i;
    return tree.child[to];
  }
  return i;
}

function walk(key) {
  const from = picture.chosen >= 0 ? picture.chosen : picture.focus, out = picture.shape === "flame" ? "ArrowUp" : "ArrowDown";
  if (picture.chosen < 0) return choose(from);
  if (key === "ArrowLeft") return choose(beside(from, -1));
  if (key === "ArrowRight") return choose(beside(from, 1));
  const side = tree.side && (tree.side[from] || (key === "ArrowUp" ? -1 : 1)), along = tree.side ? key === (side < 0 ? "ArrowUp" : "ArrowDown") : key === out;
  if (!along) return choose(Math.max(tree.side ? 1 : 0, tree.parent[from]));
  const to = childrenOf(from).filter(c => !side || tree.side[c] === side);
  choose(to.length > 0 ? to.reduce((a, b) => tree.total[b] > tree.total[a] ? b : a) : from);
}

// subject is the frame that a key is about: under the mouse, chosen, or zoomed.
function subject() { return picture.hover > 0 ? picture.hover : picture.chosen > 0 ? picture.chosen : picture.focus; }

async function copyName() {
  const i = subject(), name = i > 0 ? symbols[tree.symbol[i]].name : rootLabel();
  try {
    await navigator.clipboard.writeText(name);
  } catch { // where a page may not use the clipboard by itself
    const t = element("textarea", undefined, { value: name });
    document.body.append(t);
    t.select();
    document.execCommand("copy");
    t.remove();
  }
  $("status").value = $("live").textContent = "copied " + name;
}

function showCallers() {
  const i = subject();
  if (i > 0) callersOf(tree.symbol[i]); else if (state.of >= 0) callersOf(state.of); else $("status").value = "choose a frame first: point at it, or walk there with the arrow keys";
}

const KEYS = {
  "/": () => { $("search").focus(); $("search").select(); },
  n: () => findNext(1),
  N: () => findNext(-1),
  i: () => setShape(state.shape === "flame" ? "icicle" : "flame"),
  b: showCallers,
  d: () => { if (DIFF) setShape("changes"); },
  t: () => setShape("top"),
  l: turnAround,
  f: () => setFold(!state.fold),
  a: () => HAS_ASYNC && setAsync(state.hidden.has(ASYNC)),
  c: copyName,
  "?": showHelp,
  Backspace: () => { const up = Math.max(0, tree.parent[picture.focus]); zoom(up); },
};

// HELP is the list of the keys, for people.
const HELP = [["/", "search"], ["n, Shift+n", "next, previous match"], ["arrows", "walk to the caller, a callee, or a neighbor"], ["Enter, Backspace", "zoom in, zoom out"],
  ["b", "sandwich: callers and callees of a frame"], ["t", "top: functions by time"], ["i", "flame or icicle"], ["l", "inverted: start at the leaves"], ["f", "fold"],
  ...(DIFF ? [["d", "changes"]] : []), ...(HAS_ASYNC ? [["a", "async callers"]] : []), ["c", "copy the name of a frame"], ["Esc", "undo the search, the view, the zoom"]];

function showHelp() {
  const table = $("keys").firstElementChild;
  table.replaceChildren(...HELP.map(([key, what]) => { const tr = element("tr"); tr.append(element("th", key), element("td", what)); return tr; }));
  $("keys").showModal();
}

const WALKING = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]);

// back undoes one thing: the search, the view, the zoom.
function back(typing) {
  if ($("search").value !== "") { $("search").value = ""; setSearch(""); } else if (!typing && state.shape === "callers") setShape("flame"); else if (!typing && picture.focus === 0 && state.category >= 0) setCategory(-1); else if (!typing && picture.focus === 0 && span) setSpan(null); else if (!typing) zoom(0);
}

function onKey(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || $("keys").open) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName), drawn = PICTURES.has(state.shape);
  if (e.key === "Escape") {
    back(typing);
    if (typing) e.target.blur();
  } else if (typing) {
    if (e.target !== $("search") || e.key !== "Enter") return;
    findNext(e.shiftKey ? -1 : 1);
  } else if (WALKING.has(e.key) && drawn) {
    walk(e.key);
  } else if (e.key === "Enter" && drawn && e.target.tagName !== "BUTTON" && picture.chosen >= 0) {
    const i = picture.chosen;
    zoom(i);
    choose(i);
  } else if (Object.hasOwn(KEYS, e.key)) {
    KEYS[e.key]();
  } else {
    return;
  }
  e.preventDefault();
}

function press(group, value) {
  for (const b of $(group).children) b.setAttribute("aria-pressed", String(b.dataset.v === String(value)));
}

function setShape(value) {
  if (value === "callers" && state.shape !== "callers") return showCallers();
  const was = tree, path = tree.side ? [] : pathOf(tree, picture.focus).slice(1).map(i => tree.symbol[i]);
  press("shape", state.shape = value);
  show(was.inverted && !INVERTIBLE.has(value) ? [] : path);
}

function setFold(on) {
  state.fold = on;
  $("fold").setAttribute("aria-pressed", String(on));
  rebuild();
}

// setAsync shows the async methods that await what runs, or in their place what resumed it.
function setAsync(on) {
  state.hidden.delete(on ? ASYNC : RESUMER);
  state.hidden.add(on ? RESUMER : ASYNC);
  rebuild();
}

// turnAround inverts the tree, or turns it back. A view without a tree gives way to the
// inverted flame graph.
function turnAround() {
  state.invert = !tree.inverted;
  if (!INVERTIBLE.has(state.shape)) press("shape", state.shape = "flame");
  show([]);
}

// remember puts what is shown into the page's address, which can be copied as a link.
function remember() {
  const path = pathOf(tree, picture.focus).slice(1).map(i => tree.symbol[i]);
  const at = { m: METRICS[state.metric][0], t: state.thread === BEFORE ? "before" : state.thread < 0 ? "" : state.thread, v: state.shape, o: state.order, f: state.fold ? 1 : 0, i: state.invert ? 1 : "",
    q: state.search, c: state.category < 0 ? "" : data.categories[state.category].replace(" ", "-"), s: span ? span.map(t => Math.round(t)).join("-") : "", h: HAS_ASYNC && state.hidden.size === 0 ? "none" : [...state.hidden].map(c => data.classes[c]).join("."), of: state.of < 0 ? "" : state.of, z: tree.side ? "" : path.join(".") };
  const hash = "#" + new URLSearchParams(Object.entries(at).filter(([, v]) => v !== ""));
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

// recall takes the state from the page's address; what does not fit this page is left.
function recall() {
  const at = new URLSearchParams(location.hash.slice(1)), index = (text, n) => /^\d+$/.test(text || "") && Number(text) < n ? Number(text) : -1;
  const metric = METRICS.findIndex(([name]) => name === at.get("m"));
  if (metric >= 0 && measured(metric) && !DIFF) state.metric = metric;
  state.thread = DIFF ? (at.get("t") === "before" ? BEFORE : AFTER) : index(at.get("t"), data.threads.length);
  state.of = index(at.get("of"), symbols.length);
  if (["flame", "icicle", "top", "tree"].includes(at.get("v")) || at.get("v") === "threads" && TIMES || at.get("v") === "changes" && DIFF || at.get("v") === "callers" && state.of >= 0) state.shape = at.get("v");
  if (["heavy", "name"].includes(at.get("o"))) state.order = at.get("o");
  const part = /^(\d+)-(\d+)$/.exec(at.get("s") || "");
  span = TIMES && part && Number(part[1]) < Number(part[2]) ? [Number(part[1]), Math.min(TIMES.length, Number(part[2]))] : null;
  state.invert = at.get("i") === "1";
  state.category = DIFF ? -1 : data.categories.findIndex(c => c.replace(" ", "-") === at.get("c"));
  if (at.has("f")) state.fold = at.get("f") === "1";
  if (at.has("h")) state.hidden = new Set((at.get("h") || "").split(".").map(c => data.classes.indexOf(c)).filter(c => c >= 0));
  if (state.fold) folds(); // its symbols can be zoomed too
  $("search").value = at.get("q") || "";
  return (at.get("z") || "").split(".").filter(x => x).map(Number);
}

// begin shows what the address says, and for the rest what data.first says: CPU
// time, which shows what works and not what waits; without samples, how much of the first
// event there is.
function begin() {
  const first = [data.first, ...METRICS.keys()].find(m => m >= 0 && measured(m)) ?? -1;
  Object.assign(state, { metric: first >= 0 ? first : 0, order: "heavy", shape: DIFF ? "changes" : "flame", fold: base.n <= MAX_FOLDED, sort: "self", hidden: new Set(HAS_ASYNC ? [RESUMER] : []) });
  showState(recall());
}

function measured(m) {
  return data.stacks.some(row => { for (let i = 1 + m; i < row.length; i += STRIDE) if (row[i] > 0) return true; return false; });
}

function fillControls() {
  METRICS.forEach(([name, label], m) => {
    if (name === "cpu_samples") return; // stands beside CPU time
    const b = element("button", label, { disabled: !measured(m), title: measured(m) ? "" : "not measured" });
    b.dataset.v = String(m);
    b.onclick = () => { press("metric", state.metric = m); rebuild(); };
    $("metric").append(b);
  });
  for (const b of $("shape").children) b.onclick = () => setShape(b.dataset.v);
  for (const b of $("order").children) b.onclick = () => { press("order", state.order = b.dataset.v); rebuild(); };
  $("invert").onclick = turnAround;
  $("async").hidden = !HAS_ASYNC;
  $("async").onclick = () => setAsync(state.hidden.has(ASYNC));
  $("fold").onclick = () => setFold(!state.fold);
  $("copy").onclick = copyName;
  $("help").onclick = showHelp;
  $("next").onclick = () => findNext(1);
  $("previous").onclick = () => findNext(-1);
  const order = data.threads.map((_, i) => i).sort((a, b) => data.threads[b][1] - data.threads[a][1] || a - b);
  if (DIFF) $("thread").setAttribute("aria-label", "Recording");
  if (DIFF) $("thread").append(element("option", "sizes: after", { value: String(AFTER) }), element("option", "sizes: before", { value: String(BEFORE) }));
  else $("thread").append(element("option", "all threads", { value: "-1" }),
    ...order.map(i => element("option", `${data.threads[i][0]}: ${formatValue(data.threads[i][1], 0)}`, { value: String(i) })));
  $("thread").onchange = e => { state.thread = Number(e.target.value); e.target.blur(); rebuild(); };
}

// showState sets the controls to the state and draws.
function showState(path) {
  for (const group of ["metric", "shape", "order"]) press(group, state[group]);
  $("fold").setAttribute("aria-pressed", String(state.fold));
  $("thread").value = String(state.thread);
  whole = buildTree(state);
  show(path);
  setSearch($("search").value);
}

function start() {
  $("facts").textContent = data.facts.join("  ·  ");
  $("title").title = data.title;
  $("warning").hidden = data.warning === "";
  $("warning").textContent = data.warning;
  $("notes").hidden = data.notes.length === 0;
  $("notes").firstElementChild.textContent = data.notes.length === 1 ? "1 note" : data.notes.length + " notes";
  $("notes").lastElementChild.replaceChildren(...data.notes.map(n => element("li", n)));
  fillControls();
  $("metric").hidden = DIFF !== null;
  if (!DIFF) $("shape").querySelector("[data-v=changes]").remove();
  watchTime();
  $("search").addEventListener("input", e => setSearch(e.target.value));
  $("canvas").addEventListener("mousemove", onMove);
  $("canvas").addEventListener("mouseleave", () => { picture.hover = -1; picture.redraw(); hideTip(); });
  $("canvas").addEventListener("click", e => { const i = pointed(e); if (i >= 0) { zoom(i); picture.chosen = i; } });
  addEventListener("keydown", onKey);
  addEventListener("hashchange", begin);
  hideTip();
  begin();
}

start();
