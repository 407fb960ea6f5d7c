package report_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/eventpipe/waits/report"
	"github.com/seedwalk/seedwalk/testkit/browser"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
)

// methodAt is the load event of a method of 256 bytes.
func methodAt(start uint64, name string) []byte {
	p := binary.LittleEndian.AppendUint64(make([]byte, 16), start)
	p = append(binary.LittleEndian.AppendUint32(p, 256), make([]byte, 8)...)
	for _, s := range []string{"App", name, ""} {
		for _, r := range s {
			p = append(p, byte(r), byte(r>>8))
		}
		p = append(p, 0, 0)
	}
	return append(p, 0, 0)
}

// held is a trace in which thread 6 waits 6 ms for a lock held by thread 5, which meanwhile waits for
// something else. pointer is the process's pointer size in bytes.
func held(pointer int) *waits.Analysis {
	const ms = 1_000_000
	w := nettracefile.New(nettracefile.Options{PID: 1, PointerSize: pointer})
	meta := func(id, event, version uint32) nettracefile.Meta {
		return nettracefile.Meta{ID: id, Provider: clrevent.Runtime, Event: event, Version: version}
	}
	w.Metadata(meta(1, 143, 1), meta(2, 301, 0), meta(3, 302, 0), meta(4, 81, 2), meta(5, 91, 1))
	w.Stacks(1, []uint64{0x1010}, []uint64{0x2010, 0x3010})
	address := func(p []byte,
		v uint64) []byte {
		return binary.LittleEndian.AppendUint64(p, v)[:len(p)+pointer]
	}
	lock := binary.LittleEndian.AppendUint64(address(address([]byte{0, 1, 0}, 0xabc0), 0xdef0), 5)
	wait := append(address([]byte{0}, 0), 1, 0)
	over := binary.LittleEndian.AppendUint64([]byte{0, 1, 0}, math.Float64bits(6*ms))
	w.Events(nettracefile.Event{Meta: 1, Seq: 1, Thread: 5, Time: 0, Payload: methodAt(0x1000, "Owner")},
		nettracefile.Event{Meta: 1, Seq: 2, Thread: 5, Time: 0, Payload: methodAt(0x2000, "Waiter")},
		nettracefile.Event{Meta: 1, Seq: 3, Thread: 5, Time: 0, Payload: methodAt(0x3000, "Main")},
		nettracefile.Event{Meta: 2, Seq: 4, Thread: 5, Time: 1 * ms, Stack: 1, Payload: wait},
		nettracefile.Event{Meta: 4, Seq: 1, Thread: 6, Time: 2 * ms, Stack: 2, Payload: lock},
		nettracefile.Event{Meta: 5, Seq: 2, Thread: 6, Time: 8 * ms, Payload: over},
		nettracefile.Event{Meta: 3, Seq: 5, Thread: 5, Time: 9 * ms, Payload: []byte{1, 0}})
	a := waits.New()
	a.Read(bytes.NewReader(w.End().Bytes()))
	a.Finish()
	return a
}

// TestHeld: every format shows the owner of the lock, and formats with room for it also what the owner did
// meanwhile.
func TestHeld(t *testing.T) {
	a := held(8)
	for format, want := range map[string][]string{
		"text": {"6.000 ms  lock                6        5       1     0.002s  App.Waiter < App.Main",
			"its owner, thread 5, waits too (wait): App.Owner"},
		"csv":    {",lock,Contention,complete,6,,0xabc0,5,0,false,0,App.Waiter < App.Main,"},
		"json":   {`"lock": "0xabc0"`, `"object": "0xdef0"`, `"owner": 5`, `"reported_ns": 6000000`},
		"folded": {"App.Main;App.Waiter;[lock] 6000000", "App.Owner;[wait] 8000000"},
	} {
		got := write(t, format, a)
		for _, w := range want {
			expect.True(t, strings.Contains(got, w), "%s lacks %q:\n%s", format, w, got)
		}
	}
	var j struct {
		Waits []struct {
			Chain []struct {
				Thread uint64
				Kind   string
				Stack  []string
			} `json:"owner_chain"`
		}
	}
	if err := json.Unmarshal([]byte(write(t, "json", a)), &j); err != nil || len(j.Waits) != 2 ||
		fmt.Sprint(j.Waits[1].Chain) != "[{5 wait [App.Owner]}]" || len(j.Waits[0].Chain) != 0 {
		t.Errorf("%+v, %v", j, err)
	}
	p := must.Get(profile.ParseData([]byte(write(t, "pprof", a))))(t)
	labels := map[string]string{}
	for _, s := range p.Sample {
		labels[s.Label["kind"][0]] = fmt.Sprint(s.NumLabel["thread"], s.Label["lock"],
			s.NumLabel["owner"], s.Label["reliable"], s.Value)
	}
	expect.True(t, labels["lock"] == "[6] [0xabc0] [5] [yes] [1 6000000]" &&
		labels["wait"] == "[5] [] [] [yes] [1 8000000]", "labels %v", labels)
}

// TestPointersOfFour: a trace of a 32-bit process is shown like one of a 64-bit process.
func TestPointersOfFour(t *testing.T) {
	small, large := held(4), held(8)
	for _, format := range []string{"text", "csv", "json", "folded", "html"} {
		got, want := write(t, format, small), write(t, format, large)
		if format == "json" {
			want = strings.Replace(want, `"pointer_size": 8`, `"pointer_size": 4`, 1)
		}
		expect.True(t, got == want, "%s of pointers of four bytes:\n%s\nof eight:\n%s", format, got, want)
	}
}

// TestPageInBrowser: the page shows which thread waits while which one holds the lock. The owner's row has an
// outline during the other's wait, and a click shows what the owner did meanwhile.
func TestPageInBrowser(t *testing.T) {
	b := browser.Find(t, "the time lines were not drawn")
	const script = `<script>addEventListener('load', () => {
	const say = s => { const out = document.createElement('pre'); out.className = 'answer'; out.textContent = s; document.body.append(out); };
	const ratio = devicePixelRatio || 1, shot = ctx.getImageData(0, 0, canvas.width, canvas.height);
	const pixel = (x, y) => { const i = 4 * (Math.round(y * ratio) * shot.width + Math.round(x * ratio)); return shot.data.slice(i, i + 4).join(); };
	const lock = data.waits.find(w => w[KIND] === 0), held = box(lock, lock[OWNER]), own = box(lock, lock[THREAD]);
	const edge = () => pixel(held[0] + held[2] / 2, held[1]), beside = pixel(held[0] - 9, held[1]);
	say('rows ' + rows.map(i => data.threads[i]).join(' ') + ', outlined ' + (edge() !== beside) + ', drawn ' + (pixel(own[0] + own[2] / 2, own[1] + own[3] / 2) !== pixel(own[0] - 9, own[1] + own[3] / 2)));
	canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: canvas.getBoundingClientRect().x + own[0] + 5, clientY: canvas.getBoundingClientRect().y + own[1] + 5 }));
	say('tip ' + $('tip').textContent);
	select(lock);
	say('detail ' + $('detail').innerText.replace(/\s+/g, ' '));
	say('first row ' + [...$('waits').tBodies[0].rows[1].cells].map(c => c.textContent).join('|'));
});</script></html>`
	dom, log := b.Load(t, []byte(strings.Replace(write(t, "html", held(8)), "</html>", script, 1)), "")
	for _, want := range []string{
		"rows 5 6, outlined true, drawn true",
		"tip 6.000 ms lock of 6 at 2.000 ms, held by 5App.Waiter < App.Main",
		"detail 6.000 ms lock of 6 at 2.000 ms, held by 5 App.Waiter App.Main Meanwhile its owner: 8.000 ms wait of 5 at 1.000 ms App.Owner",
		"first row 6.000 ms|lock|6|5|2.000 ms|App.Waiter < App.Main",
	} {
		expect.True(t, strings.Contains(dom, html.EscapeString(want)), "the page lacks %q", want)
	}
	if strings.Contains(log, "CONSOLE") || t.Failed() {
		t.Errorf("%s\n%s", log, dom[max(0, len(dom)-1500):])
	}
}

// The page orders its rows by time waited, by name, or by first wait, owners among them.
func TestPageOrder(t *testing.T) {
	b := browser.Find(t, "the orders of rows were not used")
	const script = `<script>addEventListener('load', () => {
	data.threads = ['main 10', 'work 9', 'main 2', 'owner 7', 'silent 1'];
	data.waits = [[0, 0, 0, 50, 9, 0, 3, 0, 0], [1, 1, 0, 10, 5, 0, -1, 0, 0], [2, 1, 0, 70, 2, 0, -1, 0, 0]];
	for (const by of ['time', 'name', 'first']) {
		$('order').value = by;
		$('order').dispatchEvent(new Event('change'));
		const out = document.createElement('pre');
		out.textContent = by + ': ' + rows.map(t => data.threads[t]).join(', ');
		document.body.append(out);
	}
});</script></body>`
	var page strings.Builder
	must.Do(t, report.WriteHTML(&page, recorded(t)))
	dom, log := b.Load(t, []byte(strings.Replace(page.String()+"</body>", "</body>", script, 1)), "")
	for _, want := range []string{
		"time: main 10, work 9, main 2, owner 7<",
		"name: main 2, main 10, owner 7, work 9<",
		"first: work 9, main 10, owner 7, main 2<",
	} {
		expect.True(t, strings.Contains(dom, want), "the page lacks %q\n%s", want, log)
	}
}
