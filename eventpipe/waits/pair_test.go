package waits_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

// script writes a trace with events of the runtime. Each word of its text is one event:
//
//	T:C@S      thread T begins to wait for a lock, stack S      T:c  and ends
//	T:W@S      the same for a wait handle, T:M@S for a Monitor  T:w
//	T:x        another event of T
//	T:-N       N events of T are lost         T:!  T's counter begins again
//	point      a sequence point               T>N  which counts N events of T
//
// The clock advances by one millisecond per event, or by the number of milliseconds after '+'.
type script struct {
	w       *nettracefile.Writer
	tick    uint64 // a millisecond
	now     uint64
	seq     map[uint64]uint32
	owner   uint64
	lock    uint64
	nanos   float64 // reported by the next stop of a lock
	pointer int
	reached []nettracefile.ThreadSeq
}

const (
	metaC = iota + 1
	metaEndC
	metaW
	metaEndW
	metaX
)

const ms = 1_000_000

func newScript(o nettracefile.Options) *script {
	if o.Frequency == 0 {
		o.Frequency = 1000 * ms
	}
	tick := o.Frequency / 1000
	o.Ticks = 1000 * tick
	s := &script{w: nettracefile.New(o), tick: tick, now: o.Ticks, seq: map[uint64]uint32{},
		pointer: o.PointerSize, lock: 0xabc0}
	if s.pointer == 0 {
		s.pointer = 8
	}
	s.w.Metadata(nettracefile.Meta{ID: metaC, Provider: clrevent.Runtime, Event: 81, Version: 2},
		nettracefile.Meta{ID: metaEndC, Provider: clrevent.Runtime, Event: 91, Version: 1},
		nettracefile.Meta{ID: metaW, Provider: clrevent.Runtime, Event: 301},
		nettracefile.Meta{ID: metaEndW, Provider: clrevent.Runtime, Event: 302},
		nettracefile.Meta{ID: metaX, Provider: "Other", Event: 1})
	s.stacks()
	return s
}

// stacks defines the stacks. 2 extends 1, and 4 does not. 5 is the start of a System.Threading.Lock,
// and 6 its wait. 7 extends 8, whose root does not fit into it.
func (s *script) stacks() {
	long := make([]uint64, 99)
	for i := range long {
		long[i] = uint64(0x8000 + 16*i)
	}
	s.w.Stacks(1, []uint64{0x1001}, []uint64{0x2001, 0x1001}, nil, []uint64{0x4001, 0x1091},
		[]uint64{0x5001, 0x5101, 0x1001}, []uint64{0x6001, 0x5131, 0x1001},
		append([]uint64{0x7001}, long...), append(long, 0x9001))
}

func (s *script) run(line string) *script {
	for _, word := range strings.Fields(line) {
		step := uint64(1)
		if at, n, ok := strings.Cut(word, "+"); ok {
			word = at
			fmt.Sscan(n, &step)
		}
		s.now += step * s.tick
		s.word(word)
	}
	return s
}

func (s *script) word(word string) {
	var thread, n uint64
	switch {
	case word == "point":
		s.w.Point(s.now, s.reached...)
		s.reached = nil
		s.stacks()
	case strings.Contains(word, ">"):
		fmt.Sscanf(word, "%d>%d", &thread, &n)
		s.reached = append(s.reached, nettracefile.ThreadSeq{Thread: thread, Seq: uint32(n)})
	default:
		what := ""
		fmt.Sscanf(word, "%d:%s", &thread, &what)
		s.event(thread, what)
	}
}

func (s *script) event(thread uint64, what string) {
	var n uint32
	e := nettracefile.Event{Thread: thread, Time: s.now}
	switch what, stack, _ := strings.Cut(what, "@"); {
	case what == "!":
		s.seq[thread] = 0
		return
	case what[0] == '-':
		fmt.Sscan(what[1:], &n)
		s.seq[thread] += n
		return
	default:
		fmt.Sscan(stack, &e.Stack)
		e.Meta, e.Payload = s.content(what)
	}
	s.seq[thread]++
	e.Seq = s.seq[thread]
	s.w.Events(e)
}

func (s *script) content(what string) (meta uint32, p []byte) {
	ptr := func(v uint64) {
		if s.pointer == 4 {
			p = binary.LittleEndian.AppendUint32(p, uint32(v))
		} else {
			p = binary.LittleEndian.AppendUint64(p, v)
		}
	}
	switch what {
	case "C":
		p = []byte{0, 1, 0}
		ptr(s.lock)
		ptr(0xdef0)
		return metaC, binary.LittleEndian.AppendUint64(p, s.owner)
	case "c":
		return metaEndC, binary.LittleEndian.AppendUint64([]byte{0, 1, 0}, math.Float64bits(s.nanos))
	case "W", "M":
		p = []byte{map[string]byte{"W": 0, "M": 1}[what]}
		ptr(0)
		return metaW, append(p, 1, 0)
	case "w":
		return metaEndW, []byte{1, 0}
	}
	return metaX, nil
}

func (s *script) analyse() *waits.Analysis { return analyse(s.w.End().Bytes()) }

func analyse(trace []byte) *waits.Analysis {
	a := waits.New()
	a.Read(bytes.NewReader(trace))
	a.Finish()
	return a
}

// show prints the waits: thread, kind, milliseconds, state, depth.
func show(a *waits.Analysis) string {
	var out []string
	for i := range a.Waits {
		w := &a.Waits[i]
		line := fmt.Sprintf("%d %v %d", w.Thread, w.Kind, w.Nanos/ms)
		if w.State != waits.Complete {
			line += " " + w.State.String()
		}
		if w.Depth > 0 {
			line += fmt.Sprintf(" in %d", w.Depth)
		}
		if w.Blocked {
			line += " blocked"
		}
		out = append(out, line)
	}
	return strings.Join(out, ", ")
}

func TestPairing(t *testing.T) {
	for _, c := range []struct {
		name, script, want string
		orphans            int64
	}{
		{"a wait", "1:W@1 1:w+5", "1 wait 5", 0},
		{"a Monitor.Wait", "1:M@1 1:w+5", "1 monitor-wait 5", 0},
		{"a lock that did not block", "1:C@1 1:c+2", "1 lock 2", 0},
		{"a lock that blocked has its wait inside: one wait", "1:C@1 1:W@1 1:w+5 1:c", "1 lock 7 blocked", 0},
		{"another wait inside a lock's is a wait of its own, and not in sums", "1:C@1 1:W@2 1:w+5 1:c",
			"1 lock 7, 1 wait 5 in 1", 0},
		{"a lock inside a wait", "1:M@1 1:C@2 1:c 1:w", "1 monitor-wait 3, 1 lock 1 in 1", 0},
		{"two threads at once", "1:W@1 2:W@1 1:w 2:w", "1 wait 2, 2 wait 2", 0},
		{"begun before the trace", "1:w+4 1:W@1 1:w", "1 wait 4 begun-before, 1 wait 1", 0},
		{"a lock begun before the trace", "1:c+4", "1 lock 4 begun-before", 0},
		{"a stop without a start on a thread that was seen", "1:x 1:w", "", 1},
		{"a second stop", "1:W@1 1:w 1:w", "1 wait 1", 1},
		{"still open at the end", "1:W@1 2:x+9", "1 wait 9 still-open", 0},
		{"a lock still open at the end, with its wait", "1:C@1 1:W@1 2:x+9",
			"1 lock 10 still-open blocked", 0},
		{"a gap while it is open", "1:W@1 1:-3 1:w+9", "1 wait 0 unreliable", 1},
		{"a gap that hides a stop and a start", "1:W@1 1:-2 1:x 1:w+60", "1 wait 0 unreliable", 1},
		{"a gap of another thread", "1:W@1 2:x 2:-5 2:x 1:w", "1 wait 4", 0},
		{"a sequence point tells of lost events", "1:W@1 1>9 point 1:-8 1:w", "1 wait 0 unreliable", 1},
		{"a sequence point without loss", "1:W@1 1>1 point 1:w", "1 wait 3", 0},
		{"a thread's first events are lost", "1:-2 1:w", "", 1},
		{"the thread id is used again while a wait is open",
			"1:x 1:W@1 1:! 1:x 1:w", "1 wait 0 unreliable", 1},
		{"the thread id is used again, properly", "1:W@1 1:w 1:! 1:W@1 1:w+3", "1 wait 1, 1 wait 3", 0},
		{"two starts: the inner one's stop comes first", "1:W@1 1:W@2 1:w 1:w", "1 wait 3, 1 wait 1 in 1", 0},
		{"interrupted: the runtime sends no stop, and the next wait is elsewhere",
			"1:W@1 1:W@4+200 1:w+5 1:W@4 1:w+7", "1 wait 0 unreliable, 1 wait 5, 1 wait 7", 0},
		{"interrupted, and again at the same place", "1:W@1 1:W@1+200 1:w+5",
			"1 wait 0 unreliable, 1 wait 5", 0},
		{"an interrupted lock, and a lock elsewhere", "1:C@1 1:W@1 1:C@4+200 1:W@4 1:w 1:c",
			"1 lock 0 unreliable blocked, 1 lock 3 blocked", 0},
		{"an interrupted lock, and again", "1:C@1 1:W@1 1:C@1+200 1:W@1 1:w 1:c",
			"1 lock 0 unreliable blocked, 1 lock 3 blocked", 0},
		{"a Lock and its wait", "1:C@5 1:W@6 1:w+5 1:c", "1 lock 7, 1 wait 5 in 1", 0},
		{"an interrupted Lock, and a wait elsewhere", "1:C@5 1:W@6 1:W@4+200 1:w+5",
			"1 lock 0 unreliable, 1 wait 0 unreliable in 1, 1 wait 5", 0},
		{"inside a wait whose root is cut off", "1:W@8 1:W@7 1:w+5 1:w", "1 wait 7, 1 wait 5 in 1", 0},
		{"nothing is known of a wait without a stack", "1:W@3 1:W@1 1:w 1:w", "1 wait 3, 1 wait 1 in 1", 0},
		{"the stop of a lock closes what is open above it as unreliable", "1:C@1 1:W@2 1:c",
			"1 lock 2, 1 wait 0 unreliable in 1", 0},
	} {
		// 1e7 is that of Windows
		for _, o := range []nettracefile.Options{{}, {PointerSize: 4}, {Plain: true}, {Version: 5},
			{Frequency: 1e7}, {Frequency: 1e7, PointerSize: 4}} {
			a := newScript(o).run(c.script).analyse()
			got := show(a)
			expect.True(t, got == c.want && a.Orphans == c.orphans,
				"%s, %+v: %q with %d orphans, want %q with %d", c.name, o, got, a.Orphans, c.want, c.orphans)
			for _, p := range waittruth.Judge(nil, a).Problems {
				t.Errorf("%s: %s", c.name, p)
			}
		}
	}
}

// TestRundown: while a session writes its list, it reports no waits. An open wait is bounded by the last
// event before.
func TestRundown(t *testing.T) {
	s := newScript(nettracefile.Options{})
	s.w.Metadata(nettracefile.Meta{ID: 9, Provider: clrevent.Rundown, Event: 144, Version: 1})
	s.run("1:W@1 2:x+9")
	s.w.Events(nettracefile.Event{Meta: 9, Seq: 2, Thread: 2, Time: s.now + 90*ms})
	if a := s.analyse(); show(a) != "1 wait 9 still-open" || a.Last != s.now+90*ms {
		t.Errorf("%s, the last event at %d", show(a), a.Last)
	}
}

func TestLockFacts(t *testing.T) {
	s := newScript(nettracefile.Options{})
	s.owner, s.nanos = 77, 9*ms
	s.run("1:C@1 1:c+5")
	s.nanos = 5.1 * ms
	a := s.run("1:C@1 1:c+5").analyse()
	w := a.Waits[0]
	expect.True(t, w.Owner == 77 && w.LockID == 0xabc0 && w.Object == 0xdef0 && w.Reported == 9*ms &&
		w.Differs, "%+v", w)
	expect.True(t, !a.Waits[1].Differs, "0.1 ms is no difference")
}

// TestBackwards: a clock that runs backwards gives no negative and no huge wait.
func TestBackwards(t *testing.T) {
	s := newScript(nettracefile.Options{})
	s.run("1:W@1")
	s.now -= 50 * ms
	a := s.run("1:w").analyse()
	expect.True(t, show(a) == "1 wait 0 unreliable" && a.Backwards == 1 && len(a.Partial()) == 1,
		"%s, %d", show(a), a.Backwards)
}

// TestLostOfProcess: two processes in different PID namespaces each have a thread 5. If events of one of
// these threads are lost, only that thread's waits become unreliable.
func TestLostOfProcess(t *testing.T) {
	w := nettracefile.New(nettracefile.Options{Version: 6})
	w.Threads(nettracefile.Thread6{Index: 1, PID: 10, TID: 5},
		nettracefile.Thread6{Index: 2, PID: 20, TID: 5})
	w.Metadata(nettracefile.Meta{ID: metaW, Provider: clrevent.Runtime, Event: 301},
		nettracefile.Meta{ID: metaEndW, Provider: clrevent.Runtime, Event: 302})
	for index := range uint64(2) {
		w.Events(nettracefile.Event{Meta: metaW, Seq: 1, Thread: index + 1, Time: 5,
			Payload: make([]byte, 11)})
	}
	w.Point(7, nettracefile.ThreadSeq{Thread: 1, Seq: 3}, nettracefile.ThreadSeq{Thread: 2, Seq: 1})
	w.Events(nettracefile.Event{Meta: metaEndW, Seq: 2, Thread: 2, Time: 9, Payload: make([]byte, 2)})
	a := analyse(w.End().Bytes())
	must.Equal(t, len(a.Waits), 2, "waits")
	for _, v := range a.Waits {
		want := map[uint64]waits.State{10: waits.Unreliable, 20: waits.Complete}[v.Process]
		expect.Equal(t, v.State, want, "of process %d", v.Process)
	}
}

func TestFilter(t *testing.T) {
	trace := newScript(nettracefile.Options{}).run("1:W@1 1:w+5 2:W@1 2:w+50 1:W@1 1:w+20").w.End().Bytes()
	for _, c := range []struct {
		name   string
		filter waits.Filter
		want   string
	}{
		{"all", waits.Filter{}, "1 wait 5, 2 wait 50, 1 wait 20"},
		{"min", waits.Filter{Min: 10 * ms}, "2 wait 50, 1 wait 20"},
		{"thread", waits.Filter{Threads: []uint64{2, 9}}, "2 wait 50"},
		{"since", waits.Filter{Since: 10 * ms}, "2 wait 50, 1 wait 20"},
		{"until", waits.Filter{Until: 10 * ms}, "1 wait 5, 2 wait 50"},
	} {
		a := waits.New()
		a.Filter = c.filter
		a.Read(bytes.NewReader(trace))
		a.Finish()
		expect.Equal(t, show(a), c.want, c.name)
	}
}

// TestList: the list keeps the longest waits, and the sums include all.
func TestList(t *testing.T) {
	s := newScript(nettracefile.Options{})
	for i := range 100 {
		s.run(fmt.Sprintf("1:W@1 1:w+%d", 1+i*7%100))
	}
	a := waits.New()
	a.List = 3
	a.Read(bytes.NewReader(s.w.End().Bytes()))
	a.Finish()
	count, nanos := a.Total()
	expect.True(t, len(a.Waits) == 3 && a.Unlisted == 97 && count == 100 && nanos == 5050*ms,
		"%s; %d unlisted, %d of %d ms", show(a), a.Unlisted, count, nanos/ms)
	for i := range a.Waits {
		expect.True(t, a.Waits[i].Nanos >= 98*ms, "%s", show(a))
	}
}

// TestTruncatedKeeps: if the trace is truncated, everything before is kept.
func TestTruncatedKeeps(t *testing.T) {
	trace := newScript(nettracefile.Options{}).run("1:W@1 1:w+5 2:W@1 2:w+50").w.End().Bytes()
	seen := 0
	for n := range trace {
		a := analyse(trace[:n])
		must.True(t, len(a.Partial()) > 0 && a.Ended != nil, "cut at %d: nothing is said", n)
		if len(a.Waits) > 0 {
			seen = n
		}
	}
	expect.Equal(t, seen, len(trace)-1, "where the last waits were seen")
}
