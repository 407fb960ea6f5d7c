// Time: when samples were taken. data.samples is flat, three numbers a sample: microseconds since
// the sample before, row of data.stacks (counted over all threads), and wall time in microseconds
// times two, plus one if the sample has CPU time.

const TIMES = (() => {
  const flat = data.samples || [], n = flat.length / 3;
  if (n === 0 && !data.lanes) return null;
  const at = new Float64Array(n), row = new Int32Array(n), wall = new Float64Array(n), cpu = new Uint8Array(n);
  for (let i = 0, now = 0; i < n; i++) {
    now += flat[3 * i];
    at[i] = now;
    row[i] = flat[3 * i + 1];
    wall[i] = Math.floor(flat[3 * i + 2] / 2);
    cpu[i] = flat[3 * i + 2] % 2;
  }
  const node = [], kind = [], place = [], thread = [], weight = [], index = name => METRICS.findIndex(m => m[0] === name);
  const time = index("cpu"), count = index("cpu_samples");
  data.stacks.forEach((r, t) => {
    for (let i = 0; i < r.length; i += STRIDE) {
      node.push(r[i]);
      kind.push(data.kinds[t][i / STRIDE]);
      place.push(data.places[t][i / STRIDE]);
      thread.push(t);
      weight.push(r[i + 1 + count] > 0 ? r[i + 1 + time] / r[i + 1 + count] : 0); // nanoseconds of a CPU sample
    }
  });
  const hits = cpu.reduce((a, b) => a + b, 0), sum = cpu.reduce((a, b, i) => a + (b ? weight[row[i]] : 0), 0);
  return { n, at, row, wall, cpu, node, kind, place, thread, weight, length: Math.max(data.length || 0, n > 0 ? at[n - 1] : 0, 1), period: hits > 0 ? sum / hits : 1e7 };
})();

// columnsFor returns how many columns fit into w pixels, so that a column of a busy processor has
// a few samples and shows more than their noise.
function columnsFor(w, pixels) { return Math.max(10, Math.min(Math.floor(w / pixels), Math.floor(TIMES.length * 1000 / TIMES.period / 5))); }

// span is the chosen part of the time in microseconds, null for all of it.
let span = null;

// eachInSpan is eachValue for the samples of the chosen time. The wall time of a sample ends when it
// was taken.
function eachInSpan(thread, metric, f) {
  const name = METRICS[metric][0], { at, row, wall, cpu } = TIMES, [from, to] = span;
  for (let i = 0; i < TIMES.n; i++) {
    const r = row[i], begin = cpu[i] ? at[i] : at[i] - wall[i];
    if (at[i] < from || begin > to || thread >= 0 && TIMES.thread[r] !== thread) continue;
    let v = 0;
    if (name === "samples") v = 1;
    else if (name === "wall") v = 1000 * Math.max(0, Math.min(at[i], to) - Math.max(at[i] - wall[i], from));
    else if (cpu[i]) v = name === "cpu" ? TIMES.weight[r] : name === "cpu_samples" ? 1 : 0;
    f(TIMES.node[r], TIMES.kind[r], v, TIMES.place[r]);
  }
}

// activity returns, for each of so many columns, the CPU time by class of the leaf (nanoseconds),
// and whether a sample of any kind covers it. thread -1 is all.
function activity(thread, columns) {
  const classes = data.classes.length, cpu = new Float64Array(columns * classes), alive = new Uint8Array(columns);
  const column = t => Math.max(0, Math.min(columns - 1, Math.floor(t * columns / TIMES.length)));
  for (let i = 0; i < TIMES.n; i++) {
    const r = TIMES.row[i];
    if (thread >= 0 && TIMES.thread[r] !== thread) continue;
    const to = column(TIMES.at[i]);
    if (TIMES.cpu[i] && TIMES.node[r] > 0) cpu[to * classes + symbols[base.symbol[TIMES.node[r]]].cls] += TIMES.weight[r];
    for (let c = column(TIMES.at[i] - TIMES.wall[i]); c <= to; c++) alive[c] = 1;
  }
  return { cpu, alive, columns, full: TIMES.length * 1000 / columns }; // full: one processor busy
}

// paintActivity draws columns of stacked colors into the upper h pixels of a canvas, which is w x all
// pixels of CSS. most is the value of h, nanoseconds of CPU time a column.
function paintActivity(canvas, a, w, h, most, all = h) {
  const ratio = devicePixelRatio || 1, ctx = canvas.getContext("2d"), classes = data.classes.length;
  canvas.width = Math.round(w * ratio);
  canvas.height = Math.round(all * ratio);
  Object.assign(canvas.style, { width: w + "px", height: all + "px" });
  ctx.scale(ratio, ratio);
  for (let c = 0; c < a.columns; c++) {
    const x = c * w / a.columns, wide = w / a.columns + 0.3;
    let y = h;
    if (a.alive[c]) { ctx.fillStyle = picture.colors.root; ctx.fillRect(x, h - 2, wide, 2); }
    for (let k = 0; k < classes; k++) {
      const high = a.cpu[c * classes + k] / most * h;
      if (high <= 0) continue;
      ctx.fillStyle = picture.classFills[k];
      ctx.fillRect(x, y - high, wide, high);
      y -= high;
    }
  }
  return ctx;
}

const seconds = t => (t / 1e6).toLocaleString("en-US", { maximumFractionDigits: TIMES.length < 1e7 ? 2 : 1 }) + " s";

// greatest returns the CPU time of the busiest column.
function greatest(a) {
  const classes = data.classes.length;
  let most = 0;
  for (let c = 0; c < a.columns; c++) {
    let sum = 0;
    for (let k = 0; k < classes; k++) sum += a.cpu[c * classes + k];
    most = Math.max(most, sum);
  }
  return most;
}

const LANE = 12; // pixels

// drawLanes draws what concerns the whole process below the axis, a row each, as marks of at least a
// pixel. Their names are beside the marks, or over them.
function drawLanes(ctx, w, top) {
  (data.lanes || []).forEach((lane, i) => {
    const y = top + i * LANE;
    ctx.fillStyle = picture.colors.gap;
    for (let k = 0; k < lane.spans.length; k += 2) ctx.fillRect(lane.spans[k] / TIMES.length * w, y + 2, Math.max(1, lane.spans[k + 1] / TIMES.length * w), LANE - 3);
    ctx.font = "10px system-ui, sans-serif";
    const wide = ctx.measureText(lane.name).width;
    ctx.fillStyle = picture.colors.bg + "d0";
    ctx.fillRect(1, y + 1, wide + 4, LANE - 1);
    ctx.fillStyle = picture.colors.dim;
    ctx.fillText(lane.name, 3, y + LANE - 2);
  });
}

// drawTime draws the axis: processors in use over time, of the chosen thread or all.
function drawTime() {
  const box = $("time");
  box.hidden = !TIMES;
  if (!TIMES) return;
  const w = Math.max(50, $("axis").parentElement.clientWidth), plot = TIMES.n > 0 ? 44 : 14, h = plot + LANE * (data.lanes || []).length, a = activity(state.thread, columnsFor(w, 3));
  const most = Math.max(greatest(a), a.full), ctx = paintActivity($("axis"), a, w, plot, most, h);
  ctx.fillStyle = picture.colors.dim;
  ctx.font = "10px system-ui, sans-serif";
  if (TIMES.n > 0) ctx.fillText((most / a.full).toFixed(1) + " processors", 3, 10);
  drawLanes(ctx, w, plot);
  ctx.fillStyle = picture.colors.dim;
  ctx.textAlign = "right";
  ctx.fillText(seconds(TIMES.length), w - 3, 10);
  if (span) {
    const x0 = span[0] / TIMES.length * w, x1 = span[1] / TIMES.length * w;
    ctx.fillStyle = picture.colors.bg + "b0";
    ctx.fillRect(0, 0, x0, h);
    ctx.fillRect(x1, 0, w - x1, h);
    ctx.strokeStyle = picture.colors.fg;
    ctx.strokeRect(x0 + 0.5, 0.5, Math.max(1, x1 - x0 - 1), h - 1);
  }
  $("span").value = TIMES.n === 0 ? "" : span ? `${seconds(span[0])} to ${seconds(span[1])}` : "drag over a part of the time to see only that";
  $("whole").hidden = !span;
  $("axis").setAttribute("aria-valuetext", span ? $("span").value : "all of the time, " + seconds(TIMES.length));
}

// setSpan chooses a part of the time, null for all of it.
function setSpan(to) {
  if (to) {
    const [a, b] = to.map(t => Math.max(0, Math.min(TIMES.length, t)));
    to = [Math.min(a, b), Math.max(a, b)];
    if (to[1] - to[0] < TIMES.length / 2000) to = null; // a click
  }
  span = to;
  rebuild();
}

// timeKey moves the chosen part by the keyboard: arrows move it, with Shift its end.
function timeKey(e) {
  const step = TIMES.length / 50, by = { ArrowLeft: -step, ArrowRight: step }[e.key];
  if (e.key === "Escape" || e.key === "Home") setSpan(null);
  else if (!by) return;
  else if (!span) setSpan([0, TIMES.length / 10]);
  else if (e.shiftKey) setSpan([span[0], Math.max(span[0] + step, span[1] + by)]);
  else if (span[0] + by >= -1 && span[1] + by <= TIMES.length + 1) setSpan([span[0] + by, span[1] + by]);
  e.preventDefault();
  e.stopPropagation();
}

// watchTime lets the mouse or a finger choose a part of the time.
function watchTime() {
  if (!TIMES || TIMES.n === 0) $("shape").querySelector("[data-v=threads]").remove();
  if (!TIMES) return;
  new ResizeObserver(() => requestAnimationFrame(drawTime)).observe($("time"));
  if (TIMES.n === 0) return; // there is nothing to choose
  const axis = $("axis");
  let from = -1;
  const when = e => { const b = axis.getBoundingClientRect(); return (e.clientX - b.left) / b.width * TIMES.length; };
  axis.addEventListener("pointerdown", e => { from = when(e); axis.setPointerCapture(e.pointerId); });
  axis.addEventListener("pointermove", e => {
    if (from < 0) return;
    const to = when(e);
    span = [Math.max(0, Math.min(from, to)), Math.min(TIMES.length, Math.max(from, to))];
    drawTime();
  });
  axis.addEventListener("pointerup", e => { if (from >= 0) setSpan([from, when(e)]); from = -1; });
  axis.addEventListener("pointercancel", () => { from = -1; });
  axis.addEventListener("keydown", timeKey);
  $("whole").onclick = () => setSpan(null);
}

const MAX_LANES = 300;

// drawThreads lists the threads, the busiest first, each with what it did over time. A click on
// a thread shows its stacks.
function drawThreads(box) {
  const busy = data.threads.map(() => 0), table = element("table"), w = Math.max(120, box.clientWidth - 330), columns = columnsFor(w, 2);
  for (let i = 0; i < TIMES.n; i++) if (TIMES.cpu[i]) busy[TIMES.thread[TIMES.row[i]]] += TIMES.weight[TIMES.row[i]];
  const order = data.threads.map((_, t) => t).filter(t => data.threads[t][1] > 0).sort((a, b) => busy[b] - busy[a] || a - b), rows = [];
  const body = table.createTBody();
  for (const t of order.slice(0, MAX_LANES)) {
    const tr = body.insertRow(), b = element("button", data.threads[t][0], { title: "show the stacks of this thread" }), canvas = element("canvas");
    b.onclick = () => { state.thread = t; $("thread").value = String(t); setShape("flame"); rebuild(); };
    canvas.setAttribute("aria-hidden", "true");
    const name = element("td", undefined, { className: "name" }), lane = element("td", undefined, { className: "lane" });
    name.append(b);
    lane.append(canvas);
    tr.append(name, element("td", formatValue(Math.round(busy[t]), METRICS.findIndex(m => m[0] === "cpu")), { className: "number" }), lane);
    rows.push([canvas, t]);
  }
  box.replaceChildren(table);
  for (const [canvas, t] of rows) { const a = activity(t, columns); paintActivity(canvas, a, w, 16, a.full); }
  if (order.length > MAX_LANES) box.append(element("p", `${order.length - MAX_LANES} more threads, with less CPU time`));
}
