package worlds

import (
	"fmt"
	"math/rand/v2"

	"github.com/seedwalk/seedwalk/sim"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// crowd are the programs of one world.
type crowd struct {
	w    *sim.World
	left int // threads that may still be started by others
	made int
}

// program is what one thread does.
type program struct {
	*crowd
	t   *sim.Thread
	rng *rand.Rand
	// budget is how many more things the thread does.
	budget int
	// locked is the number of the lock it holds last, from 1; 0: none. Locks are
	// taken in the order of their numbers.
	locked int
}

// start starts a thread: three of four are the CLR's from their start, the
// others run unmanaged code, some of them for ever.
func (c *crowd) start(name string, rng *rand.Rand, budget int) {
	p := &program{crowd: c, rng: rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64())), budget: budget}
	if rng.IntN(4) != 0 {
		method := sim.Method(p.rng.IntN(100))
		p.t = c.w.SpawnManagedIn(name, method, func(*sim.Thread) { p.managed() })
		return
	}
	p.t = c.w.Spawn(name, func(*sim.Thread) { p.native() })
}

// reserve is the room that a call may need with all that waits put on top of it,
// bytes.
const reserve = 3*sim.MaxFrame + 0x1000

// more reports whether the thread continues at this place.
func (p *program) more() bool {
	if p.budget <= 0 || p.t.Room() < reserve {
		return false
	}
	p.budget--
	return true
}

// some repeats do a few times.
func (p *program) some(do func()) {
	for range 1 + p.rng.IntN(3) {
		if !p.more() {
			return
		}
		do()
	}
}

func (p *program) method() string { return sim.Method(p.rng.IntN(100)) }
func (p *program) other() string  { return sim.Native(p.rng.IntN(100)) }

// managed is a thread inside a method, in cooperative mode.
func (p *program) managed() { p.some(p.inManaged) }

func (p *program) inManaged() {
	t, n := p.t, p.rng.IntN(100)
	switch {
	case n < 24:
		t.Method(p.method(), p.managed)
	case n < 29:
		t.Method(sim.HiddenMethod(n), p.managed)
	case n < 34:
		t.Method(sim.ILStub(n), p.managed) // a delegate's shuffle, a dynamic method
	case n < 46:
		t.PInvoke(p.other(), p.native)
	case n < 54:
		t.Stub(sim.ILStub(n), p.other(), p.native)
	case n < 64:
		t.Helper(sim.ThrowHelper, p.helper)
	case n < 72:
		t.Framed(sim.ThrowHelper, p.reentrant)
	case n < 78:
		t.Poll()
	case n < 83:
		t.Collect()
	case n < 88:
		t.Jit()
	case n < 94:
		p.holding()
	case n < 97:
		p.recurse()
	default:
		p.spawn()
	}
}

// helper is a thread inside the CLR in cooperative mode, without an entry on the
// Frame chain: what needs a seed.
func (p *program) helper() {
	p.flagged(func() {
		p.some(func() {
			switch p.rng.IntN(4) {
			case 0:
				p.holding()
			case 1:
				p.t.Native(sim.NativeLeaf, nil)
			default:
				p.t.Native(p.other(), p.nothing)
			}
		})
	})
}

// nothing is more calls of the same kind only.
func (p *program) nothing() {
	if p.more() && p.rng.IntN(2) == 0 {
		p.t.Native(p.other(), p.nothing)
	}
}

// flagged runs body while the thread is in one of the states the CLR refuses to
// walk, or in none.
func (p *program) flagged(body func()) {
	t := p.t
	switch p.rng.IntN(6) {
	case 0:
		t.Except.Unwinding = true
		body()
		t.Except.Unwinding = false
	case 1:
		t.Except.Inconsistent = true
		body()
		t.Except.Inconsistent = false
	case 2:
		t.Trap = true
		body()
		t.Trap = false
	case 3:
		t.Forbid++
		body()
		t.Forbid--
	default:
		body()
	}
}

// reentrant is a helper that runs managed code: a class constructor, a filter.
func (p *program) reentrant() {
	p.some(func() { p.t.Reenter(p.method(), p.managed) })
}

// native is a thread in unmanaged code, in preemptive mode.
func (p *program) native() { p.some(p.inNative) }

func (p *program) inNative() {
	t, n := p.t, p.rng.IntN(100)
	switch {
	case n < 35:
		t.Native(p.other(), p.native)
	case n < 45:
		t.Native(sim.NativeLeaf, nil)
	case n < 60:
		p.holding()
	case n < 85 && t.Known():
		t.Managed(p.method(), p.managed)
	case n < 90 && t.W.Format() == image.ELF:
		if !t.Signal(sim.HeapAlloc, p.nothing) {
			t.A.Fault("no room for a signal")
		}
	case n < 93:
		t.Managed(p.method(), p.managed) // a native thread's first way into managed code
	default:
		t.A.Yield("works")
	}
}

// holding takes a lock inside the function that would, and calls unmanaged code.
func (p *program) holding() {
	w := p.w
	locks := []struct {
		l  *sched.Lock
		in string
	}{
		{w.Loader, sim.LoadLibrary}, {w.CLR.PerThread, sim.JitCompile},
		{w.CLR.CodeHeap, sim.JitCompile}, {w.Profiler, sim.NativeWork},
		{w.GoWorld, sim.NativeWork}, {w.CLR.Unwinder, sim.ThrowHelper},
		{w.Tables, sim.TableAdd}, {w.Env, sim.Environment},
		{w.Heap, sim.HeapAlloc}, {w.Log, sim.NativeOther},
	}
	if p.locked == len(locks) {
		return
	}
	was := p.locked
	i := was + p.rng.IntN(len(locks)-was)
	p.locked = i + 1
	p.t.Holding(locks[i].l, locks[i].in, func() {
		if !p.more() {
			return
		}
		if p.rng.IntN(2) == 0 {
			p.holding()
			return
		}
		p.t.Native(p.other(), p.nothing)
	})
	p.locked = was
}

// recurse goes down until the stack is full, or nearly.
func (p *program) recurse() {
	m, deep := p.method(), p.rng.IntN(60)
	var again func()
	again = func() {
		if deep--; deep > 0 && p.t.Room() > reserve {
			p.t.Method(m, again)
			return
		}
		p.managed()
	}
	p.t.Method(m, again)
}

// spawn starts another thread.
func (p *program) spawn() {
	if p.left == 0 {
		return
	}
	p.left--
	p.made++
	p.start(fmt.Sprintf("child %d", p.made), p.rng, 4+p.rng.IntN(8))
}
