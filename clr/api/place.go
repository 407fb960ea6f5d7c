package api

import (
	"fmt"
	"strings"
)

// Place is the origin of a call.
type Place uint8

const (
	Init       Place = iota // Initialize
	PInvoke                 // a managed thread in a P/Invoke, outside callbacks
	NativeCall              // a thread without a runtime Thread
	Triggers                // a callback whose scope permits methods that trigger
	NoTrigger               // a callback whose scope does not
	Collecting              // GarbageCollectionStarted, on the collecting thread
	Owner                   // the native thread that has suspended the runtime
	Other                   // another native thread during that suspension
	places
)

// placeNames are the words of the tables, and the descriptions of the places.
var placeNames = [places][2]string{
	{"init", "Initialize"},
	{"pinvoke", "a managed thread outside callbacks"},
	{"native", "a thread without a runtime Thread"},
	{"triggers", "a callback that may trigger (JITCompilationStarted)"},
	{"notrigger", "a callback that may not (RuntimeSuspendStarted)"},
	{"collecting", "a callback inside a collection (GarbageCollectionStarted)"},
	{"owner", "the thread that holds SuspendRuntime"},
	{"other", "a native thread while another holds SuspendRuntime"},
}

// Places lists all places.
func Places() []Place {
	all := make([]Place, places)
	for i := range all {
		all[i] = Place(i)
	}
	return all
}

// String returns the place as the tables name it.
func (p Place) String() string { return placeNames[p][0] }

// Describe returns the place in words.
func (p Place) Describe() string { return placeNames[p][1] }

// ParsePlace reads a name.
func ParsePlace(s string) (Place, error) {
	for p := range placeNames {
		if placeNames[p][0] == s {
			return Place(p), nil
		}
	}
	return 0, fmt.Errorf("%q is no place", s)
}

// Answer is the gate's reaction to a call.
type Answer uint8

const (
	LetIn       Answer = iota // the method reads its arguments
	Refused                   // 80131363
	OnlyInit                  // 80131356
	NotAttached               // 8013136F
	NotNotify                 // E_INVALIDARG, for a notification profiler
	NotHere                   // E_NOTIMPL
	Kills                     // the process crashes, always or sometimes
)

// String returns the answer as text.
func (a Answer) String() string {
	return [...]string{"allowed", "refused (80131363)", "refused (80131356)", "refused (8013136F)",
		"refused (E_INVALIDARG)", "E_NOTIMPL", "kills the process"}[a]
}

// Expect returns the answer of the table to a call of m from a place, for a profiler that was loaded at
// startup.
func (m *Info) Expect(p Place, r Release) Answer {
	if m.own[p] {
		return Refused
	}
	if p == NativeCall && m.Native == "kills" || strings.Contains(m.skip[p], "ends the process") {
		return Kills
	}
	switch g := m.gate(r); {
	case g == Stub:
		return NotHere
	case g == InitOnly && p != Init:
		return OnlyInit
	case (g == Sync || g == SyncGC) && p == PInvoke:
		return Refused
	case g == SyncGC && (p == NoTrigger || p == Collecting):
		return Refused
	}
	return LetIn
}

// Skip returns why the tests do not call m from a place, "" if they do.
func (m *Info) Skip(p Place) string { return m.skip[p] }

// Differs returns why a CLR's answer differs from Expect, "" if it does not.
func (m *Info) Differs(clr string, p Place) string {
	for _, d := range m.differs {
		if d.clr == clr && d.place == p {
			return d.why
		}
	}
	return ""
}

// OwnRefused lists the places in which the method's own rule refuses a call.
func (m *Info) OwnRefused() string {
	var at []string
	for _, p := range Places() {
		if m.own[p] {
			at = append(at, p.String())
		}
	}
	return strings.Join(at, ", ")
}

// String returns MAJOR.MINOR.
func (r Release) String() string { return fmt.Sprintf("%d.%d", r/10, r%10) }
