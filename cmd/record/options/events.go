package options

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/sample/probe"
)

// Events is what is recorded, names with commas between: cpu, wall, waits, locks,
// alloc, exception.
type Events string

// EventsDefault is CPU time and blocked threads.
const EventsDefault Events = ""

// DefaultWaitMin is the shortest wait that gets a stack. Shorter waits show up in samples if
// there are many.
const DefaultWaitMin = time.Millisecond

// runtimeEvent is a name of Events, with the probe's number and the events that it includes.
type runtimeEvent struct {
	name   string
	Probe  uint32
	Events []export.Event
}

// RuntimeEvents are the events of the runtime. The thread pool's belong to waits.
var RuntimeEvents = []runtimeEvent{
	{"waits", probe.WaitEvents, []export.Event{export.EventWait, export.EventQueue, export.EventStarved}},
	{"locks", probe.LockEvents, []export.Event{export.EventLock}},
	{"alloc", probe.AllocEvents, []export.Event{export.EventAllocation}},
	{"exception", probe.ExceptionEvents, []export.Event{export.EventException}},
}

// wanted is what Events names.
type wanted struct {
	CPU, Wall bool
	Events    uint32
}

// Parse reads the names. bad is the first unknown name; the result is then incomplete.
func (e Events) Parse() (w wanted, bad string) {
	if e == EventsDefault {
		return wanted{CPU: true, Wall: true}, ""
	}
	for _, name := range strings.Split(string(e), ",") {
		i := slices.IndexFunc(RuntimeEvents, func(r runtimeEvent) bool { return r.name == name })
		switch {
		case name == "cpu":
			w.CPU = true
		case name == "wall":
			w.Wall = true
		case i >= 0:
			w.Events |= RuntimeEvents[i].Probe
		default:
			return w, name
		}
	}
	return w, ""
}

// checkEvents refuses unknown names, events that the mode does not support, and a negative WaitMin.
func (o *Options) checkEvents() *Refusal {
	w, bad := o.Events.Parse()
	where := "--events " + string(o.Events)
	switch {
	case bad != "" || o.Events != EventsDefault && slices.Contains(strings.Split(string(o.Events), ","), ""):
		return &Refusal{What: fmt.Sprintf("there is no event %q", bad), Where: where,
			Remedy: "choose from cpu, wall, waits, locks, alloc, and exception, separated by commas",
			Code:   ExitUsage}
	case w.Events != 0 && (o.Mode != ModeProbe || o.noEvents() != ""):
		why := "--mode snapshot does not record the runtime's events"
		switch {
		case o.Mode == ModeProbe:
			why = o.noEvents()
		case o.Mode != ModeSnapshot:
			why = "the runtime's events need a library in the process"
		case o.modeWhy != "":
			why = o.modeWhy + ", and only a probe in the process gets the runtime's events"
		}
		return Refuse(where, why, "use seedwalk waits for waits and locks; cpu and wall need no probe")
	case o.WaitMin < 0:
		return &Refusal{What: "below 0", Where: "--wait-min " + o.WaitMin.String(),
			Remedy: "choose 0 for every wait", Code: ExitUsage}
	}
	return nil
}
