// Where in the source time is spent, and how sure a share is.

// placesOf adds up a metric by the symbol and the place in the source of what ran: symbol -> place ->
// value. only chooses the nodes of the shown tree, all by default.
function placesOf(tree, only = () => true) {
  const out = new Map();
  if (!tree.leaf || data.sources.length < 2) return out;
  eachValue(state.thread, state.metric, (node, category, value, place) => {
    const at = tree.leaf[node], s = base.symbol[node];
    if (!place || !(value > 0) || state.category >= 0 && category !== state.category || at === undefined || tree.symbol[at] !== s || !only(at)) return;
    const lines = out.get(s) || new Map();
    lines.set(place, (lines.get(place) || 0) + value);
    out.set(s, lines);
  });
  return out;
}

// callsOf returns the places at which a function calls another one: place -> samples, over all stacks.
const callsOf = (() => {
  let index = null;
  const key = (caller, callee) => caller * symbols.length + callee;
  return (caller, callee) => {
    if (!index) {
      index = new Map();
      for (let i = 0, c = data.calls || []; i < c.length; i += 4) {
        const k = key(c[i], c[i + 1]);
        if (!index.has(k)) index.set(k, new Map());
        index.get(k).set(c[i + 2], c[i + 3]);
      }
    }
    return index.get(key(caller, callee));
  };
})();

// lineRows are the rows of a tooltip with lines: those where a function itself runs, and those where
// its caller calls it.
function lineRows(i) {
  const up = tree.parent[i], s = tree.symbol[i], from = up > 0 ? tree.symbol[up] : -1, rows = [];
  const outward = tree.inverted || tree.side && tree.side[i] < 0; // the node is the caller of its parent
  const all = tree.inverted ? from < 0 : tree.side && tree.side[i] === 0; // the node has all of the function's own time
  const own = tree === whole ? placesOf(whole, n => n === i).get(s) : all ? placesOf(whole).get(s) : null;
  const lines = hottest(own, tree.inverted ? tree.total[i] : tree.self[i], 3);
  if (lines.length > 0) rows.push(["own lines", lines.join(", ")]);
  if (from < 0) return rows;
  const calls = outward ? callsOf(s, from) : callsOf(from, s), sum = [...calls ? calls.values() : []].reduce((a, b) => a + b, 0);
  if (sum > 0) rows.push([outward ? "calls it at" : "called at", hottest(calls, sum, 3).join(", ")]);
  return rows;
}

// hottest returns the places of a function as texts, the hottest first, each with its share of the function's own
// value. A file that is the same as the one before is left out.
function hottest(lines, self, most) {
  const sorted = [...lines || []].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  let last = "";
  const out = sorted.slice(0, most).map(([place, value]) => {
    const [, file, line] = /^(.*):(\d+)$/.exec(data.sources[place]), same = file === last;
    last = file;
    return `${same ? "" : file.replace(/^.*[/\\]/, "")}:${line} ${sharePercent(Math.min(1, value / self))}`;
  });
  return sorted.length > most ? [...out, `${sorted.length - most} more`] : out;
}

// interval returns the bounds between which the true share is in 95 of 100 recordings, if a share p was seen
// among n samples (E. B. Wilson, 1927: of a binomial distribution, also for few samples).
function interval(p, n) {
  const z = 1.96, d = 1 + z * z / n, middle = p + z * z / (2 * n), w = z * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return [Math.max(0, (middle - w) / d), Math.min(1, (middle + w) / d)];
}

// boundsOf returns interval of a value, null where nothing was sampled.
function boundsOf(value, count, tree) {
  const all = tree.total[0], n = tree.count[0];
  return sampled(state.metric) && count > 0 && all > 0 && n > 0 && value <= all ? interval(value / all, n) : null;
}

// boundsText is the interval of a share in words, "" if there is none.
function boundsText(value, count, tree) {
  const b = boundsOf(value, count, tree);
  return b ? ` (${sharePercent(b[0]).replace(" %", "")} to ${sharePercent(b[1])})` : "";
}

// shareBar draws a share as a bar with its interval.
function shareBar(value, count, tree, cls) {
  const td = element("td", undefined, { className: "bar" }), bar = element("i"), b = boundsOf(value, count, tree);
  bar.style.width = 100 * value / tree.total[0] + "%";
  bar.style.setProperty("--c", `var(--${cls})`);
  td.append(element("div"));
  td.firstChild.append(bar);
  if (b) {
    const error = element("b");
    error.style.left = 100 * b[0] + "%";
    error.style.width = 100 * (b[1] - b[0]) + "%";
    td.firstChild.append(error);
    td.title = "by sampling alone" + boundsText(value, count, tree) + " in 95 of 100 recordings";
  }
  return td;
}
