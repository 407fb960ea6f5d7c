package export

import (
	"fmt"
	"html"
	"math"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/browser"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// TestPageInBrowser loads pages in a real browser and looks at the document
// that its scripts have made.
func TestPageInBrowser(t *testing.T) {
	b := browser.Find(t, "the flame graph was not loaded")
	for name, c := range map[string]struct {
		p    *Profile
		want []string
	}{
		"demo": {handMade(), []string{"Click a frame to zoom in.", "managed<small>93 %",
			"gap<small>3.8 %", ".NET TP Worker (101): 180",
			`<button title="" data-v="2" aria-pressed="true">CPU time</button>`,
			`id="fold" aria-pressed="true"`}},
		"hostile": {hostile(), []string{"Click a frame to zoom in.",
			"&lt;/script&gt;&lt;script&gt;alert(1)"}},
		"empty": {&Profile{}, []string{"No samples in this selection."}},
	} {
		t.Run(name, func(t *testing.T) {
			dom, log := b.Load(t, written(t, WriteHTML, c.p), "")
			expect.Contains(t, dom, c.want...)
			expect.True(t, !strings.Contains(log, "CONSOLE"), "the browser complains:\n%s", log)
		})
	}
}

// sleepy has what is folded: threads that start and wait, beside one that works.
func sleepy() *Profile {
	frame := func(name string, c Class) Frame {
		return Frame{Name: name,
			Module: "m", ModuleIndex: -1, Class: c}
	}
	return &Profile{
		Frames: []Frame{
			0: frame("clone3", ClassNative), 1: frame("start_thread", ClassNative),
			2: frame("libcoreclr.so+0x675630", ClassRuntime),
			3: frame("libcoreclr.so+0x316540", ClassRuntime), 4: frame("App.Worker.Run", ClassManaged),
			5: frame("App.Queue.Take", ClassManaged),
			6: frame("libcoreclr.so+0x669e90", ClassRuntime), 7: frame("pthread_cond_wait", ClassNative),
			8: frame("__futex_abstimed_wait_common", ClassNative),
			9: frame("App.Work.Compute (lambda 2)", ClassManaged),
		},
		Threads: []Thread{{1, "a"}, {2, "b"}, {3, "c"}},
		Stacks: []Stack{
			{Thread: 0, Frames: []int32{9, 9, 4, 3, 2, 1, 0}, Count: 10, WallNanos: 1e9,
				CPUNanos: 9e8, Complete: true},
			{Thread: 1, Frames: []int32{8, 7, 6, 5, 4, 3, 2, 1, 0}, Count: 60,
				WallNanos: 6e9, Complete: true},
			{Thread: 2, Frames: []int32{8, 7, 6, 2, 1, 0}, Count: 30, WallNanos: 3e9, Complete: true},
		},
	}
}

// TestPageInUse works with a page as a user does: by its address, its keys, its buttons.
// What a script returns is in the document when it is looked at.
func TestPageInUse(t *testing.T) {
	b := browser.Find(t, "the flame graph was not used")
	const key = "const key = (k, o) => document.body.dispatchEvent(new KeyboardEvent('keydown', Object.assign({ key: k, bubbles: true }, o)));"
	const paths = "const paths = t => Array.from({ length: t.n }, (_, i) => i).filter(i => t.total[i] > 0).map(i => pathOf(t, i).slice(1).map(j => symbols[t.symbol[j]].name).join('/') + '=' + t.total[i]).sort().join(' ');"
	var script strings.Builder
	script.WriteString("<script>addEventListener('load', () => { const answer = f => { const out = document.createElement('pre'); out.className = 'answer'; out.textContent = f(); document.body.append(out); };\n")
	var want, names []string
	for _, c := range []struct{ name, hash, script, want string }{
		{"folded", "#m=samples", paths + "return paths(tree)",
			"=100 [thread start]/App.Worker.Run/App.Work.Compute (lambda 2)/App.Work.Compute (lambda 2)=10 [thread start]/App.Worker.Run/App.Work.Compute (lambda 2)=10 [thread start]/App.Worker.Run=10 [thread start]=10 [waiting]/App.Queue.Take=60 [waiting]/[thread of m]=30 [waiting]=90"},
		{"unfolded", "#m=samples&f=0", "return tree.n + ' ' + tree.total[0]", "15 100"},
		{"folded and hidden", "#m=samples&h=runtime",
			paths + "return tree.total[0] + ' ' + state.hidden.size", "100 1"},
		{"top", "#m=samples&v=top",
			"return [...document.querySelectorAll('#text tbody tr')].map(r => r.innerText.trim().replace(/\\s+/g, ' ')).join('|')",
			"60 % 60 60 % 60 App.Queue.Take m|30 % 30 30 % 30 [thread of m]|10 % 10 10 % 10 App.Work.Compute (lambda 2) m|0 % 0 90 % 90 [waiting]|0 % 0 10 % 10 App.Worker.Run m|0 % 0 10 % 10 [thread start]"},
		{"top by total", "#m=samples&v=top",
			"document.querySelectorAll('#text th button')[1].click(); return document.querySelector('#text tbody .name').innerText", "[waiting]"},
		{"callers of a top function", "#m=samples&f=0&v=top",
			"document.querySelectorAll('#text tbody .name button')[0].click();" + paths +
				"return state.shape + ' ' + paths(tree).split(' ').slice(-3).join(' ')",
			"callers __futex_abstimed_wait_common/pthread_cond_wait/libcoreclr.so+0x669e90=90 __futex_abstimed_wait_common/pthread_cond_wait=90 __futex_abstimed_wait_common=90"},
		{"sandwich", "#m=samples&f=0&v=callers&of=3",
			"return Array.from({ length: tree.n }, (_, i) => i).filter(i => i > 0).map(i => [tree.side[i], tree.depth[i], symbols[tree.symbol[i]].name.replace('libcoreclr.so', 'clr'), tree.total[i], tree.self[i], tree.count[i], tree.x[i]].join(',')).sort().join(' ')",
			"-1,2,clr+0x675630,70,0,70,0 -1,3,start_thread,70,0,70,0 -1,4,clone3,70,0,70,0 0,1,clr+0x316540,70,0,70,0" +
				" 1,2,App.Worker.Run,70,0,70,0 1,3,App.Queue.Take,60,0,60,0 1,3,App.Work.Compute (lambda 2),10,0,10,60 1,4,App.Work.Compute (lambda 2),10,10,10,60 1,4,clr+0x669e90,60,0,60,0 1,5,pthread_cond_wait,60,0,60,0 1,6,__futex_abstimed_wait_common,60,60,60,0"},
		{"sandwich by hand", "#m=samples&f=0&v=callers&of=4",
			"const at = (x, row) => { const i = picture.at(x * picture.width, (picture.middle + row) * ROW - picture.view.scrollTop + 2); return i < 0 ? i : symbols[tree.symbol[i]].name.replace('libcoreclr.so', 'clr'); }; return [at(0.5, 0), at(0.5, -1), at(0.5, -2), at(0.5, 1), at(0.95, 1), at(0.95, 3), at(0.5, -9), at(0.5, 9)].join(' ')",
			"App.Worker.Run clr+0x316540 clr+0x675630 App.Queue.Take App.Work.Compute (lambda 2) -1 -1 -1"},
		{"sandwich by keys", "#m=samples&f=0&v=callers&of=4",
			key + "const seen = []; for (const k of ['Up', 'Up', 'Down', 'Down', 'Down', 'Right', 'Left', 'Up', 'Up', 'Right']) { key('Arrow' + k); seen.push(symbols[tree.symbol[picture.chosen]].name.replace(/.*[.+]/, '')); } return seen.join(' ')",
			"Run 0x316540 Run Take 0x669e90 0x669e90 0x669e90 Take Run Run"},
		{"search in a sandwich", "#m=samples&f=0&v=callers&of=4&q=Queue|thread",
			"return document.getElementById('matched').value", "matched callers 100 % · callees 86 %"},
		{"zoom in a sandwich", "#m=samples&f=0&v=callers&of=4",
			"zoom(follow(tree, [4, 9])); const down = picture.at(9, (picture.middle + 2) * ROW - picture.view.scrollTop + 2); zoom(follow(tree, [4, 3])); const y = row => (picture.middle + row) * ROW - picture.view.scrollTop + 2; return symbols[tree.symbol[down]].name + ' ' + [picture.at(9, y(1)), symbols[tree.symbol[picture.at(9, y(-2))]].name].join(' ')",
			"App.Work.Compute (lambda 2) -1 libcoreclr.so+0x675630"},
		{"copy the name", "#m=samples&f=0&v=callers&of=9",
			key + "let copied = ''; Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { writeText: async x => { copied = x; } } }); key('c'); return copied", "App.Work.Compute (lambda 2)"},
		{"copy the name without leave", "#m=samples&f=0&v=callers&of=9",
			key + "let copied = ''; Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { writeText: () => { throw new Error('no'); } } }); document.execCommand = what => { copied = what + ' ' + document.activeElement.value; return true; }; document.getElementById('copy').click(); return copied + ', ' + document.getElementById('status').value + ', ' + document.querySelectorAll('textarea').length",
			"copy App.Work.Compute (lambda 2), copied App.Work.Compute (lambda 2), 0"},
		{"recursion counts once", "#m=samples&v=callers&of=9", paths + "return paths(tree)",
			"=10 App.Work.Compute (lambda 2)/App.Work.Compute (lambda 2)=10 App.Work.Compute (lambda 2)/App.Worker.Run/[thread start]=10 App.Work.Compute (lambda 2)/App.Worker.Run=10 App.Work.Compute (lambda 2)=10"},
		{"inverted", "#m=samples&f=0",
			paths + "document.getElementById('invert').click(); return location.hash + ' ' + document.getElementById('invert').getAttribute('aria-pressed') + ' ' + paths(tree).replace(/libcoreclr.so/g, 'clr').replace(/__futex_abstimed_wait_common.pthread_cond_wait.clr.0x669e90/g, 'wait').split(/(?<=\\d) /).filter(p => /^=|common=|Run=|clone3=/.test(p)).join(' ')",
			"#m=samples&v=flame&o=heavy&f=0&i=1 true =100 App.Work.Compute (lambda 2)/App.Work.Compute (lambda 2)/App.Worker.Run/clr+0x316540/clr+0x675630/start_thread/clone3=10 App.Work.Compute (lambda 2)/App.Work.Compute (lambda 2)/App.Worker.Run=10" +
				" wait/App.Queue.Take/App.Worker.Run/clr+0x316540/clr+0x675630/start_thread/clone3=60 wait/App.Queue.Take/App.Worker.Run=60 wait/clr+0x675630/start_thread/clone3=30 __futex_abstimed_wait_common=90"},
		{"inverted by key and link", "#m=samples&v=top&i=1",
			key + paths + "const seen = [tree.inverted, document.getElementById('invert').getAttribute('aria-pressed')]; key('l'); seen.push(state.shape, tree.inverted, tree.n); key('l'); seen.push(tree.inverted, location.hash); return seen.join(' ')",
			" false flame true 9  #m=samples&v=flame&o=heavy&f=1"},
		{"inverted, zoomed, and one thread", "#m=samples&f=0&i=1&t=1&z=8.7",
			"const at = picture.focus; setShape('top'); const top = picture.focus; setShape('icicle'); return tree.depth[at] + ' ' + top + ' ' + tree.inverted + ' ' + tree.total[0] + ' ' + rootLabel()",
			"2 0 true 60 b (2), from the leaves - 60 samples"},
		{"inverted tree", "#m=samples&v=tree&i=1",
			"const li = document.querySelectorAll('#text [role=treeitem]'); return [0, 1, 2].map(i => li[i].getAttribute('aria-label')).join('; ')",
			"all threads, from the leaves - 100 samples, 100 % of total, 100 samples, 3 functions at the leaves; App.Queue.Take, managed, 60 % of total, 60 samples, called by 1 function; [waiting], runtime, 60 % of total, 60 samples, outermost"},
		{"inverted, searched", "#m=samples&i=1&q=waiting",
			"return document.getElementById('matched').value", "matched 90 % · 90 samples"},
		{"categories", "#m=samples&f=0",
			"return [...document.querySelectorAll('#categories button')].map(b => b.textContent + ' ' + b.getAttribute('aria-pressed')).join('|') + ' ' + document.getElementById('categories').hidden",
			"user code 10 % false|waiting 90 % false false"},
		{"one category", "#m=samples&f=0",
			key + "document.querySelectorAll('#categories button')[0].click(); const seen = [tree.total[0], whole.count[0], location.hash, document.activeElement.textContent]; document.activeElement.click(); seen.push(tree.total[0], location.hash); return seen.join(' ')",
			"10 10 #m=samples&v=flame&o=heavy&f=0&c=user-code user code 10 % 100 #m=samples&v=flame&o=heavy&f=0"},
		{"a category by link, left by Escape", "#m=samples&c=waiting&t=2",
			key + "const seen = [tree.total[0], document.getElementById('categories').textContent]; key('Escape'); return seen.concat(tree.total[0], state.category).join(' ')",
			"30 waiting 100 % 30 -1"},
		{"callers of light leaves", "#m=samples&f=0",
			"const t = invertAll(whole, 'heavy', 12); const rest = Array.from({ length: t.n }, (_, i) => i).filter(i => t.symbol[i] === MORE); return t.n + ' ' + t.total[0] + ' ' + rest.map(i => t.total[i]).sort().join()",
			"15 100 10,30,60"},
		{"tree", "#m=samples&v=tree",
			"const li = document.querySelectorAll('#text [role=treeitem]'); return li.length + ': ' + li[1].getAttribute('aria-label') + ', level ' + li[1].getAttribute('aria-level')",
			"5: [waiting], runtime, 90 % of total, 0 % self, 90 samples, calls 2 functions, level 2"},
		{"tree by keys", "#m=samples&v=tree",
			"const tree1 = k => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: k, bubbles: true })); document.querySelector('#text li').focus(); tree1('ArrowDown'); tree1('ArrowLeft'); tree1('ArrowDown'); tree1('ArrowRight'); tree1('ArrowRight'); return document.activeElement.getAttribute('aria-label').split(',')[0]",
			"App.Worker.Run"},
		{"search", "#m=samples&q=Queue",
			"return document.getElementById('matched').value", "matched 60 % · 60 samples"},
		{"search in time", "#m=wall&q=Queue", "return document.getElementById('matched').value",
			"matched 60 % · 6 s · 60 samples"},
		{"search that does not parse", "#q=(",
			"return document.getElementById('matched').value", "bad pattern"},
		{"find next", "#m=samples&q=App",
			key + "key('n'); const a = document.getElementById('status').value; key('n'); key('n'); key('N'); return a.slice(0, 30) + document.getElementById('status').value.slice(0, 25)",
			"1 of 4  ·  App.Queue.Take, man2 of 4  ·  App.Worker.Run"},
		{"walk and zoom", "#m=samples",
			key + "key('ArrowUp'); key('ArrowUp'); key('ArrowUp'); key('ArrowRight'); key('ArrowDown'); key('ArrowRight'); const said = document.getElementById('live').textContent.split(',')[0]; key('Enter'); return said + ' ' + symbols[tree.symbol[picture.focus]].name",
			"[thread start] [thread start]"},
		{"zoom out", "#m=samples&z=10.4",
			key + "const at = picture.focus; key('Backspace'); key('Backspace'); return at + ' ' + picture.focus", "2 0"},
		{"keys", "#m=samples", key +
			"key('?'); const list = document.getElementById('keys'), shown = list.open && list.innerText.includes('sandwich: callers'); key('t'); list.close(); return shown + ' ' + state.shape", "true flame"},
		{"what a click does", "#m=samples&v=top", "return document.getElementById('crumbs').textContent",
			"Click a function to see its callers and callees."},
		{"callers by key", "#m=samples&z=10.4",
			key + "key('b'); return document.title.length > 0 && state.shape + ' ' + symbols[state.of].name",
			"callers App.Worker.Run"},
		{"link", "", key + "key('t'); document.getElementById('search').value = 'App'; setSearch('App'); return location.hash", "#m=cpu&v=top&o=heavy&f=1&q=App"},
		{"a link of another page", "#m=nothing&t=99&v=x&of=-3&z=1.999.x&h=odd&q=%00",
			"return state.metric + ' ' + state.thread + ' ' + state.shape", "2 -1 flame"},
		{"one thread", "#m=samples&t=1",
			"return document.getElementById('thread').value + ' ' + tree.total[0]", "1 60"},
		{"names made short", "",
			"return ['libcoreclr.so+0x675630', 'libc.so.6+0x12', 'System.IO.File.ReadAsync (async)', 'A.B.Run(int, string)', 'a::b<c::d>::e', 'Web.Main (lambda)', 's::Impl::operator()(int)', 's::sort<std::vector<int>, long>(int)'].map(n => [20, 16, 11].map(k => shorten(n, k)).join(' | ')).join('\\n')",
			"libcoreclr+0x675630 | …+0x675630 | …+0x675630\nlibc.so.6+0x12 | libc.so.6+0x12 | libc+0x12\nReadAsync (async) | ReadAsync (asyn… | ReadAsync …\nA.B.Run(int, string) | A.B.Run | A.B.Run\na::b<c::d>::e | a::b<c::d>::e | b<c::d>::e\nWeb.Main (lambda) | Main (lambda) | Main (lamb…\n" +
				"s::Impl::operator() | Impl::operator() | operator()\nsort<…> | sort<…> | sort<…>"},
	} {
		fmt.Fprintf(&script, "history.replaceState(null, '', %q); begin(); answer(() => { %s });\n",
			"#"+strings.TrimPrefix(c.hash, "#"), c.script)
		want = append(want, c.want)
		names = append(names, c.name)
	}
	script.WriteString("});</script></body>")
	dom, log := b.Load(t, []byte(strings.Replace(string(written(t, WriteHTML, sleepy())),
		"</body>", script.String(), 1)), "")
	browser.Answers(t, dom, log, names, want...)
}

// TestPageAccounted: time without samples is a root of its own, and what rests on few samples
// is marked for eyes and for screen readers.
func TestPageAccounted(t *testing.T) {
	b := browser.Find(t, "the page of a whole accounting was not looked at")
	const script = `<script>addEventListener('load', () => {
	const say = x => { const out = document.createElement('pre'); out.className = 'answer'; out.textContent = x; document.body.append(out); };
	const find = name => Array.from({ length: tree.n }, (_, i) => i).find(i => i > 0 && symbols[tree.symbol[i]].name === name);
	say(document.getElementById('warning').textContent);
	say(describe(find('[not sampled]')) + '|' + describe(find('Demo.Rare.Run()')));
	showTip(find('Demo.Rare.Run()'), 9, 9);
	say(document.getElementById('tip').innerText.replace(/\s+/g, ' '));
	showTip(find('[not sampled]'), 9, 9);
	say(document.getElementById('tip').innerText.replace(/\s+/g, ' '));
	say([...document.querySelectorAll('#legend > *')].map(x => x.textContent).join('|'));
	setShape('top');
	say([...document.querySelectorAll('#text tbody tr')].filter(r => /Rare|short|Compute/.test(r.innerText)).map(r => r.className + ': ' + r.textContent.replace(/\s+/g, ' ')).join('|'));
});</script></body>`
	dom, log := b.Load(t, []byte(strings.Replace(string(written(t, WriteHTML, accounted())), "</body>",
		script, 1)), "")
	browser.Answers(t, dom, log, nil,
		"WARNING: only 5.50 of 5.95 s of the process's CPU time are in the profile (92.4 %)",
		"[not sampled], unsampled, 7.6 % of total, 0 % self, 0 cpu samples, calls 2 functions|Demo.Rare.Run(), managed, 0.5 % of total, 0.5 % self, 3 cpu samples, too few to rely on, calls nothing",
		"Demo.Rare.Run() module demo.dll class managed cpu samples 3 (± 58 %) cpu time ~30 ms self ~30 ms (~0.5 %) of total ~0.5 % (0.2 to 1.3 %) of parent ~0.6 % ~ rests on fewer than 10 samples",
		"[not sampled] class unsampled cpu samples 0 cpu time 450 ms self 0 ns (0 %) of total 7.6 % of parent 7.6 % CPU time without samples, by the clock of the process",
		"managed83 %|native2.5 %|runtime3.4 %|stub0 %|gap3.4 %|kernel3.7 %|unsampled7.6 %|~ fewer than 10 samples",
		": 82 %4.9 s84 %5 s512Demo.Fib.Compute(int)demo.dll|: 6.7 %400 ms6.7 %400 ms0[short threads]|weak: ~0.5 %~30 ms~0.5 %~30 ms3Demo.Rare.Run(), fewer than 10 samplesdemo.dll")
}

// TestPageEvents: each kind of event has a view of its own, with its own sum.
func TestPageEvents(t *testing.T) {
	b := browser.Find(t, "the views of events were not looked at")
	const script = `<script>addEventListener('load', () => {
	const out = document.createElement('pre');
	for (const v of document.querySelectorAll('button[data-v]')) { v.click(); out.textContent += v.textContent + ' ' + tree.total[0] + '; '; }
	document.body.append(out);
});</script></body>`
	dom, log := b.Load(t, []byte(strings.Replace(string(written(t, WriteHTML, withEvents())), "</body>",
		script, 1)), "")
	const want = "Samples 1000; Wall time 10000000000; CPU time 5250000000; Waits 4; Wait time 3900000000; Locks 2; Lock time 700000; Allocations 10; Allocated bytes 1024000; Exceptions 4; "
	if !strings.Contains(dom, want) || strings.Contains(log, "CONSOLE") {
		t.Errorf("the page lacks %q\n%s\n%s", want, log, dom[max(0, len(dom)-600):])
	}
}

// lined is a recording of 400 samples: a method with two lines, one that was compiled into it, and one whose
// file is not known.
func lined() *Profile {
	method := func(name, file string, line int) Frame {
		return Frame{Name: name, Module: "App", ModuleIndex: -1, File: file, Line: line, Class: ClassManaged}
	}
	p := &Profile{
		Frames: []Frame{
			method("App.Main", "/src/Main.cs", 3), method("App.Sum", "/src/deep/Sum.cs", 10),
			method("App.Sum", "/src/deep/Sum.cs", 12),
			method("App.Square (inlined)", "/src/deep/Square.cs", 7),
			method("App.Unknown"+strings.Repeat(".ALongNameWithoutAnyPlaceToBreakIt", 9), "", 0),
		},
		Threads: []Thread{{1, "main"}},
	}
	for i, n := range []int64{100, 44, 250, 6} {
		p.Stacks = append(p.Stacks,
			Stack{Frames: []int32{int32(i + 1), 0}, Count: n, CPUCount: n, WallNanos: n * 1e7,
				CPUNanos: n * 1e7, Complete: true})
	}
	p.Stacks[2].Frames = []int32{3, 1, 0}
	p.Stats.Samples, p.Stats.Complete = 400, 400
	return p
}

// The table and the tooltips show source lines, also of calls and in the inverted view. They mark inlined
// methods and show the error of each share. At several window sizes, in light and dark, the page does not
// scroll sideways, and each class of text has enough contrast.
func TestPageLines(t *testing.T) {
	b := browser.Find(t, "the lines of the page were not looked at")
	const script = `<script>addEventListener('load', () => {
	const answer = x => { const e = document.createElement('pre'); e.className = 'answer'; e.textContent = x; document.body.append(e); };
	const luminance = c => { const [r, g, b] = c.match(/[\d.]+/g).map(v => c.startsWith('color') ? Number(v) : v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
	const at = (e, name) => getComputedStyle(e)[name], $1 = what => document.querySelector(what), ground = at(document.body, 'backgroundColor');
	const fits = () => $1('html').scrollWidth <= innerWidth && $1('html').scrollHeight <= innerHeight && $1('#text').scrollWidth <= innerWidth;
	const find = name => Array.from({ length: tree.n }, (_, i) => i).find(i => i > 0 && symbols[tree.symbol[i]].name.startsWith(name));
	const tip = name => { showTip(find(name), 9, 9); return $1('#tip').innerText.replace(/\s+/g, ' '); };
	const out = [innerWidth, luminance(ground) < 0.5 ? 'dark' : 'light', fits()];
	const tips = [tip('App.Sum'), tip('App.Square')].join('|');
	out.push($1('#tip').getBoundingClientRect().right <= innerWidth, contrast(at($1('#tip td'), 'color'), at($1('#tip'), 'backgroundColor')) >= 4.5);
	turnAround();
	const inverted = tip('App.Sum') + '|' + (showTip(tree.child[tree.first[find('App.Sum')]], 9, 9), $1('#tip').innerText.replace(/\s+/g, ' '));
	turnAround();
	callersOf(tree.symbol[find('App.Sum')]);
	const sandwich = [1, 2, 3].map(i => { showTip(i, 9, 9); return $1('#tip').innerText.replace(/\s+/g, ' ').replace(/module.*?(own lines|call|of total)/, '$1').replace(/ of total.*/, ''); }).join('|');
	setShape('top');
	const rows = [...document.querySelectorAll('#text tbody tr')], bar = $1('#text td.bar i'), error = $1('#text td.bar b');
	out.push(fits(), rows.length, contrast(at($1('#text small'), 'color'), ground) >= 4.5, data.classes.every(c => { bar.style.setProperty('--c', 'var(--' + c + ')'); return contrast(at(error, 'borderLeftColor'), at(bar, 'backgroundColor')) >= 3; }), contrast(at(error, 'borderLeftColor'), ground) >= 4.5, bar.offsetWidth > 0 && error.offsetWidth >= 3);
	answer(out.join(' '));
	answer(tips);
	answer(inverted);
	answer(sandwich);
	answer(rows.slice(0, 3).map(r => r.querySelector('td.name').innerText.replace(/\s+/g, ' ').slice(0, 60) + ' ' + ['left', 'width'].map(k => parseFloat(r.querySelector('td.bar b').style[k]).toFixed(2)).join('+') + ' of ' + r.querySelector('td.bar i').style.width).join('|'));
});</script></body>`
	page := []byte(strings.Replace(string(written(t, WriteHTML, lined())), "</body>", script, 1))
	bar := func(part float64) string {
		low, high := wilson(part/400, 400)
		return fmt.Sprintf("%.2f+%.2f of %g%%", 100*low, 100*(high-low), 100*part/400)
	}
	tips := "App.Sum module App class managed cpu samples 394 (± 5 %) cpu time 3.9 s self 1.4 s (36 %) own lines Sum.cs:10 69 %, :12 31 % called at Main.cs:3 100 % of total 99 % (97 to 99 %) of parent 99 %" +
		"|App.Square (inlined) module App class managed cpu samples 250 (± 6 %) cpu time 2.5 s self 2.5 s (63 %) own lines Square.cs:7 100 % called at Sum.cs:10 100 % of total 63 % (58 to 67 %) of parent 63 % the JIT compiler put its code into its caller"
	inverted := "App.Sum module App class managed cpu samples 144 (± 8 %) cpu time 1.4 s own lines Sum.cs:10 69 %, :12 31 % of total 36 % (31 to 41 %) of callee 36 %" +
		"|App.Main module App class managed cpu samples 144 (± 8 %) cpu time 1.4 s calls it at Main.cs:3 100 % of total 36 % (31 to 41 %) of callee 100 %"
	sandwich := "App.Sum own lines Sum.cs:10 69 %, :12 31 %|App.Main calls it at Main.cs:3 100 %|App.Square (inlined) called at Sum.cs:10 100 %"
	rows := "App.Square (inlined)Square.cs:7 100 % " + bar(250) + "|App.SumSum.cs:10 69 % " + bar(144) +
		"|App.Unknown"
	for _, c := range []struct {
		width, height int
		scheme        string
	}{{1400, 800, "light"}, {1400, 800, "dark"}, {1024, 768, "light"}, {768, 1024, "dark"},
		{500, 900, "light"}, {500, 900, "dark"}} {
		flags := []string{fmt.Sprintf("--window-size=%d,%d", c.width, c.height)}
		if c.scheme == "dark" {
			flags = append(flags, "--blink-settings=preferredColorScheme=0")
		}
		dom, log := b.Load(t, page, "", flags...)
		for _, want := range []string{fmt.Sprintf("%d %s true true true true 4 true true true true", c.width,
			c.scheme), tips, inverted, sandwich, rows} {
			_, dom, _ = strings.Cut(dom, `<pre class="answer">`)
			got, _, _ := strings.Cut(dom, "</pre>")
			if got = html.UnescapeString(got); !strings.HasPrefix(got, want) {
				t.Errorf("%d %s:\ngot  %s\nwant %s", c.width, c.scheme, got, want)
			}
		}
		expect.True(t, !strings.Contains(log, "CONSOLE"), "the browser complains:\n%s", log)
	}
}

// wilson returns the bounds at which the share p that was seen among n samples is 1.96 standard deviations
// of the binomial distribution away: found by halving, not by the formula of the page.
func wilson(p, n float64) (low, high float64) {
	bound := func(from, to float64) float64 {
		for range 100 {
			q := (from + to) / 2
			if math.Abs(p-q) > 1.96*math.Sqrt(q*(1-q)/n) {
				from = q
			} else {
				to = q
			}
		}
		return to
	}
	return bound(0, p), bound(1, p)
}

// The page leaves out what starts an async method, and shows it again when it is unfolded. Helpers
// stay where a stack ends in them or where they call something else too.
func TestPageFoldsAsync(t *testing.T) {
	b := browser.Find(t, "the page of async methods was not used")
	const rs = "System.Runtime.CompilerServices."
	p := &Profile{Threads: []Thread{{1, "a"}}}
	for _, name := range []string{"A", rs + "AsyncTaskMethodBuilder<int>.Start<T>",
		rs + "AsyncMethodBuilderCore.Start<T>(T&)", "A (async)", "B",
		rs + "AsyncMethodBuilderCore.Start<U>", "GC"} {
		p.Frames = append(p.Frames, Frame{Name: name, Module: "m", ModuleIndex: -1, Class: ClassManaged})
	}
	for _, s := range [][]int32{{3, 2, 1, 0}, {3, 5, 4}, {6, 5, 4}, {1, 6}} {
		p.Stacks = append(p.Stacks, Stack{Frames: s, Count: 1, CPUNanos: 1e7, WallNanos: 1e7, Complete: true})
	}
	script := `<script>addEventListener('load', () => { const out = []; for (const hash of ['#m=samples', '#m=samples&f=0']) {
history.replaceState(null, '', hash); begin();
const leaf = i => tree.self[i] > 0, path = i => pathOf(tree, i).slice(1).map(j => symbols[tree.symbol[j]].name.replace(/^.*Builder\w*/, 'X').replace(/<.*/, '')).join('/');
out.push(Array.from({ length: tree.n }, (_, i) => i).filter(leaf).map(path).sort().join(' ')); }
const pre = document.createElement('pre'); pre.className = 'answer'; pre.textContent = out.join('|'); document.body.append(pre); });</script></body>`
	dom, log := b.Load(t, []byte(strings.Replace(string(written(t, WriteHTML, p)), "</body>", script, 1)), "")
	_, dom, _ = strings.Cut(dom, `<pre class="answer">`)
	got, _, _ := strings.Cut(dom, "</pre>")
	const want = "A/A (async) B/X/A (async) B/X/GC GC/X|A/X/X/A (async) B/X/A (async) B/X/GC GC/X"
	got = strings.ReplaceAll(got, ".Start", "")
	expect.True(t, got == want, "got  %s\nwant %s\n%s", got, want, log)
}
