// The picture: a canvas as large as what is visible, above a spacer as high as
// the whole graph, so that no graph is too deep for the browser.

const ROW = 19, MIN_PIXELS = 0.6, FONT = '12px ui-monospace, "DejaVu Sans Mono", "Cascadia Mono", Menlo, Consolas, monospace';

class Picture {
  constructor(view, canvas, space) {
    Object.assign(this, { view, canvas, space, ctx: canvas.getContext("2d"), tree: null, focus: 0, chosen: -1, shape: "flame", matches: null, hover: -1, rows: 1, middle: 0, pending: false });
    view.addEventListener("scroll", () => this.redraw());
    new ResizeObserver(() => requestAnimationFrame(() => this.layout())).observe(view);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.readColors(); this.redraw(); });
    this.readColors();
  }

  readColors() {
    const style = getComputedStyle(document.documentElement), get = name => style.getPropertyValue("--" + name).trim();
    this.colors = { bg: get("bg"), ink: get("ink"), fg: get("fg"), dim: get("dim"), root: get("root"), match: get("match"), gap: get("gap"), gap2: get("gap2") };
    this.changeFills = new Map();
    this.changeColor = c => this.changeFills.get(c) || this.changeFills.set(c, get(c)).get(c);
    this.classFills = data.classes.map(c => get(c));
    this.fills = [];
    this.hatch = null;
  }

  // show sets what to draw: tree, focus, shape.
  show(what) {
    const turned = what.shape && what.shape !== this.shape;
    Object.assign(this, what);
    this.hover = -1;
    if (what.tree) this.chosen = -1;
    this.layout();
    if (turned || what.tree || what.focus !== undefined) this.view.scrollTop = this.shape === "flame" ? this.space.offsetTop + this.space.offsetHeight : this.middle * ROW - this.height / 2;
    this.redraw();
  }

  // layout fits canvas and spacer to the window and the rows there are.
  layout() {
    if (!this.tree) return;
    const w = this.view.clientWidth, h = this.view.clientHeight, ratio = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(h * ratio)) {
      this.canvas.width = Math.round(w * ratio);
      this.canvas.height = Math.round(h * ratio);
      this.canvas.style.height = h + "px";
      this.hatch = null;
    }
    this.width = w; this.height = h; this.ratio = ratio;
    this.rows = this.countRows();
    this.space.style.height = Math.max(0, this.rows * ROW - h) + "px";
    this.redraw();
  }

  scale() { return this.tree.total[this.focus] > 0 ? this.width / this.tree.total[this.focus] : 0; }

  countRows() {
    const { tree } = this, scale = this.scale(), stack = [this.focus];
    let deepest = tree.depth[this.focus], highest = 1;
    while (stack.length > 0) {
      const i = stack.pop();
      if (tree.side && tree.side[i] < 0) highest = Math.max(highest, tree.depth[i]); else deepest = Math.max(deepest, tree.depth[i]);
      for (let j = tree.first[i]; j < tree.first[i + 1]; j++) if (tree.total[tree.child[j]] * scale >= MIN_PIXELS) stack.push(tree.child[j]);
    }
    this.middle = tree.side ? highest - 1 : 0;
    return tree.side ? highest - 1 + deepest : deepest + 1;
  }

  // y is where a node's row begins. In a sandwich the row of the symbol is the middle,
  // and the root has none.
  y(i) {
    const { depth, side } = this.tree;
    if (!side) return this.top(depth[i]);
    return (i === 0 ? -2 : this.middle + (side[i] < 0 ? -1 : 1) * (depth[i] - 1)) * ROW - this.view.scrollTop - (i === 0 ? this.height : 0);
  }

  // top is the y of a depth in the window.
  top(depth) {
    const content = Math.max(this.rows * ROW, this.shape === "flame" ? this.height : 0);
    return (this.shape === "flame" ? content - (depth + 1) * ROW : depth * ROW) - this.view.scrollTop;
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; if (this.tree) this.draw(); });
  }

  draw() {
    const { ctx, tree, focus } = this;
    ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    ctx.clearRect(0, 0, this.width, this.height);
    ctx.font = FONT;
    ctx.textBaseline = "middle";
    this.charWidth = ctx.measureText("MMMMMMMMMM").width / 10;
    if (!(tree.total[focus] > 0)) return;
    for (let i = tree.parent[focus]; i >= 0; i = tree.parent[i]) this.box(i, 0, this.width, true);
    this.below(focus);
    ctx.globalAlpha = 1;
  }

  below(focus) {
    const { tree } = this, scale = this.scale(), left = tree.x[focus], stack = [focus];
    while (stack.length > 0) {
      const i = stack.pop(), x = (tree.x[i] - left) * scale;
      this.box(i, x, tree.total[i] * scale, false);
      let thin = -1, end = 0;
      for (let j = tree.first[i]; j < tree.first[i + 1]; j++) {
        if (thin >= 0 && tree.side && tree.side[tree.child[j]] !== tree.side[tree.child[j - 1]]) { this.dust(tree.child[j - 1], thin, end - thin); thin = -1; }
        const c = tree.child[j], w = tree.total[c] * scale, cx = (tree.x[c] - left) * scale;
        if (w >= MIN_PIXELS) {
          if (thin >= 0) { this.dust(c, thin, end - thin); thin = -1; }
          stack.push(c);
        } else {
          if (thin < 0) thin = cx;
          end = cx + w;
        }
      }
      if (thin >= 0) this.dust(tree.child[tree.first[i + 1] - 1], thin, end - thin);
    }
  }

  // dust stands for calls too narrow to draw.
  dust(node, x, w) {
    const y = this.y(node);
    if (w < MIN_PIXELS || y > this.height || y + ROW < 0) return;
    this.ctx.globalAlpha = 0.5;
    this.ctx.fillStyle = this.colors.root;
    this.ctx.fillRect(x, y, w, ROW - 1);
  }

  box(i, x, w, above) {
    const y = this.y(i), { ctx, colors } = this;
    if (y > this.height || y + ROW < 0) return;
    const s = i > 0 ? symbols[this.tree.symbol[i]] : null, hit = s && this.matches && this.matches[this.tree.symbol[i]];
    const gap = w > 3 ? 1 : 0, h = ROW - 1;
    ctx.globalAlpha = above ? 0.55 : this.matches && !hit ? 0.3 : 1;
    ctx.fillStyle = hit ? colors.match : this.fill(i, s);
    ctx.fillRect(x, y, w - gap, h);
    if (hit && s.cls === GAP) { ctx.globalAlpha = 0.45; ctx.fillStyle = this.fill(i, s); ctx.fillRect(x, y, w - gap, h); }
    if (s && s.doubtful && w > 4) this.dashes(x, y, w - gap, h);
    if (i === this.hover || i === this.chosen) { ctx.globalAlpha = 1; ctx.lineWidth = 2; ctx.setLineDash([]); ctx.strokeStyle = colors.fg; ctx.strokeRect(x + 1, y + 1, Math.max(1, w - gap - 2), h - 2); }
    ctx.globalAlpha = this.matches && !hit ? 0.6 : above ? 0.8 : 1;
    if (w >= 4 * this.charWidth) this.text(i, s, hit, isWeak(this.tree.count[i], this.tree.metric), x, y, w);
  }

  text(i, s, hit, weak, x, y, w) {
    const { ctx, colors } = this, gap = s && s.cls === GAP;
    const start = Math.max(x, 0) + 4, room = Math.floor((x + w - start - 3) / this.charWidth);
    const change = DIFF && s ? verdict(changeOf(this.tree, i)) : null;
    let label = (change ? change[0].slice(0, 2) : "") + shorten(s ? (weak ? "~ " : "") + (s.doubtful ? "? " : "") + s.name : rootLabel(), change ? room - 2 : room);
    // Some scripts are wider than a column; they are cut by measure.
    if (/[^\x20-\x7e…]/.test(label)) while (label && ctx.measureText(label).width > x + w - start - 2) label = [...label].slice(0, -1).join("");
    if (!label) return;
    if (gap && !hit) { // hatching is no ground to read on
      ctx.fillStyle = colors.gap;
      ctx.fillRect(start - 2, y + 2, ctx.measureText(label).width + 4, ROW - 5);
    }
    ctx.fillStyle = gap || hit ? "#ffffff" : s ? colors.ink : colors.fg;
    ctx.fillText(label, start, y + ROW / 2);
  }

  dashes(x, y, w, h) {
    const { ctx } = this;
    ctx.strokeStyle = this.colors.gap;
    ctx.lineWidth = 1.5;
    ctx.setLineDash([4, 3]);
    ctx.strokeRect(x + 1, y + 1, w - 2, h - 2);
    ctx.setLineDash([]);
  }

  fill(i, s) {
    if (!s) return this.colors.root;
    if (DIFF) return this.changeColor(changeColor(changeOf(this.tree, i)));
    const n = this.tree.symbol[i];
    if (s.cls !== GAP) return this.fills[n] || (this.fills[n] = shade(this.classFills[s.cls], s.module + s.name));
    if (!this.hatch) this.hatch = hatching(this.ctx, this.colors.gap, this.colors.gap2);
    return this.hatch;
  }

  // wide reports whether a node can be seen, at the zoom there is.
  wide(i) {
    for (let up = this.focus; up >= 0; up = this.tree.parent[up]) if (up === i) return true;
    let up = i;
    while (up > 0 && up !== this.focus) up = this.tree.parent[up];
    return up === this.focus && this.tree.total[i] * this.scale() >= MIN_PIXELS;
  }

  // reveal scrolls to a node's row.
  reveal(i) {
    const y = this.y(i);
    if (y < ROW) this.view.scrollTop += y - ROW; else if (y + 2 * ROW > this.height) this.view.scrollTop += y + 2 * ROW - this.height;
    this.redraw();
  }

  // at finds the node under a point of the window, or -1.
  at(px, py) {
    const { tree, focus } = this, scale = this.scale();
    if (!tree || !scale) return -1;
    if (tree.side) return this.atSide(px, Math.floor((py + this.view.scrollTop) / ROW) - this.middle);
    const depth = this.shape === "flame" ? Math.floor((this.top(-1) - py) / ROW) : Math.floor((py - this.top(0)) / ROW);
    if (depth < 0 || depth >= this.rows) return -1;
    if (depth <= tree.depth[focus]) return pathOf(tree, focus)[depth];
    const v = tree.x[focus] + px / scale;
    let i = focus;
    while (i >= 0 && tree.depth[i] < depth) i = this.childAt(i, v);
    return i >= 0 && tree.total[i] * scale >= MIN_PIXELS ? i : -1;
  }

  // atSide is at for a sandwich, row counted from the symbol's.
  atSide(px, row) {
    const { tree, focus } = this, scale = this.scale(), depth = Math.abs(row) + 1, side = Math.sign(row), at = Math.max(1, focus);
    if (!(tree.n > 1)) return -1;
    if (depth <= tree.depth[at]) { const i = pathOf(tree, at)[depth]; return tree.side[i] === side ? i : -1; }
    if (tree.side[at] !== 0 && tree.side[at] !== side) return -1;
    const v = tree.x[at] + px / scale;
    let i = at;
    while (i >= 0 && tree.depth[i] < depth) i = this.childAt(i, v, side);
    return i >= 0 && tree.total[i] * scale >= MIN_PIXELS ? i : -1;
  }

  childAt(i, v, side) {
    const { tree } = this;
    let low = tree.first[i], high = tree.first[i + 1];
    if (side && tree.side[i] === 0) { // of the two halves of the symbol's children
      let split = low;
      while (split < high && tree.side[tree.child[split]] < 0) split++;
      if (side < 0) high = split; else low = split;
    }
    const start = low;
    while (low < high) { // the last child that begins at or before v
      const mid = (low + high) >> 1;
      if (tree.x[tree.child[mid]] <= v) low = mid + 1; else high = mid;
    }
    if (low === start) return -1;
    const c = tree.child[low - 1];
    return v < tree.x[c] + tree.total[c] ? c : -1;
  }
}

// shade darkens a class's colour a little by name, so that neighbours differ.
function shade(color, key) {
  let h = 2166136261;
  for (let i = 0; i < key.length; i++) h = Math.imul(h ^ key.charCodeAt(i), 16777619);
  const f = 1 - ((h >>> 8) % 17) / 100, n = parseInt(color.slice(1), 16);
  const part = shift => Math.round((n >> shift & 255) * f);
  return `rgb(${part(16)},${part(8)},${part(0)})`;
}

function hatching(ctx, a, b) {
  const c = document.createElement("canvas"), g = c.getContext("2d"), size = 8;
  c.width = c.height = size;
  g.fillStyle = b;
  g.fillRect(0, 0, size, size);
  g.strokeStyle = a;
  g.lineWidth = 3;
  for (const d of [-size, 0, size]) { g.beginPath(); g.moveTo(d - 1, size + 1); g.lineTo(d + size + 1, -1); g.stroke(); }
  return ctx.createPattern(c, "repeat");
}
