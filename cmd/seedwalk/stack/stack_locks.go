package stack

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/report/hang"
)

// stackLock is what a thread waits for.
type stackLock struct {
	Kind  string `json:"kind"` // as paused.LockKind names it
	At    string `json:"at,omitempty"`
	Owner uint32 `json:"owner,omitempty"` // 0 = not known
	Ended bool   `json:"owner_ended,omitempty"`
	Name  string `json:"name,omitempty"` // of the type with a static constructor, or of a mutex
}

// cycles lists the threads that wait for each other, each cycle once, from its lowest
// number on.
func cycles(threads []stackThread) (out [][]uint32) {
	next := map[uint32]uint32{}
	for i := range threads {
		if l := threads[i].Lock; l != nil && l.Owner != 0 && !l.Ended {
			next[threads[i].TID] = l.Owner
		} else if threads[i].Joins != 0 {
			next[threads[i].TID] = threads[i].Joins
		}
	}
	for i := range threads {
		first := threads[i].TID
		ring := []uint32{first}
		for at, ok := next[first]; ok && len(ring) <= len(next); at, ok = next[at] {
			if at == first {
				if slices.Min(ring) == first {
					out = append(out, ring)
				}
				break
			}
			ring = append(ring, at)
		}
	}
	return out
}

// who names a thread.
func (v *stackView) who(tid uint32) string {
	for i := range v.Threads {
		if t := &v.Threads[i]; t.TID == tid && t.Name != "" {
			return fmt.Sprintf("thread %d %q", tid, t.Name)
		}
	}
	return fmt.Sprintf("thread %d", tid)
}

// writeLock writes what a thread waits for.
func (v *stackView) writeLock(w io.Writer, t *stackThread, several bool) {
	who := "it"
	if several {
		who = v.who(t.TID)
	}
	if t.Joins != 0 {
		fmt.Fprintf(w, "  (%s waits for the end of %s)\n", who, v.who(t.Joins))
	}
	if t.Lock == nil {
		return
	}
	fmt.Fprintf(w, "  (%s waits for a %s", who, t.Lock.Kind)
	if t.Lock.Name != "" {
		fmt.Fprintf(w, " (%s)", t.Lock.Name)
	}
	if t.Lock.At != "" {
		fmt.Fprintf(w, " at %s", t.Lock.At)
	}
	if t.Lock.Ended {
		fmt.Fprint(w, "; its owner ended without releasing it")
	} else if t.Lock.Owner != 0 {
		verb := "holds"
		if t.Lock.Kind == hang.StaticConstructor {
			verb = "runs"
		}
		fmt.Fprintf(w, ", which %s %s", v.who(t.Lock.Owner), verb)
	} else {
		fmt.Fprint(w, "; its owner is not known")
	}
	fmt.Fprintln(w, ")")
}

// writeCycles lists who waits for each other.
func (v *stackView) writeCycles(w io.Writer) {
	for _, ring := range v.Cycles {
		var names []string
		for _, tid := range append(ring, ring[0]) {
			names = append(names, v.who(tid))
		}
		fmt.Fprintf(w, "\ndeadlock: each waits for a lock that the next holds, or for its end: %s\n",
			strings.Join(names, " -> "))
	}
}
