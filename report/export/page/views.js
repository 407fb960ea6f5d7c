// The views that are text: the functions by time, and the tree to open and close.

const TOP_ROWS = 500, TREE_ROWS = 200;

// swatch is a class's colour before a name.
function swatch(s) {
  const i = element("i", undefined, { className: "class", title: data.classes[s.cls] });
  i.style.setProperty("--c", `var(--${data.classes[s.cls]})`);
  return i;
}

function fullName(s) { return (s.doubtful ? "? " : "") + s.name; }

// drawTop lists the functions; a click on one shows its sandwich.
function drawTop(box) {
  const rows = functions(whole), by = state.sort, all = whole.total[0];
  rows.sort((a, b) => b[by] - a[by] || b.total - a.total || nameRank[a.symbol] - nameRank[b.symbol]);
  const table = element("table"), head = table.createTHead().insertRow();
  for (const [key, label] of [["self", "self"], ["total", "total"]]) {
    const th = element("th", undefined, { className: "number" }), b = element("button", label, { title: "sort by " + label });
    b.onclick = () => { state.sort = key; draw(); };
    if (key === by) th.setAttribute("aria-sort", "descending");
    th.append(b);
    head.append(th, element("th", undefined, { className: "number time" }));
  }
  if (!isCount(state.metric)) head.append(element("th", countName(state.metric), { className: "number", title: "that the total rests on" }));
  head.append(element("th", undefined, { className: "bar" }), element("th", "function"), element("th", "module"));
  const body = table.createTBody(), shown = state.pattern ? rows.filter(r => picture.matches[r.symbol]) : rows;
  const places = placesOf(whole), most = shown.slice(0, TOP_ROWS).reduce((m, r) => Math.max(m, (boundsOf(r[by], r[by + "Count"], whole) || [0, r[by] / all])[1]), 0);
  if (most > 0) table.style.setProperty("--zoom", String(1 / most)); // the longest bar with its error fills the column
  for (const r of shown.slice(0, TOP_ROWS)) {
    const s = symbols[r.symbol], tr = body.insertRow();
    for (const [v, count] of [[r.self, r.selfCount], [r.total, r.totalCount]]) {
      tr.append(element("td", formatPercent(v, all, count, state.metric), { className: "number" }), element("td", formatEstimate(v, count, state.metric), { className: "number time" }));
    }
    if (!isCount(state.metric)) tr.append(element("td", formatValue(r.totalCount, METRICS[state.metric][3]), { className: "number" }));
    if (isWeak(r.totalCount, state.metric)) { tr.className = "weak"; tr.title = FEW_SAMPLES; }
    const td = element("td", undefined, { className: "name" }), b = element("button", fullName(s), { title: "who calls it, and whom it calls" });
    b.onclick = () => callersOf(r.symbol);
    tr.append(shareBar(r[by], r[by + "Count"], whole, data.classes[s.cls]));
    td.append(swatch(s), b);
    const lines = hottest(places.get(r.symbol), r.self, 1);
    if (lines.length > 0) td.append(element("small", lines[0], { title: "where it runs itself: " + hottest(places.get(r.symbol), r.self, 8).join(", ") }));
    if (isWeak(r.totalCount, state.metric)) td.append(element("span", ", fewer than 10 samples", { className: "unseen" }));
    tr.append(td, element("td", s.module));
  }
  box.replaceChildren(table);
  if (shown.length > TOP_ROWS) box.append(element("p", `${shown.length - TOP_ROWS} more; search to narrow them down`));
  if (shown.length === 0) box.append(element("p", "no function"));
}

// drawTree makes the tree of the zoomed frame, opened along its heaviest path.
function drawTree(box) {
  const list = element("ul");
  list.setAttribute("role", "tree");
  list.setAttribute("aria-label", tree.inverted ? "leaves with their callers" : "calls, outermost first");
  list.append(treeItem(picture.focus, 1, 1, 1));
  box.replaceChildren(list);
  let item = list.firstElementChild;
  item.tabIndex = 0;
  for (let i = 0; i < 12 && item; i++) { expand(item, true); item = item.querySelector("li"); }
  list.addEventListener("keydown", onTreeKey);
  list.addEventListener("click", e => {
    const item = e.target.closest("li");
    if (!item) return;
    expand(item, item.getAttribute("aria-expanded") === "false");
    focusItem(item);
  });
}

function childrenOf(i) {
  const out = [];
  for (let j = tree.first[i]; j < tree.first[i + 1]; j++) if (tree.total[tree.child[j]] > 0) out.push(tree.child[j]);
  return out;
}

function treeItem(i, level, size, at) {
  const s = i > 0 ? symbols[tree.symbol[i]] : null, li = element("li", undefined, { tabIndex: -1, node: i });
  li.setAttribute("role", "treeitem");
  li.setAttribute("aria-level", level);
  li.setAttribute("aria-setsize", size);
  li.setAttribute("aria-posinset", at);
  li.setAttribute("aria-label", describe(i));
  if (childrenOf(i).length > 0) li.setAttribute("aria-expanded", "false");
  if (s && picture.matches && picture.matches[tree.symbol[i]]) li.className = "hit";
  const row = element("div", undefined, { className: "row" });
  row.append(element("small", shareOf(i, whole.total[0])), element("span", s ? fullName(s) : rootLabel()));
  if (s) row.lastElementChild.prepend(swatch(s));
  li.append(row);
  return li;
}

// plain is a share without its mark, which describe says in words.
function plain(share) { return share.replace("~", ""); }

// describe is a node in one sentence.
function describe(i) {
  const s = i > 0 ? symbols[tree.symbol[i]] : null, n = childrenOf(i).length;
  return [s ? s.name : rootLabel(), s && s.doubtful ? "doubtful" : "", s ? data.classes[s.cls] : "", plain(shareOf(i, whole.total[0])) + " of total",
    tree.inverted ? "" : plain(selfShare(i)) + " self", counted(tree.count[i], state.metric) + (isWeak(tree.count[i], state.metric) ? ", too few to rely on" : ""), DIFF ? describeChange(changeOf(tree, i)) : "", neighbors(i, n)].filter(x => x).join(", ");
}

// neighbors says how many functions a node calls, or how many call it.
function neighbors(i, n) {
  const functions = n === 1 ? "1 function" : `${n} functions`;
  if (tree.inverted && i > 0) return n === 0 ? "outermost" : "called by " + functions;
  return n === 0 ? "calls nothing" : (tree.inverted ? functions + " at the leaves" : "calls " + functions);
}

// expand shows or hides what a node calls; it is made when first shown.
function expand(item, on) {
  if (!item.hasAttribute("aria-expanded")) return;
  item.setAttribute("aria-expanded", String(on));
  let list = item.querySelector("ul");
  if (on && !list) {
    list = element("ul");
    list.setAttribute("role", "group");
    const nodes = childrenOf(item.node), level = Number(item.getAttribute("aria-level")) + 1;
    nodes.slice(0, TREE_ROWS).forEach((c, k) => list.append(treeItem(c, level, nodes.length, k + 1)));
    if (nodes.length > TREE_ROWS) list.append(element("li", `${nodes.length - TREE_ROWS} more, lighter ones`));
    item.append(list);
  }
  if (list) list.hidden = !on;
}

function focusItem(item) {
  const list = item.closest("[role=tree]");
  for (const old of list.querySelectorAll("[tabindex='0']")) old.tabIndex = -1;
  item.tabIndex = 0;
  item.focus();
  picture.chosen = item.node;
}

// onTreeKey is the keyboard of a tree (WAI-ARIA Authoring Practices, Tree View).
function onTreeKey(e) {
  const item = e.target.closest("li[role=treeitem]");
  if (!item) return;
  const all = [...item.closest("[role=tree]").querySelectorAll("li[role=treeitem]")].filter(x => !x.parentElement.closest("ul[hidden]")), at = all.indexOf(item);
  const expanded = item.getAttribute("aria-expanded");
  let to = null;
  switch (e.key) {
    case "ArrowDown": to = all[at + 1]; break;
    case "ArrowUp": to = all[at - 1]; break;
    case "Home": to = all[0]; break;
    case "End": to = all[all.length - 1]; break;
    case "ArrowRight": if (expanded === "true") to = all[at + 1]; else expand(item, true); break;
    case "ArrowLeft": if (expanded === "true") expand(item, false); else to = item.parentElement.closest("li[role=treeitem]"); break;
    case "Enter": case " ": expand(item, expanded === "false"); break;
    default: return;
  }
  if (to) focusItem(to);
  e.preventDefault();
  e.stopPropagation();
}
