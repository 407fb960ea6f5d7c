package tasks

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/seedwalk/seedwalk/clr/objects"
)

// Bounds of the registrations with sources of tokens.
const (
	maxSources       = 1 << 14
	maxRegistrations = 1 << 16 // of one source
	maxLinked        = 8       // sources that are linked one to another
)

// tokens are the waits that a timer ends through a CancellationToken.
type tokens struct {
	ends  map[uint64]bool // objects of waits: tasks, and those on which threads block
	waits map[uint64]bool // registrations of events and semaphores: the thread has them on its stack
}

// readTokens follows the sources of tokens that have a timer to the waits that have registered with them.
//
// Source: System.Private.CoreLib, CancellationTokenSource.cs.
func (g *graph) readTokens() {
	g.tokens = tokens{map[uint64]bool{}, map[uint64]bool{}}
	for _, at := range g.sources {
		from, ok1 := g.load(at)
		timer, ok2 := g.load(from.Field("_timer"))
		if !ok1 || !ok2 || timer.Uint32("_dueTime") == math.MaxUint32 { // the timer has ended
			continue
		}
		g.readRegistrations(&from, 0)
	}
	for i := range g.src.Stacks {
		s := &g.src.Stacks[i]
		for b := s.Data; len(b) >= 8 && len(g.tokens.waits) > 0; b = b[8:] {
			if g.tokens.waits[binary.LittleEndian.Uint64(b)] && !slices.Contains(g.out.Limited, s.TID) {
				g.out.Limited = append(g.out.Limited, s.TID)
			}
		}
	}
}

// readRegistrations finds the waits that have registered with a source of tokens, or with a source that is
// linked to it.
func (g *graph) readRegistrations(from *objects.Object, depth int) {
	all, _ := g.load(from.Field("_registrations"))
	at := all.Field("Callbacks")
	for range maxRegistrations {
		registration, ok := g.load(at)
		if !ok {
			return
		}
		wait := registration.Field("CallbackState")
		o, ok := g.load(wait)
		switch {
		case !ok:
		case g.shapes.shape(o.Type).kind == source && depth < maxLinked:
			g.readRegistrations(&o, depth+1)
		case o.Type.Is("System.Threading.ManualResetEventSlim"), o.Type.Is("System.Threading.SemaphoreSlim"):
			g.tokens.waits[at] = true
			fallthrough
		default:
			g.tokens.ends[wait] = true
		}
		at = registration.Field("Next")
	}
}
