package events

import (
	"fmt"
	"runtime"
	"time"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/alarm"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/stream"
	"github.com/seedwalk/seedwalk/stack/merge"
)

// maxUncut bounds the walked stacks of events that wait until the delivery is known. EventStep is the longest
// sleep while events are recorded.
const (
	maxUncut  = 1 << 12 // walked stacks, until the delivery is known
	EventStep = 2 * time.Millisecond
	openAge   = int64(500 * time.Millisecond) // age of an open wait at which its stack is read from outside
)

// The runtime's ids of the recorded events.
const (
	allocationTick    = 10
	exceptionThrown   = 80
	contentionStart   = 81
	contentionStop    = 91
	waitStop          = 302
	allocationSampled = 303
)

// Engine is what this package needs from the engine that samples the process.
type Engine interface {
	// LookAt leaves the stack of a blocked thread in the sampler's frames.
	LookAt(tid uint32) (merge.Gap, bool)
	// Resting returns the last sample of a thread that has rested since.
	Resting(tid uint32) (stream.Held, bool)
	// WalkLater walks a held sample.
	WalkLater(s *sampler.Sample)
}

// Events are the runtime's events of a recording.
type Events struct {
	*sampler.Base
	Engine
	File     *probe.File // nil: the process has not opened it
	delivery delivery
	Offset   int64 // from the probe's clock to Unix time
	uncut    []uncut
	waiting  map[openKey]stream.Held // open waits with their stacks
	ips      []uint64

	sent, unwalked, otherwise, malformed uint64
	ticks, sampled                       uint64 // allocations, by event
}

// uncut is a walked event that waits for the delivery to be known.
type uncut struct {
	event uint32
	m     wire.Event
}

// openKey identifies an open wait.
type openKey struct {
	tid   uint32
	since uint64
}

func New(s *sampler.Base, e Engine, f *probe.File) Events {
	return Events{Base: s, Engine: e, File: f, Offset: probe.World(), waiting: map[openKey]stream.Held{}}
}

// How often the tool refreshes its heartbeat. Usually the rounds do it, and the heartbeat goroutine if they
// are late. The probe treats half a second without one (two seconds on Windows) as the tool's death. On
// Linux, a session of events waits 16 times as long.
const (
	beatEvery = 100 * time.Millisecond
	BeatLate  = 250 * time.Millisecond
	// SlowBeat is BeatLate at low rates. The probe then waits four times as long, too.
	SlowBeat = 4 * BeatLate
)

// Heartbeat tells the probe that the tool is alive, even if sampling is delayed. It stays asleep as long as
// rounds come in time, because they beat too.
type Heartbeat struct {
	file  *probe.File
	alarm alarm.Alarm
	late  time.Duration
	ended chan struct{} // closed when run has ended
}

// StartHeartbeat starts the heartbeat. A slow one lets the engine sleep for up to SlowBeat.
func StartHeartbeat(f *probe.File, slow bool) *Heartbeat {
	h := &Heartbeat{f, alarm.New(), BeatLate, make(chan struct{})}
	if slow {
		h.late = SlowBeat
		f.SetSilence(2 * SlowBeat)
	}
	h.alarm.Set(beatEvery)
	go h.run()
	return h
}

func (h *Heartbeat) run() {
	defer close(h.ended)
	for h.alarm.Wait() {
		h.file.Beat()
		h.alarm.Set(beatEvery)
	}
}

// Round beats at once.
func (h *Heartbeat) Round() {
	h.file.Beat()
	h.alarm.Set(h.late)
}

// Stop ends the beats. Nothing uses the file any more when it returns.
func (h *Heartbeat) Stop() {
	h.alarm.Close()
	<-h.ended
}

// Take handles one event.
func (v *Events) Take(r *probe.Record) {
	s := sampler.Sample{Capture: sampler.CaptureOf(v.Target.Arch, runtime.GOOS, r), Event: r}
	if v.Hold(&s) {
		return
	}
	v.WalkPending()
	v.walkEvent(&s)
}

// WalkPending walks the held events.
func (v *Events) WalkPending() {
	if len(v.Pending.Samples) == 0 || !v.Ready() {
		return
	}
	held := v.Pending.Take()
	v.Stats.Held += uint64(len(held))
	for i := range held {
		if s := &held[i]; s.Event != nil {
			v.walkEvent(s)
		} else {
			v.WalkLater(s)
		}
	}
}

// walkEvent walks an event's stack and sends the event.
func (v *Events) walkEvent(s *sampler.Sample) {
	r := s.Event
	gap, _, ok := v.Walk(&s.Capture)
	if ok && v.HoldWalked(s, gap) {
		return
	}
	if !ok {
		gap, v.Stream.Frames = merge.GapNoInfo, v.Stream.Frames[:0]
		v.unwalked++
	}
	v.ips = v.ips[:0]
	for i := range v.Stream.Frames {
		v.ips = append(v.ips, v.Stream.Frames[i].IP)
	}
	asked := r.Event == probe.AskedCopy
	if !asked && v.delivery.learn(r.Event, v.ips) {
		v.sendUncut()
	}
	if r.Flags&probe.Learn != 0 {
		return
	}
	m, ok := decodeEvent(r)
	if !ok {
		v.malformed++
		return
	}
	m.TimeUnixNano, m.Owner = int64(r.Time)+v.Offset, v.File.Holder(m.Owner)
	m.Gap, m.Frames = uint8(gap), v.Stream.Frames
	if !asked && !v.delivery.known() && len(v.uncut) < maxUncut {
		m.Frames = append([]wire.Frame(nil), m.Frames...)
		v.uncut = append(v.uncut, uncut{r.Event, m})
		return
	}
	v.sendEvent(r.Event, &m)
}

// sendUncut sends the events that have waited for the delivery.
func (v *Events) sendUncut() {
	waiting := v.uncut
	v.uncut = nil
	for i := range waiting {
		v.sendEvent(waiting[i].event, &waiting[i].m)
	}
}

// sendEvent removes the delivery from a stack and sends the event.
func (v *Events) sendEvent(id uint32, m *wire.Event) {
	v.ips = v.ips[:0]
	for i := range m.Frames {
		v.ips = append(v.ips, m.Frames[i].IP)
	}
	n, ok := v.delivery.cut(v.ips)
	if id == probe.AskedCopy { // the runtime did not deliver it
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
	v.Stream.Out.Event(m)
	if v.Stream.Out.Len() > 1<<17 {
		v.Stream.Push()
	}
}

// decodeEvent decodes an event's payload.
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

// decodeStart decodes the payload of a wait's start.
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

// End ends the session, within a time limit.
func (v *Events) End() {
	if state, _ := v.File.Session(); v.Config.Events == 0 || state != probe.SessionOpen {
		return
	}
	v.WatchOpen()
	v.File.EndEvents()
	for range 100 {
		if state, _ := v.File.Session(); state == probe.SessionEnded {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// WatchOpen reads the stacks of threads that have waited for openAge or longer. A wait that does not end in
// the recording has no event, so Last sends it with this stack.
func (v *Events) WatchOpen() {
	if v.Config.Events == 0 || v.Target.Tables == nil || !v.Target.Tables.Proven() {
		return
	}
	before := v.waiting
	v.waiting = map[openKey]stream.Held{}
	now := v.Nano(time.Now()) - v.Offset
	v.File.Waiting(func(w probe.Waiting) {
		key := openKey{w.TID, w.Since}
		if h, ok := before[key]; ok {
			v.waiting[key] = h
			return
		}
		if now-int64(w.Since) < openAge {
			return
		}
		if gap, ok := v.LookAt(w.TID); ok {
			v.waiting[key] = stream.Held{Frames: append([]wire.Frame(nil), v.Stream.Frames...),
				Gap: uint8(gap)}
		}
	})
}

// Last sends everything that is still buffered, and the open waits.
func (v *Events) Last() {
	if v.Config.Events == 0 {
		return
	}
	v.WalkPending()
	v.sendUncut()
	now := v.Nano(time.Now())
	v.File.Waiting(func(w probe.Waiting) {
		m := wire.Event{TID: uint64(w.TID), TimeUnixNano: now, Flags: wire.EventOpen,
			Nanos: uint64(max(0, now-v.Offset-int64(w.Since)))}
		if !decodeStart(&m, w.Event == contentionStart, w.Payload) || m.Nanos < uint64(v.Config.WaitMin) {
			return
		}
		m.Owner = v.File.Holder(m.Owner)
		h, ok := v.waiting[openKey{w.TID, w.Since}]
		if !ok {
			h, ok = v.Resting(w.TID) // its last sample is of this wait
		}
		if m.Gap, m.Frames = h.Gap, h.Frames; !ok {
			m.Gap = uint8(merge.GapUnreadable)
		}
		v.Stream.Out.Event(&m)
		v.sent++
	})
	if state, failed := v.File.Session(); state == probe.NoSession {
		v.Stream.Out.Note(noSession(failed))
	}
}

// noSession returns why there are no events.
func noSession(failed uint32) string {
	if failed == 0 {
		return "no waits, locks, allocations, and exceptions: the probe started before seedwalk requested events"
	}
	return "no waits, locks, allocations, and exceptions: the runtime gave the probe no event session (" +
		fmt.Sprintf("HRESULT %#x", failed) + ")"
}

// WriteTotals sends the totals.
func (v *Events) WriteTotals() {
	if v.Config.Events == 0 {
		return
	}
	c := v.File.EventCounts()
	for _, n := range []struct {
		key   string
		value uint64
	}{
		{"waits", c.Waits}, {"wait_stops", c.WaitStops}, {"locks", c.Locks}, {"lock_stops", c.LockStops},
		{"allocs", c.Allocs}, {"exceptions", c.Exceptions},
		{"brief", c.Brief}, {"brief_ns", c.BriefNanos}, {"inner", c.Inner}, {"early", c.Early},
		{"crowded", c.Crowded}, {"missed", c.Missed},
		{"copies", c.Copies}, {"copy_ns", c.Nanos}, {"sent", v.sent}, {"unwalked", v.unwalked},
		{"otherwise", v.otherwise}, {"malformed", v.malformed},
		{"delivery", uint64(v.delivery.n)}, {"alloc_ticks", v.ticks}, {"alloc_sampled", v.sampled},
	} {
		v.Stream.Out.Counter("probe_event_"+n.key, n.value)
	}
	v.writeDropped()
}

// writeDropped sends the totals of the events for which the ring was full, by type.
func (v *Events) writeDropped() {
	sum := map[wire.Dropped]*wire.Dropped{} // types of several modules can have the same name
	v.File.Dropped(func(d probe.Dropped) {
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
		v.Stream.Out.Dropped(m)
	}
}
