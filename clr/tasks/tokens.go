package tasks

import (
	"encoding/binary"
	"math"
	"slices"
)

// Bounds of the registrations with sources of tokens.
const (
	maxSources       = 1 << 14
	maxRegistrations = 1 << 14 // of one source
	allRegistrations = 1 << 18
)

// tokens are the waits that a timer ends through a CancellationToken.
type tokens struct {
	ends  map[uint64]bool // objects of waits: tasks, and those on which threads block
	waits map[uint64]bool // registrations of events and semaphores: the thread has them on its stack
	read  int             // registrations
}

// readTokens follows the sources of tokens that have a timer, and the sources that are linked to them, to the
// waits that have registered with them.
//
// Source: System.Private.CoreLib, CancellationTokenSource.cs.
func (g *graph) readTokens() {
	g.tokens = tokens{ends: map[uint64]bool{}, waits: map[uint64]bool{}}
	reach(slices.DeleteFunc(g.sources, func(at uint64) bool { return !g.armed(at) }), g.readRegistrations)
	for i := range g.src.Stacks {
		s := &g.src.Stacks[i]
		for b := s.Data; len(b) >= 8 && len(g.tokens.waits) > 0; b = b[8:] {
			if g.tokens.waits[binary.LittleEndian.Uint64(b)] && !slices.Contains(g.out.Limited, s.TID) {
				g.out.Limited = append(g.out.Limited, s.TID)
			}
		}
	}
}

// reach calls visit once for each source, and for each that visit has returned.
func reach(sources []uint64, visit func(at uint64) (linked []uint64)) {
	seen := map[uint64]bool{}
	for len(sources) > 0 {
		at := sources[len(sources)-1]
		if sources = sources[:len(sources)-1]; !seen[at] {
			seen[at] = true
			sources = append(sources, visit(at)...)
		}
	}
}

// list follows a linked list of registrations from the first one, within the bounds. visit returns the
// address of the next one. ok is false if it finds no registration at the address that it is given.
func (t *tokens) list(at uint64, visit func(at uint64) (next uint64, ok bool)) {
	ok := true
	for range min(maxRegistrations, allRegistrations-t.read) {
		if at, ok = visit(at); !ok {
			return
		}
		t.read++
	}
}

// armed reports whether a source has a timer that has not ended.
func (g *graph) armed(at uint64) bool {
	from, ok1 := g.load(at)
	timer, ok2 := g.load(from.Field("_timer"))
	return ok1 && ok2 && timer.Uint32("_dueTime") != math.MaxUint32
}

// readRegistrations finds the waits that have registered with a source of tokens, and returns the sources
// that are linked to it.
func (g *graph) readRegistrations(from uint64) (linked []uint64) {
	o, _ := g.load(from)
	all, _ := g.load(o.Field("_registrations"))
	g.tokens.list(all.Field("Callbacks"), func(at uint64) (next uint64, ok bool) {
		registration, ok := g.load(at)
		if ok {
			g.readRegistration(at, registration.Field("CallbackState"), &linked)
		}
		return registration.Field("Next"), ok
	})
	return linked
}

// readRegistration notes the wait of a registration, or adds its source to linked.
func (g *graph) readRegistration(at, state uint64, linked *[]uint64) {
	o, ok := g.load(state)
	switch {
	case !ok:
	case g.shapes.shape(o.Type).kind == tokenSource:
		*linked = append(*linked, state)
	case o.Type.Is("System.Threading.ManualResetEventSlim"), o.Type.Is("System.Threading.SemaphoreSlim"):
		g.tokens.waits[at] = true
		fallthrough
	default:
		g.tokens.ends[state] = true
	}
}
