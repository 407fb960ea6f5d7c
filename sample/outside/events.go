//go:build linux || (windows && amd64)

package outside

import (
	"time"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// Limits of what waits for something that is not known yet.
const (
	maxUncut  = 1 << 12 // walked, until the delivery is learned
	eventStep = 2 * time.Millisecond
	openAge   = int64(500 * time.Millisecond) // of an open wait whose stack is read from outside
)

// The runtime's ids of what is recorded.
const (
	allocationTick    = 10
	exceptionThrown   = 80
	contentionStart   = 81
	contentionStop    = 91
	waitStop          = 302
	allocationSampled = 303
)

// events are the runtime's events of a recording.
type events struct {
	delivery delivery
	offset   int64 // from the probe's clock to the world's
	uncut    []uncut
	open     map[openKey]held
	ips      []uint64

	sent, unwalked, otherwise, malformed uint64
	ticks, sampled                       uint64 // allocations, by event
}

// uncut is a walked event whose delivery is not known yet.
type uncut struct {
	event uint32
	m     wire.Event
}

// openKey names a wait that has not ended.
type openKey struct {
	tid   uint32
	since uint64
}

func (v *events) init() {
	v.offset = probe.World()
	v.open = map[openKey]held{}
}

// How often the probe is told that we live, of which it takes a silence of half a second
// for our death: by the heartbeat, if nobody else has for so long.
const (
	beatEvery = 100 * time.Millisecond
	beatLate  = 150 * time.Millisecond
)

// heartbeat tells the probe that we live, whatever the sampling is busy with. It sleeps on as
// long as rounds, which tell it too, come in time.
type heartbeat struct {
	file  *probe.File
	alarm alarm
	ended chan struct{} // closed when run has ended
}

func beat(f *probe.File) *heartbeat {
	h := &heartbeat{f, newAlarm(), make(chan struct{})}
	h.alarm.set(beatEvery)
	go h.run()
	return h
}

func (h *heartbeat) run() {
	defer close(h.ended)
	for h.alarm.wait() {
		h.file.Beat()
		h.alarm.set(beatEvery)
	}
}

// round beats at once.
func (h *heartbeat) round() {
	h.file.Beat()
	h.alarm.set(beatLate)
}

// stop ends the beats. It reports whether nothing uses the file any more.
func (h *heartbeat) stop() bool {
	h.alarm.close()
	select {
	case <-h.ended:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// event takes one event.
func (e *Engine) event(r *probe.Record) {
	s := stackSample{capture: eventCapture(e.t.arch, r), event: r}
	if e.hold(&s) {
		return
	}
	e.walkPending()
	e.walkEvent(&s)
}

// walkPending walks what has been held.
func (e *Engine) walkPending() {
	if len(e.pending.samples) == 0 || !e.ready() {
		return
	}
	held := e.pending.take()
	e.stats.held += uint64(len(held))
	for i := range held {
		if s := &held[i]; s.event != nil {
			e.walkEvent(s)
		} else {
			e.walkLater(s)
		}
	}
}

// eventCapture is the stack of an event: of the registers those are known that a call
// keeps, as they were when the runtime called the probe.
func eventCapture(a context.Arch, r *probe.Record) capture {
	c := capture{tid: r.TID, called: true, regs: called(a, r.Regs), stack: memory.Run{Addr: r.StackAddr, Data: r.Stack}, cut: r.Flags&probe.Cut != 0, extra: r.Extra,
		low: r.StackAddr, high: r.StackAddr + uint64(len(r.Stack))}
	if r.Flags&(probe.Foreign|probe.Cut) != 0 {
		c.low, c.high = 0, 0
	}
	return c
}

// walkEvent walks an event's stack and sends what it says.
func (e *Engine) walkEvent(s *stackSample) {
	v, r := &e.events, s.event
	gap, _, ok := e.walk(&s.capture)
	if ok && e.holdWalked(s, gap) {
		return
	}
	if !ok {
		gap, e.s.Frames = merge.GapNoInfo, e.s.Frames[:0]
		v.unwalked++
	}
	v.ips = v.ips[:0]
	for i := range e.s.Frames {
		v.ips = append(v.ips, e.s.Frames[i].IP)
	}
	asked := r.Event == probe.AskedCopy
	if !asked && v.delivery.learn(r.Event, v.ips) {
		e.sendUncut()
	}
	if r.Flags&probe.Learn != 0 {
		return
	}
	m, ok := decodeEvent(r)
	if !ok {
		v.malformed++
		return
	}
	m.TimeUnixNano = int64(r.Time) + v.offset
	m.Gap, m.Frames = uint8(gap), e.s.Frames
	if !asked && !v.delivery.known() && len(v.uncut) < maxUncut {
		m.Frames = append([]frame(nil), m.Frames...)
		v.uncut = append(v.uncut, uncut{r.Event, m})
		return
	}
	e.sendEvent(r.Event, &m)
}

// sendUncut sends what has waited for the delivery.
func (e *Engine) sendUncut() {
	waiting := e.events.uncut
	e.events.uncut = nil
	for i := range waiting {
		e.sendEvent(waiting[i].event, &waiting[i].m)
	}
}

// sendEvent cuts the delivery off a stack and sends it.
func (e *Engine) sendEvent(id uint32, m *wire.Event) {
	v := &e.events
	v.ips = v.ips[:0]
	for i := range m.Frames {
		v.ips = append(v.ips, m.Frames[i].IP)
	}
	n, ok := v.delivery.cut(id, v.ips)
	if id == probe.AskedCopy { // nothing of the runtime has delivered it
		n = 0
	} else if !ok && v.delivery.known() && len(m.Frames) > 0 {
		v.otherwise++
	}
	m.Frames = m.Frames[n:]
	v.sent++
	switch id {
	case allocationTick:
		v.ticks++
	case allocationSampled:
		v.sampled++
	}
	e.s.Out.Event(m)
	if e.s.Out.Len() > 1<<17 {
		e.s.flush()
	}
}

// decodeEvent reads what an event says.
func decodeEvent(r *probe.Record) (m wire.Event, ok bool) {
	const pointer = 8
	m.TID = uint64(r.TID)
	switch r.Event {
	case waitStop, contentionStop:
		m.Nanos = r.Time - r.Since
		return m, decodeStart(&m, r.Event == contentionStop, r.Payload)
	case allocationTick, allocationSampled:
		var a clrevent.Allocation
		if r.Event == allocationTick {
			a, ok = clrevent.DecodeTick(r.Payload, 4, pointer)
		} else {
			a, ok = clrevent.DecodeSampled(r.Payload, pointer)
		}
		m.Kind, m.Bytes, m.Name = wire.EventAllocation, a.Weight, a.Name
	case probe.AskedCopy:
		m.Kind, m.Lock, ok = wire.EventCopy, r.Since, true
	case exceptionThrown:
		var x clrevent.Exception
		x, ok = clrevent.DecodeException(r.Payload, pointer)
		m.Kind, m.Name, m.Text = wire.EventException, x.Type, x.Message
	}
	return m, ok
}

// decodeStart reads what the start of a wait says.
func decodeStart(m *wire.Event, lock bool, payload []byte) bool {
	const pointer = 8
	if lock {
		c, ok := clrevent.DecodeContention(payload, 2, pointer)
		m.Kind, m.Owner, m.Lock = wire.EventLock, c.Owner, c.Lock
		return ok
	}
	w, ok := clrevent.DecodeWait(payload, pointer)
	m.Kind, m.Lock = wire.EventWait, w.Object
	if w.Monitor {
		m.Kind = wire.EventMonitor
	}
	return ok
}

// endEvents ends the session, as far as that is done soon.
func (e *Engine) endEvents() {
	if state, _ := e.file.Session(); e.cfg.Events == 0 || state != probe.SessionOpen {
		return
	}
	e.watchOpen()
	e.file.EndEvents()
	for range 100 {
		if state, _ := e.file.Session(); state == probe.SessionEnded {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// watchOpen reads the stacks of threads that have waited for long: where the wait
// does not end, there is no other.
func (e *Engine) watchOpen() {
	if e.cfg.Events == 0 || e.t.tables == nil || !e.t.tables.Proven() {
		return
	}
	v := &e.events
	before := v.open
	v.open = map[openKey]held{}
	now := time.Now().UnixNano() - v.offset
	e.file.Waiting(func(w probe.Waiting) {
		key := openKey{w.TID, w.Since}
		if h, ok := before[key]; ok {
			v.open[key] = h
			return
		}
		if now-int64(w.Since) < openAge {
			return
		}
		if gap, ok := e.lookAt(w.TID); ok {
			v.open[key] = held{append([]frame(nil), e.s.Frames...), uint8(gap)}
		}
	})
}

// lastEvents sends what is still waiting for something, and the waits that have not
// ended.
func (e *Engine) lastEvents() {
	if e.cfg.Events == 0 {
		return
	}
	e.walkPending()
	e.sendUncut()
	v := &e.events
	now := time.Now().UnixNano()
	e.file.Waiting(func(w probe.Waiting) {
		m := wire.Event{TID: uint64(w.TID), TimeUnixNano: now, Flags: wire.EventOpen, Nanos: uint64(max(0, now-v.offset-int64(w.Since)))}
		if !decodeStart(&m, w.Event == contentionStart, w.Payload) || m.Nanos < uint64(e.cfg.WaitMin) {
			return
		}
		h, ok := v.open[openKey{w.TID, w.Since}]
		if !ok {
			h, ok = e.resting(w.TID) // its last sample is of this wait
		}
		if m.Gap, m.Frames = h.gap, h.frames; !ok {
			m.Gap = uint8(merge.GapUnreadable)
		}
		e.s.Out.Event(&m)
		v.sent++
	})
	if state, failed := e.file.Session(); state == probe.NoSession {
		e.s.Out.Note(noSession(failed))
	}
}

// noSession says why there are no events.
func noSession(failed uint32) string {
	if failed == 0 {
		return "no waits, locks, allocations and exceptions: the probe did not wait for the tool's wishes"
	}
	return "no waits, locks, allocations and exceptions: the runtime gave the probe no event session (" + hresult(failed) + ")"
}

// writeEvents sends the totals.
func (e *Engine) writeEvents() {
	if e.cfg.Events == 0 {
		return
	}
	c, v := e.file.EventCounts(), &e.events
	for _, n := range []struct {
		key   string
		value uint64
	}{
		{"waits", c.Waits}, {"wait_stops", c.WaitStops}, {"locks", c.Locks}, {"lock_stops", c.LockStops}, {"allocs", c.Allocs}, {"exceptions", c.Exceptions},
		{"brief", c.Brief}, {"brief_ns", c.BriefNanos}, {"inner", c.Inner}, {"early", c.Early}, {"crowded", c.Crowded}, {"missed", c.Missed},
		{"copies", c.Copies}, {"copy_ns", c.Nanos}, {"sent", v.sent}, {"unwalked", v.unwalked}, {"otherwise", v.otherwise}, {"malformed", v.malformed},
		{"delivery", uint64(v.delivery.n)}, {"alloc_ticks", v.ticks}, {"alloc_sampled", v.sampled},
	} {
		e.s.Out.Stats("probe_event_"+n.key, n.value)
	}
	e.writeDropped()
}

// writeDropped sends the totals of the events that found the ring full, by type.
func (e *Engine) writeDropped() {
	sum := map[wire.Dropped]*wire.Dropped{} // types of several modules can share a name
	e.file.Dropped(func(d probe.Dropped) {
		key := wire.Dropped{Kind: wire.EventAllocation, Name: d.Type}
		if d.Exception {
			key.Kind = wire.EventException
		}
		m := sum[key]
		if m == nil {
			m = &wire.Dropped{Kind: key.Kind, Name: key.Name}
			sum[key] = m
		}
		m.Count, m.Bytes = m.Count+d.Count, m.Bytes+d.Bytes
	})
	for _, m := range sum {
		e.s.Out.Dropped(m)
	}
}
