package export

import (
	"html"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/browser"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// timed is a recording of one second. Thread a works in f in the first half and in g in the second
// half, with 50 samples of 10 ms in all. Thread b waits from 0.2 to 0.8 s, with one sample.
func timed() *Profile {
	begin := time.Unix(1000, 0)
	p := &Profile{Start: begin, Duration: time.Second,
		Frames: []Frame{{Name: "f", Class: ClassManaged, ModuleIndex: -1},
			{Name: "g", Class: ClassNative, ModuleIndex: -1},
			{Name: "wait", Class: ClassNative, ModuleIndex: -1}},
		Threads: []Thread{{ID: 1, Name: "a"}, {ID: 2, Name: "b"}},
		Stacks: []Stack{
			{Thread: 0, Frames: []int32{0}, Count: 25, WallNanos: 25e7, CPUNanos: 25e7,
				CPUCount: 25, Complete: true},
			{Thread: 1, Frames: []int32{2}, Count: 1, WallNanos: 6e8, Complete: true},
			{Thread: 0, Frames: []int32{1}, Count: 25, WallNanos: 25e7, CPUNanos: 50e7,
				CPUCount: 25, Complete: true}}}
	for i := range 50 {
		p.Samples = append(p.Samples,
			Sample{Stack: int32(i / 25 * 2),
				At: begin.Add(time.Duration(i+1) * 20 * time.Millisecond).UnixNano(), Wall: 1e7, CPU: true})
		if i == 39 {
			p.Samples = append(p.Samples,
				Sample{Stack: 1, At: begin.Add(800 * time.Millisecond).UnixNano(), Wall: 6e8})
		}
	}
	return p
}

// A part of the time is chosen by address, by keys, and by the mouse, and all values are of it.
func TestPageTime(t *testing.T) {
	b := browser.Find(t, "the time axis was not used")
	const script = `<script>addEventListener('load', () => {
	const say = x => { const out = document.createElement('pre'); out.className = 'answer'; out.textContent = x; document.body.append(out); };
	const go = hash => { history.replaceState(null, '', hash); begin(); };
	const totals = () => Array.from({ length: tree.n }, (_, i) => i).filter(i => i > 0 && tree.total[i] > 0).map(i => symbols[tree.symbol[i]].name + '=' + tree.total[i]).sort().join(' ');
	const axis = document.getElementById('axis');
	const press = (k, o) => axis.dispatchEvent(new KeyboardEvent('keydown', Object.assign({ key: k, bubbles: true }, o)));
	const mouse = (type, x, box = axis.getBoundingClientRect()) => axis.dispatchEvent(new PointerEvent(type, { clientX: box.left + x * box.width, clientY: box.top + 5, bubbles: true, pointerId: 1 }));
	axis.setPointerCapture = () => {};
	go('#m=cpu&f=0'); say(totals() + ' ' + document.getElementById('time').hidden);
	go('#m=cpu&f=0&s=0-500000'); say(totals() + ' ' + document.getElementById('span').value);
	go('#m=cpu&f=0&s=490000-600000'); say(totals());
	go('#m=wall&f=0&s=700000-900000'); say(totals());
	go('#m=samples&f=0&s=700000-900000&t=1'); say(totals());
	go('#m=cpu&f=0'); press('ArrowRight'); press('ArrowRight'); press('ArrowRight', { shiftKey: true }); say(location.hash); press('Escape'); say(location.hash);
	mouse('pointerdown', 0.5); mouse('pointermove', 0.9); mouse('pointerup', 0.25); say(location.hash);
	go('#m=cpu&v=threads'); say([...document.querySelectorAll('#text tbody tr')].map(r => r.innerText.replace(/\s+/g, ' ').trim() + ' ' + (r.querySelector('canvas').width > 0)).join('|'));
	const a = activity(-1, 10), c = data.classes.length; say(Array.from({ length: 10 }, (_, k) => Math.round(a.cpu.slice(k * c, k * c + c).reduce((x, y) => x + y, 0) / 1e6)).join(' ') + ' ' + [...activity(1, 10).alive].join(''));
	go('#m=cpu&s=9-5'); say(String(span));
	go('#m=cpu&f=0&s=250000-750000'); say(document.getElementById('categories').textContent);
	go('#m=cpu&f=0&s=250000-750000&c=native-libraries'); say(totals());
});</script></body>`
	dom, log := b.Load(t, []byte(strings.Replace(string(written(t, WriteHTML, timed())), "</body>",
		script, 1)), "")
	browser.Answers(t, dom, log, nil,
		"f=250000000 g=500000000 false",
		"f=250000000 0 s to 0.5 s",
		"f=10000000 g=100000000",
		"g=100000000 wait=100000000",
		"wait=1",
		"#m=cpu&v=flame&o=heavy&f=0&s=20000-140000", "#m=cpu&v=flame&o=heavy&f=0",
		"#m=cpu&v=flame&o=heavy&f=0&s=250000-500000",
		"a (1) 750 ms true|b (2) 0 ns true",
		"40 50 50 50 50 90 100 100 100 120 0011111110",
		"null",
		"user code 35 %native libraries 65 %",
		"g=240000000")
}

// A recording with very many samples has no time axis, and says so.
func TestPageTooManySamples(t *testing.T) {
	p := timed()
	for len(p.Samples) <= maxPageSamples {
		p.Samples = append(p.Samples, p.Samples...)
	}
	d := newPageData(p, newView(p))
	expect.True(t, len(d.Samples) == 0 && strings.HasPrefix(d.Notes[len(d.Notes)-1], "no time axis: "),
		"%d numbers, %q", len(d.Samples), d.Notes)
}

// GC pauses and spinning are rows below the time axis, with marks where they were.
func TestPageLanes(t *testing.T) {
	b := browser.Find(t, "the pauses on the time axis were not looked at")
	const script = `<script>addEventListener('load', () => setTimeout(() => {
	const axis = document.getElementById('axis'), ratio = devicePixelRatio || 1, out = document.createElement('pre');
	drawTime();
	const at = (row, x) => axis.getContext('2d').getImageData(Math.round(x * axis.width), Math.round((44 + 12 * row + 6) * ratio), 1, 1).data.join();
	out.className = 'answer';
	out.textContent = 'marked ' + [at(0, 0.35) === at(0, 0.75), at(0, 0.35) !== at(0, 0.95), at(1, 0.495) === at(0, 0.35), at(1, 0.99) === at(0, 0.95)].join() + ' ' + data.lanes.map(l => l.name + ' ' + l.spans.join()).join(' ');
	document.body.append(out);
}, 100));</script></body>`
	p := timed()
	p.Frames[0].Name = "System.Threading.SpinWait.SpinOnceCore"
	p.Stacks = append(p.Stacks,
		Stack{Thread: 0, Count: 2, Event: EventPause, Sum: 2e8, Type: "gen 2 GC", Complete: true})
	p.Waits = []Wait{{Stack: 3, Start: p.Start.Add(300 * time.Millisecond), Nanos: 1e8},
		{Stack: 3, Start: p.Start.Add(700 * time.Millisecond), Nanos: 1e8}}
	p.Stats.Events = []EventStats{{Event: EventPause, Seen: 2, Count: 2, Sum: 2e8}}
	dom, log := b.Load(t, []byte(strings.Replace(string(written(t, WriteHTML, p)), "</body>", script, 1)), "")
	if want := "marked true,true,true,true GC pauses 300000,100000,700000,100000 spinning 10000,10000,30000,10000,"; !strings.Contains(html.UnescapeString(dom), want) {
		t.Errorf("no %q\n%s", want, log)
	}
}

// A profile without native frames folds threads whose managed leaf waits; others do not.
func TestPageManagedWaits(t *testing.T) {
	b := browser.Find(t, "waiting managed threads were not folded")
	const script = `<script>addEventListener('load', () => {
	history.replaceState(null, '', '#m=samples'); begin();
	const out = document.createElement('pre');
	out.className = 'answer';
	out.textContent = Array.from({ length: tree.n }, (_, i) => i).filter(i => i > 0 && tree.total[i] > 0).map(i => symbols[tree.symbol[i]].name + '=' + tree.total[i]).sort().join(' ');
	document.body.append(out);
});</script></body>`
	managed := func(name string) Frame { return Frame{Name: name, ModuleIndex: -1, Class: ClassManaged} }
	p := &Profile{Frames: []Frame{managed("App.Run"), managed("App.Wait"),
		managed("System.Threading.Thread.Sleep")},
		Threads: []Thread{{ID: 1}},
		Stacks: []Stack{{Frames: []int32{0}, Count: 10, Complete: true},
			{Frames: []int32{2, 1, 0}, Count: 90, Complete: true}}}
	for _, want := range []string{"App.Run=10 App.Wait=90 [waiting]=90",
		"App.Run=100 App.Wait=90 System.Threading.Thread.Sleep=90"} {
		dom, log := b.Load(t, []byte(strings.Replace(string(written(t, WriteHTML, p)), "</body>",
			script, 1)), "")
		if !strings.Contains(html.UnescapeString(dom), want) {
			_, got, _ := strings.Cut(dom, `<pre class="answer">`)
			t.Errorf("no %q in %.300s\n%s", want, got, log)
		}
		p.Frames = append(p.Frames, Frame{Name: "pthread_cond_wait", ModuleIndex: -1, Class: ClassNative})
	}
}
