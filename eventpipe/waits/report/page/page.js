"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
// Columns of data.waits, one flat row each.
const [THREAD, KIND, STATE, START, LENGTH, STACK, OWNER, DEPTH, IDLE] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const kinds = ["lock", "wait", "monitor-wait"], states = ["", "begun before the trace: at least this long", "not over at the end: at least this long", "unreliable"];
const $ = id => document.getElementById(id);
const canvas = $("lines"), ctx = canvas.getContext("2d");
const rowHeight = 22, head = 24, left = 150;
let from = 0, to = Math.max(data.end, 1), rows = [], rowOf = new Map(), hit = null, selected = null;

function span(us) {
	if (us >= 1e6) return (us / 1e6).toFixed(3) + " s";
	return us >= 1e3 ? (us / 1e3).toFixed(3) + " ms" : us.toFixed(1) + " us";
}

function text(tag, content, cls) {
	const e = document.createElement(tag);
	e.textContent = content;
	if (cls) e.className = cls;
	return e;
}

const shown = w => $("idle").checked || !w[IDLE];

// The orders of rows besides that of the data, which is the time waited, most first.
const orders = {
	time: () => 0,
	name: (a, b) => data.threads[a].localeCompare(data.threads[b], "en", { numeric: true }),
	first: (a, b, used) => used.get(a) - used.get(b),
};

// Rows are the threads that have something to show, and owners of locks.
function layout() {
	const used = new Map(); // to the start of the first wait
	for (const w of data.waits) if (shown(w)) for (const t of [w[THREAD], w[OWNER]]) if (t >= 0) used.set(t, Math.min(used.get(t) ?? Infinity, w[START]));
	rows = data.threads.map((_, i) => i).filter(i => used.has(i)).sort((a, b) => orders[$("order").value](a, b, used));
	rowOf = new Map(rows.map((t, i) => [t, i]));
	const ratio = devicePixelRatio || 1, width = $("frame").clientWidth, height = head + rows.length * rowHeight + 4;
	canvas.style.height = height + "px";
	canvas.width = width * ratio;
	canvas.height = Math.min(height * ratio, 30000);
	ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
	draw();
}

const width = () => $("frame").clientWidth;
const x = us => left + (us - from) / (to - from) * (width() - left - 8);
const time = px => from + (px - left) / (width() - left - 8) * (to - from);

function draw() {
	const css = getComputedStyle(document.documentElement), color = n => css.getPropertyValue(n);
	const height = head + rows.length * rowHeight + 4;
	ctx.clearRect(0, 0, width(), height);
	ctx.font = "12px system-ui, sans-serif";
	ctx.textBaseline = "middle";
	rows.forEach((_, i) => { if (i % 2 == 0) { ctx.fillStyle = color("--row"); ctx.fillRect(0, head + i * rowHeight, width(), rowHeight); } });
	axis(color, height);
	ctx.save();
	ctx.beginPath();
	ctx.rect(left, 0, width() - left, height);
	ctx.clip();
	for (const w of data.waits) if (shown(w)) bar(w, color);
	for (const w of data.waits) if (shown(w) && w[OWNER] >= 0) held(w, color);
	ctx.restore();
	ctx.fillStyle = color("--fg");
	rows.forEach((t, i) => ctx.fillText(data.threads[t], 6, head + (i + .5) * rowHeight, left - 12));
}

function axis(color, height) {
	const step = Math.pow(10, Math.floor(Math.log10(Math.max((to - from) / 4, 1))));
	const every = (to - from) / step > 20 ? step * 5 : step * ((to - from) / step > 8 ? 2 : 1);
	ctx.strokeStyle = color("--line");
	ctx.fillStyle = color("--soft");
	for (let t = Math.ceil(from / every) * every; t <= to; t += every) {
		ctx.beginPath();
		ctx.moveTo(x(t), head - 4);
		ctx.lineTo(x(t), height);
		ctx.stroke();
		if (x(t) < width() - 60) ctx.fillText(span(t), x(t) + 3, head / 2);
	}
}

function box(w, thread) {
	const row = rowOf.get(thread);
	if (row === undefined || w[START] > to || w[START] + w[LENGTH] < from) return null;
	const a = Math.max(x(w[START]), left - 2), b = Math.min(x(w[START] + w[LENGTH]), width() + 2);
	const inset = thread === w[THREAD] ? 4 + Math.min(w[DEPTH], 3) * 2 : 2;
	return [a, head + row * rowHeight + inset, Math.max(b - a, 1.5), rowHeight - 2 * inset];
}

function bar(w, color) {
	const r = box(w, w[THREAD]);
	if (!r) return;
	ctx.fillStyle = color("--k" + w[KIND]);
	ctx.globalAlpha = w[STATE] == 3 ? .25 : w[DEPTH] ? .55 : .9;
	ctx.fillRect(...r);
	ctx.globalAlpha = 1;
	if (w === selected) { ctx.strokeStyle = color("--fg"); ctx.lineWidth = 2; ctx.strokeRect(...r); ctx.lineWidth = 1; }
}

// held outlines the time of a wait on the row of the lock's owner.
function held(w, color) {
	const r = box(w, w[OWNER]);
	if (!r) return;
	ctx.strokeStyle = color("--held");
	ctx.lineWidth = w === selected ? 3 : 1.5;
	ctx.strokeRect(...r);
	ctx.lineWidth = 1;
	if (w !== selected) return;
	const own = box(w, w[THREAD]); // a line from who waits to who holds
	ctx.setLineDash([4, 3]);
	ctx.beginPath();
	ctx.moveTo(r[0], r[1] + r[3] / 2);
	ctx.lineTo(own[0], own[1] + own[3] / 2);
	ctx.stroke();
	ctx.setLineDash([]);
}

function at(px, py) {
	const row = rows[Math.floor((py - head) / rowHeight)];
	let best = null;
	for (const w of data.waits) {
		if (w[THREAD] !== row || !shown(w)) continue;
		const r = box(w, row);
		if (r && px >= r[0] - 2 && px <= r[0] + r[2] + 2 && (!best || w[DEPTH] >= best[DEPTH])) best = w;
	}
	return best;
}

function tip(w, event) {
	const t = $("tip");
	t.hidden = !w;
	if (!w) return;
	t.replaceChildren(text("b", line(w)), text("div", data.stacks[w[STACK]].slice(0, 4).join(" < ")));
	t.style.left = Math.max(Math.min(event.clientX + 14, innerWidth - t.offsetWidth - 8), 4) + "px";
	t.style.top = Math.min(event.clientY + 14, innerHeight - t.offsetHeight - 8) + "px";
}

function line(w) {
	let s = `${span(w[LENGTH])} ${kinds[w[KIND]]} of ${data.threads[w[THREAD]]} at ${span(w[START])}`;
	if (w[OWNER] >= 0) s += `, held by ${data.threads[w[OWNER]]}`;
	return states[w[STATE]] ? `${s} (${states[w[STATE]]})` : s;
}

function select(w) {
	selected = w;
	const d = $("detail");
	d.replaceChildren();
	if (!w) { d.append(text("p", "Nothing is selected.", "hint")); draw(); return; }
	d.append(text("p", line(w)), text("pre", data.stacks[w[STACK]].join("\n")));
	if (w[OWNER] >= 0) owner(w, d);
	draw();
}

// owner says what the owner of a lock itself waited for meanwhile.
function owner(w, d) {
	const other = data.waits.filter(o => o[THREAD] === w[OWNER] && o[STATE] < 3 && o[START] < w[START] + w[LENGTH] && o[START] + o[LENGTH] > w[START]);
	if (!other.length) return;
	other.sort((a, b) => b[LENGTH] - a[LENGTH]);
	d.append(text("p", "Meanwhile its owner: " + line(other[0])), text("pre", data.stacks[other[0][STACK]].join("\n")));
}

function move(a, b) {
	const size = Math.min(Math.max(b - a, 1), Math.max(data.end, 1));
	from = Math.max(0, Math.min(a, Math.max(data.end, 1) - size));
	to = from + size;
	draw();
}

const zoom = (center, f) => move(center - (center - from) * f, center + (to - center) * f);

let drag = null, moved = false;
canvas.addEventListener("wheel", e => {
	if (!e.ctrlKey && !e.shiftKey && Math.abs(e.deltaX) > Math.abs(e.deltaY)) { const d = e.deltaX / width() * (to - from); move(from + d, to + d); }
	else zoom(time(e.offsetX), e.deltaY > 0 ? 1.2 : 1 / 1.2);
	e.preventDefault();
}, { passive: false });
canvas.addEventListener("pointerdown", e => { drag = { px: e.offsetX, from, to }; moved = false; canvas.setPointerCapture(e.pointerId); });
canvas.addEventListener("pointermove", e => {
	if (drag) {
		const d = (drag.px - e.offsetX) / (width() - left) * (drag.to - drag.from);
		moved = moved || Math.abs(e.offsetX - drag.px) > 3;
		move(drag.from + d, drag.to + d);
		return;
	}
	hit = at(e.offsetX, e.offsetY);
	tip(hit, e);
});
canvas.addEventListener("pointerup", e => { if (!moved) select(at(e.offsetX, e.offsetY)); drag = null; });
canvas.addEventListener("pointerleave", () => tip(null));
canvas.addEventListener("keydown", e => {
	const step = (to - from) / 5, mid = (from + to) / 2;
	const todo = { ArrowLeft: () => move(from - step, to - step), ArrowRight: () => move(from + step, to + step), "+": () => zoom(mid, 1 / 1.4), "=": () => zoom(mid, 1 / 1.4),
		"-": () => zoom(mid, 1.4), "0": () => move(0, data.end), Escape: () => select(null) }[e.key];
	if (todo) { todo(); e.preventDefault(); }
});

function pick(row, todo) {
	row.tabIndex = 0;
	row.addEventListener("click", todo);
	row.addEventListener("keydown", e => { if (e.key === "Enter") todo(); });
}

function tables() {
	const body = $("waits").tBodies[0];
	body.replaceChildren();
	const list = data.waits.filter(w => shown(w) && w[DEPTH] === 0 && w[STATE] < 3).sort((a, b) => b[LENGTH] - a[LENGTH]).slice(0, 50);
	for (const w of list) {
		const tr = document.createElement("tr");
		tr.append(text("td", (w[STATE] ? ">" : "") + span(w[LENGTH]), "n"), text("td", kinds[w[KIND]]), text("td", data.threads[w[THREAD]]),
			text("td", w[OWNER] >= 0 ? data.threads[w[OWNER]] : ""), text("td", span(w[START]), "n"), text("td", data.stacks[w[STACK]].join(" < ")));
		pick(tr, () => { select(w); const gap = w[LENGTH] * .2 + 1; move(w[START] - gap, w[START] + w[LENGTH] + gap); $("frame").scrollIntoView({ block: "nearest" }); });
		body.append(tr);
	}
	const places = $("sites").tBodies[0];
	places.replaceChildren();
	for (const s of data.sites.filter(s => $("idle").checked || !s[5]).slice(0, 50)) {
		const tr = document.createElement("tr");
		tr.append(text("td", span(s[1]), "n"), text("td", span(s[2]), "n"), text("td", String(s[3]), "n"), text("td", kinds[s[0]]), text("td", data.stacks[s[4]].join(" < ")));
		places.append(tr);
	}
}

$("facts").textContent = data.facts.join(" · ");
for (const n of data.notes) $("notes").append(text("li", n));
$("idle").addEventListener("change", () => { layout(); tables(); });
$("order").addEventListener("change", layout);
addEventListener("resize", layout);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
layout();
tables();
