package tasks

import (
	"encoding/binary"
	"strings"
)

// Run is what the frames have that run a task, or resume an async method.
type Run struct {
	Method string   // the async method; "" for a task
	Words  []uint64 // one is the address of the task or box
}

// Body returns the name of an async method from the name of its body, MoveNext, in a stack. ok is false for
// other functions.
func Body(name string) (method string, ok bool) { return strings.CutSuffix(name, " (async)") }

// Edge is a thread that waits for a task which another thread runs. The wait cannot end before that thread
// goes on, unless Limited is set.
type Edge struct {
	Waits, Runs uint32
	Task        uint64 // that is run
	Name        string // of the task or of its async method
	Limited     bool   // a timer ends the wait
}

// maxEdges bounds the edges of a process.
const maxEdges = 1 << 12

// claim is a thread whose frames have the address of an object.
type claim struct {
	stack  *Stack
	method string
}

// claims are the objects that threads run or wait for.
type claims struct {
	runs, waits map[uint64][]claim
	tokens      map[uint32]bool // threads whose wait may end through a token
	edges       map[Edge]bool
}

// readClaims finds the objects that threads run or wait for.
func (g *graph) readClaims() {
	c := claims{map[uint64][]claim{}, map[uint64][]claim{}, map[uint32]bool{}, map[Edge]bool{}}
	g.claims = c
	for i := range g.src.Stacks {
		s := &g.src.Stacks[i]
		for _, at := range s.Waits {
			if o, ok := g.load(at); ok {
				c.waits[at] = append(c.waits[at], claim{stack: s})
				c.tokens[s.TID] = c.tokens[s.TID] || g.shapes.shape(o.Type).kind == tokenSource
			}
		}
		for _, r := range s.Runs {
			for _, at := range r.Words {
				if _, ok := g.index[at]; ok {
					c.runs[at] = append(c.runs[at], claim{s, r.Method})
				}
			}
		}
	}
}

// sole returns the only thread that claims an object. It returns 0 without a claim, and if several threads
// claim the object: stale words on a stack are claims too. In a running process, the stack must still have
// the object's address.
func (g *graph) sole(object uint64, all []claim) (tid uint32) {
	for _, c := range all {
		if tid != 0 && c.stack.TID != tid {
			return 0
		}
		if tid = c.stack.TID; !g.still(c.stack, object) {
			return 0
		}
	}
	return tid
}

// still reports whether the words of a stack that were an object's address still are. A collection that has
// moved the object has changed them.
func (g *graph) still(s *Stack, object uint64) bool {
	const most = 64
	found := 0
	b := make([]byte, 8)
	for i := uint64(0); i+8 <= s.Size && g.src.Moves && found < most; i += 8 {
		if binary.LittleEndian.Uint64(s.Data[i:]) != object {
			continue
		}
		if found++; !g.src.Memory.ReadAt(b, s.Addr+i) || binary.LittleEndian.Uint64(b) != object {
			return false
		}
	}
	return found > 0 || !g.src.Moves
}

// runner returns the thread that runs a pending task, 0 if that is not certain.
func (g *graph) runner(p *pending) uint32 {
	var all []claim
	for _, c := range g.claims.runs[p.addr] {
		switch {
		case p.shape.flags == 0: // a box of a pool may be in use again
		case p.shape.kind == box && c.method != "" && withoutArgs(c.method) == withoutArgs(p.name()),
			p.shape.kind != box && c.method == "" && p.state&stateInvoked != 0:
			all = append(all, c)
		}
	}
	return g.sole(p.addr, all)
}

func withoutArgs(name string) string {
	name, _, _ = strings.Cut(name, "<")
	return name
}

// addEdge adds the edge from the thread that waits at an object to the thread that runs the first task of
// the chain for which it waits, if both are certain.
func (g *graph) addEdge(first *pending, object uint64, limited bool) {
	e := Edge{Runs: g.runner(first), Task: first.addr, Name: first.name(), Limited: limited}
	if e.Runs == 0 || len(g.out.Edges) >= maxEdges {
		return
	}
	e.Waits = g.sole(object, g.claims.waits[object])
	if e.Waits != 0 && !g.claims.tokens[e.Waits] && !g.claims.edges[e] {
		g.claims.edges[e] = true
		g.out.Edges = append(g.out.Edges, e)
	}
}

// opens reports whether a task that awaits others may end before the awaited one, such as Task.WhenAny.
func (p *pending) opens() bool {
	return p.shape.kind == combined && p.shape.name != "Task.WhenAll"
}
