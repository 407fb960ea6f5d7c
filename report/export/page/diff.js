// The comparison of two recordings, in the page of seedwalk diff. data.diff holds the functions as
// package diff has judged them, and what is needed to judge a node of a tree in the same way.
// Times of the recording after are divided by the scale.

const SLOWER = ["▲ slower", "slower"], FASTER = ["▼ faster", "faster"];

// variance is that of a time of so many samples. No sample says that there was at most about one.
function variance(t, n) { return n > 0 ? t * t / n : DIFF.perSample * DIFF.perSample; }

// logMean is the logarithmic mean: the scatter multiplies times.
function logMean(a, b) { return Math.min(a, b) <= 0 || Math.abs(b - a) < 1e-6 * a ? Math.max(0, Math.min(a, b)) : (b - a) / Math.log(b / a); }

// candidate is whether a node has enough samples, and enough time for a difference that counts.
function candidate(tree, i) { return tree.sums[1][i] + tree.sums[3][i] >= DIFF.few && tree.sums[0][i] + tree.sums[2][i] >= DIFF.floor; }

// SCATTERING are the classes that scatter more than the program.
const SCATTERING = new Set(["runtime", "kernel", "stub"]);

// limitOf is how many standard errors a difference must exceed, by the number of nodes compared.
function limitOf(tree) {
  if (tree.limit === undefined) {
    let candidates = 0;
    for (let i = 1; i < tree.n; i++) if (candidate(tree, i)) candidates++;
    tree.limit = DIFF.limits[Math.min(DIFF.limits.length - 1, Math.ceil(Math.log2(Math.max(1, candidates))))];
  }
  return tree.limit;
}

// changeOf compares the totals of a node.
function changeOf(tree, i) {
  const [here, hereCount, there, thereCount] = tree.sums.map(v => v[i]), flip = state.thread === BEFORE;
  const [before, beforeCount, after, afterCount] = flip ? [here, hereCount, there, thereCount] : [there, thereCount, here, hereCount];
  const delta = after - before, scatter = DIFF.scatter[i > 0 && SCATTERING.has(data.classes[symbols[tree.symbol[i]].cls]) ? 1 : 0], spread = (scatter * logMean(before, after)) ** 2;
  const error = Math.sqrt(variance(before, beforeCount) + variance(after, afterCount) + spread);
  return { before, beforeCount, after, afterCount, delta, error, significant: candidate(tree, i) && Math.abs(delta) > limitOf(tree) * error && Math.abs(delta) >= DIFF.floor };
}

// verdict is what a difference means, null if it may be noise.
function verdict(change) { return !change.significant ? null : change.delta > 0 ? SLOWER : FASTER; }

// changeColor is the name of a color: red if slower, blue if faster, in three strengths.
function changeColor(change) {
  const v = verdict(change), part = Math.abs(change.delta) / Math.max(change.before, change.after, 1);
  return v ? v[1] + (part < 0.2 ? 1 : part < 0.5 ? 2 : 3) : "same";
}

function signed(v) { return (v < 0 ? "-" : "+") + formatValue(Math.round(Math.abs(v)), state.metric); }

// describeChange says what a node's difference is, in one phrase.
function describeChange(change) {
  const v = verdict(change);
  return v ? `${v[1]} by ${formatValue(Math.round(Math.abs(change.delta)), state.metric)}` : "no difference beyond noise";
}

function changeRows(change) {
  const side = (v, n) => `${formatValue(Math.round(v), state.metric)}, ${counted(n, state.metric)}`;
  return [["before", side(change.before, change.beforeCount)], ["after", side(change.after, change.afterCount)],
    ["difference", `${signed(change.delta)} (± ${formatValue(Math.round(change.error), state.metric)}), ${describeChange(change)}`]];
}

function drawDiffLegend() {
  const key = (text, colors) => {
    const e = element("span", undefined, { className: "key" });
    for (const c of colors) { const i = element("i"); i.style.setProperty("--c", `var(--${c})`); e.append(i); }
    e.append(text);
    return e;
  };
  const steps = v => [1, 2, 3].map(k => v[1] + k);
  $("legend").replaceChildren(key(SLOWER[0], steps(SLOWER)), key(FASTER[0], steps(FASTER)), key("no difference beyond noise", ["same"]));
}

// changes are the functions of the comparison, as package diff has sorted them.
const changes = !DIFF ? [] : (() => {
  const of = new Map();
  symbols.forEach((s, i) => { const key = s.name + "\n" + s.module; if (!of.has(key)) of.set(key, i); });
  return DIFF.rows.map(([name, module, before, after, beforeCount, afterCount, delta, error, significant]) =>
    ({ name, module, symbol: of.get(name + "\n" + module), before, after, beforeCount, afterCount, delta, error, significant: significant === 1 }));
})();

function changeRow(body, c) {
  const tr = body.insertRow(), v = verdict(c), i = element("i", undefined, { className: "class" });
  i.style.setProperty("--c", `var(--${changeColor(c)})`);
  const cell = (text, name = "number") => { const td = element("td", text, { className: name }); tr.append(td); return td; };
  cell((v ? v[0][0] + " " : "") + signed(c.delta)).prepend(i);
  for (const t of [c.before, c.after]) cell(formatValue(Math.round(t), state.metric));
  for (const n of [c.beforeCount, c.afterCount]) cell(n.toLocaleString("en-US"), "number time");
  const name = cell(c.symbol === undefined ? c.name : undefined, "name");
  if (c.symbol !== undefined) name.append(element("button", c.name, { title: "who calls it, and whom it calls", onclick: () => callersOf(c.symbol) }));
  if (!v) { tr.className = "weak"; name.append(element("span", "  (may be noise)")); }
  cell(c.module, "");
}

// drawChanges lists the functions by self time: those that became slower first, then those that
// became faster, then those whose difference may be noise.
function drawChanges(box) {
  const found = c => !state.pattern || state.pattern.test(c.name) || state.pattern.test(c.module), shown = changes.filter(found);
  const table = element("table"), head = table.createTHead().insertRow(), body = table.createTBody();
  for (const text of ["difference", "before", "after", "samples before", "after"]) head.append(element("th", text, { className: text.startsWith("samples") || head.cells.length === 4 ? "number time" : "number" }));
  head.append(element("th", "function (self time)"), element("th", "module"));
  for (const c of shown.slice(0, TOP_ROWS)) changeRow(body, c);
  const none = changes.some(c => c.significant) ? [] : [element("p", "No difference beyond noise.")];
  box.replaceChildren(...none, table);
  if (shown.length > TOP_ROWS) box.append(element("p", `${shown.length - TOP_ROWS} more; search to narrow them down`));
}
