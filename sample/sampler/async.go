package sampler

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/clr/demangle"
	"github.com/seedwalk/seedwalk/clr/objects"
	"github.com/seedwalk/seedwalk/clr/tasks"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/walk"
	"github.com/seedwalk/seedwalk/unwind"
)

// async finds the async callers of a sample: the methods that await the method or task that the thread runs.
//
// The runtime resumes an async method through a method of its box, which may be inlined in its caller,
// or runs a task through Task.ExecuteWithThreadLocal. The frame of either method holds the address of the
// box or task, in a register or on the stack. The chain that begins there is in what the probe read at the
// moment of the sample, or is read now. In the second case, words of the copied stack that refer to the
// object must be unchanged in memory: a collection would have changed them.
//
// The engine calls visitAsync for each frame of a walk, and addCallers after the walk (see Base.Walk), on
// its own thread.
type async struct {
	*tasks.Callers
	list    *objects.Heap
	heap    memory.Range // where objects may be
	methods map[clr.FunctionID]resumes
	ids     map[uint64]uint32 // method number in the stream, by MethodTable
	marker  uint32            // method number of the marker
	rule    func(at, rule uint64) bool
	frames  map[uint64]tasks.Rule // by return address
	Stats   asyncStats

	// State of the current walk.
	words  []uint64 // candidates for the address of the box or task
	body   string   // the async method whose body was seen last
	end    int      // index of the first frame that only resumed the body, 0 = unknown
	shells []shell  // that frame, and the following ones up to the frame that ends the search
	task   bool     // the frame is of a task
	closed bool     // a frame of a box or task has ended the search
	met    bool     // the walk gave the probe a new or wider rule for a frame
	late   uint64   // the object of the frame, if it was read after the sample, else 0
	chain  []tasks.Caller
}

// shell is a frame between a body and the frame that ends the search, or that last frame itself. ip is the
// return address into it, and sp the lowest address of its part of the stack.
type shell struct{ ip, sp uint64 }

// asyncStats counts samples in an async method or task: those with callers, and the others by the reason
// why they have none.
type asyncStats [asyncReasons]uint64

type asyncReason uint8

const (
	asyncJoined asyncReason = iota // they have callers, or it is known that there are none
	asyncMoved                     // a collection moved objects
	asyncNew                       // a frame or a type was met for the first time
	asyncLate                      // the thread has run since, and its objects were not read before
	asyncCut                       // the chain is too long, or of an unknown kind
	asyncLost                      // the frame's object was not found
	asyncReasons
)

// AsyncReasons are the names of the reasons in totals.
var AsyncReasons = [asyncReasons]string{"async_joined", "async_moved", "async_new",
	"async_late", "async_cut", "async_lost"}

// resumes is a method's role in chains.
type resumes struct {
	body   string // name of the async method whose body it is
	task   bool   // it runs a task
	help   bool   // it is between a box and the body
	starts bool   // it calls a body that has not been suspended yet
	name   string
}

// AsyncMarker is the name of the frame between a thread's stack and its async callers.
const AsyncMarker = "[async callers]"

// maxHeld bounds the words of one walk that are checked.
const maxHeld = 128

// FollowAsync adds async callers to the following samples. It calls rule with the tasks.Rule of each new
// type, and of each frame whose rule is new or has become wider. rule returns false if the probe has no
// room. FollowAsync returns tasks.ErrNoHeap if the heap is unknown.
func (e *Base) FollowAsync(rule func(table, rule uint64) bool) error {
	t := e.Target
	heap, ok := objects.OpenHeap(t.Mem, t.Tables.DebuggerGlobals())
	if !ok {
		return tasks.ErrNoHeap
	}
	c, err := tasks.NewCallers(t.Mem, t.Tables, t.Names, rule)
	if err != nil {
		return err
	}
	e.Async = &async{Callers: c, list: heap, rule: rule, frames: map[uint64]tasks.Rule{},
		methods: map[clr.FunctionID]resumes{}, ids: map[uint64]uint32{}}
	e.Walker.Visit = e.visitAsync
	return nil
}

// heapSlack is how far beyond the last region an object may be until ReadHeap is called again, bytes.
const heapSlack = 1 << 36

// ReadHeap reads where objects are. changes is the address of an int32 that is above 0 while a
// collection moves them. ok is false if the list of regions is inconsistent, as during a collection.
func (a *async) ReadHeap() (heap memory.Range, changes uint64, ok bool) {
	const round = 1 << 32
	if !a.list.Read() || len(a.list.Regions) == 0 {
		return heap, 0, false
	}
	all := a.list.Regions
	a.heap = memory.Range{Start: all[0].Start &^ (round - 1),
		End: (all[len(all)-1].End + heapSlack) &^ (round - 1)}
	return a.heap, a.list.Changes(), true
}

func (a *async) reset() {
	a.shells, a.words, a.body, a.end, a.task, a.closed, a.met, a.late = a.shells[:0],
		a.words[:0], "", 0, false, false, false, 0
}

// resumes returns the role of a frame's method.
func (e *Base) resumes(f *merge.Frame) resumes {
	a := e.Async
	r, ok := a.methods[f.Function]
	if !ok {
		if len(a.methods) >= maxMethods {
			clear(a.methods)
		}
		m := e.Target.MethodAt(f.IP)
		if r = resumesOf(m.Name); !m.Volatile {
			a.methods[f.Function] = r
		}
	}
	return r
}

func resumesOf(name string) (r resumes) {
	r.name = name
	switch plain := strings.TrimSuffix(name, demangle.AsyncMark); {
	case plain != name:
		r.body = plain
	case strings.HasPrefix(name, "System.Runtime.CompilerServices.Async"):
		r.starts = strings.Contains(name, ".Start")
		r.help = strings.Contains(name, "ExecutionContextCallback")
	case strings.HasPrefix(name, "System.Threading.Tasks.Task.ExecuteWithThreadLocal"):
		r.task = true
	case strings.HasPrefix(name, "System.Threading.ExecutionContext.Run"):
		r.help = true
	}
	return r
}

// visitAsync looks for the frame of the first box or task.
func (e *Base) visitAsync(f *merge.Frame, i int, regs *context.Registers, end uint64, stack *memory.Window) {
	a := e.Async
	if a.closed || f.Function == 0 {
		return
	}
	r := e.resumes(f)
	switch {
	case r.body != "" && (a.body == "" || a.end == 0): // else a box is inlined in it
		a.body, a.end, a.words, a.shells = r.body, 0, a.words[:0], a.shells[:0]
	case r.starts, a.body != "" && r.name == a.body:
		a.body = ""
	case r.help || r.task || a.body != "":
		if a.end == 0 {
			a.end = i
		}
		a.shells = append(a.shells, shell{f.IP, f.SP})
		a.hold(f, regs, end, stack)
		if a.task, a.closed = r.task, !r.help; a.closed {
			a.learn(end, stack)
		}
	default:
		a.end, a.words, a.shells = 0, a.words[:0], a.shells[:0]
	}
}

// hold keeps the words of a frame that may be the address of its object.
func (a *async) hold(f *merge.Frame, regs *context.Registers, end uint64, stack *memory.Window) {
	words := regs.AMD64.GPR[:]
	if regs.Arch == context.ArchARM64 {
		words = regs.ARM64.X[:]
	}
	for i, w := range words {
		if f.Exact || regs.Preserves(i) {
			a.keep(w)
		}
	}
	for at := f.SP; at+8 <= end && len(a.words) < maxHeld; at += 8 {
		if w, ok := stack.Word(at); ok {
			a.keep(w)
		}
	}
}

func (a *async) keep(w uint64) {
	if w&7 == 0 && a.heap.Holds(w) && len(a.words) < maxHeld {
		a.words = append(a.words, w)
	}
}

// learn computes how many words below and above the return address of each shell may hold the object. It
// gives these rules to the probe. A word that a frame held in a register is found where a frame that it
// called has saved it.
func (a *async) learn(end uint64, stack *memory.Window) {
	const far = 128 // words from a frame's begin to the place where a register is saved
	low := end
	for _, word := range a.words {
		for p, i := end-8, 0; i < maxHeld+far; p, i = p-8, i+1 {
			if w, ok := stack.Word(p); !ok || w == word {
				if ok {
					low = min(low, p)
				}
				break
			}
		}
	}
	for _, s := range a.shells {
		if at, ok := s.returns(stack); ok && at < end {
			a.learnFrame(s.ip, tasks.Rule((at-min(low, at))/8|min((end-at)/8, maxHeld)<<16))
		}
	}
}

// returns finds the return address into the frame on the stack. It returns false if the address is not
// there.
func (s *shell) returns(stack *memory.Window) (at uint64, ok bool) {
	const near = 64 // words below the frame: on ARM64 it is at the lower end of the called one
	at = s.sp - 8
	for range near {
		if w, ok := stack.Word(at); !ok || w == s.ip {
			return at, ok
		}
		at -= 8
	}
	return 0, false
}

// learnFrame gives the probe the rule of a return address, if it is wider than the one before.
func (a *async) learnFrame(ip uint64, r tasks.Rule) {
	old, known := a.frames[ip]
	if r = max(r&0xffff, old&0xffff) | max(r&0xffff0000, old&0xffff0000) |
		tasks.RuleFrame; known && r == old {
		return
	}
	if len(a.frames) >= maxMethods {
		clear(a.frames)
	}
	a.frames[ip], a.met = r, true
	a.rule(ip, uint64(r))
}

// addCallers appends async callers to the frames of the stream, and marks the frames that only
// resumed the async method. Base.Walk calls it after the walk of c, on the engine's thread. If
// it finds no callers, the frames stay as they are, and Stats counts the reason.
func (e *Base) addCallers(c *walk.Capture) {
	a := e.Async
	if a.Read(c.Objects); len(c.Objects) > 0 {
		e.Stream.Activity = wire.Activity(a.IDs())
	}
	if !a.closed {
		return
	}
	var why asyncReason
	a.chain, why = e.findChain(c)
	if a.Stats[why]++; why != asyncJoined || len(a.chain) == 0 {
		return
	}
	if a.marker == 0 {
		a.marker = e.Stream.define(1, target.Method{Name: AsyncMarker}).id
	}
	for i := encoded(e.Stream.Frames, a.end); i < len(e.Stream.Frames); i++ {
		e.Stream.Frames[i].Flags |= wire.FrameResumer
	}
	add := func(id uint32) {
		e.Stream.Frames = append(e.Stream.Frames,
			wire.Frame{Kind: unwind.KindAsync, Trust: unwind.TrustCLR, Method: id})
	}
	add(a.marker)
	for i := range a.chain {
		add(e.callerID(&a.chain[i]))
	}
}

// encoded returns the index in frames of frame n of the walk. frames contains inlined methods too.
func encoded(frames []wire.Frame, n int) int {
	for i := range frames {
		if frames[i].IP>>56 != 0 {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	return len(frames)
}

// findChain returns the chain of the first word that is the object of the frame. It skips an object that
// awaits something, because that object does not run. Objects that the probe has not read are read now.
func (e *Base) findChain(c *walk.Capture) (chain []tasks.Caller, why asyncReason) {
	a := e.Async
	why = asyncLate
	switch met := a.met || a.New; {
	case a.Moved:
		why = asyncMoved
	case len(c.Objects) > 0:
		for _, w := range a.words {
			if chain, cut, ok := a.chainOf(w); ok && a.Waits(w) {
				continue
			} else if ok && !cut {
				return chain, asyncJoined
			} else if ok {
				why = asyncCut
				break
			}
		}
		if met = met || a.New; met {
			why = asyncNew
		} else if why == asyncLate {
			why = asyncLost
		}
	}
	if a.list.Changing() {
		return nil, max(why, asyncMoved)
	}
	for _, w := range a.words {
		if chain, ok := e.chainNow(c, w, !c.Partial || len(c.Objects) > 0); ok {
			a.late = w
			return chain, asyncJoined
		}
	}
	return nil, why
}

// chainNow returns the chain of an object as it is now. ok is false if the object may not be what it was when
// the stack was copied, or has ended. If late is true, the thread may have run since.
func (e *Base) chainNow(c *walk.Capture, object uint64, late bool) (chain []tasks.Caller, ok bool) {
	a := e.Async
	a.Follow(object, late)
	chain, cut, ok := a.chainOf(object)
	return chain, ok && !cut && !a.waits(object) && !a.list.Changing() && e.refersStill(c, object)
}

// waits reports whether an object awaits another object that the frame refers to. Then the object does not
// run.
func (a *async) waits(object uint64) bool {
	return slices.ContainsFunc(a.words, func(w uint64) bool {
		if w == object {
			return false
		}
		a.Follow(w, true)
		return a.Waits(object)
	})
}

// chainOf returns the chain of an object. ok is false if the object runs a different method or task from the
// one that the walk found. cut means that the chain may be longer.
func (a *async) chainOf(object uint64) (chain []tasks.Caller, cut, ok bool) {
	runs, chain, cut, ok := a.Chain(object, a.chain[:0])
	return chain, cut, ok && runs.Box != a.task &&
		(a.task || runs.Name == a.body || withoutArgs(runs.Name) == withoutArgs(a.body))
}

// ActivityOf reads the current Activity of a thread. handle is the address of the handle of its managed
// Thread. still reports whether the thread has not run since it was copied. ActivityOf calls still after it
// has read the Activity. It returns the zero Activity if still returns false, or if a collection moves
// objects now.
func (a *async) ActivityOf(mem memory.Reader, handle uint64, still func() bool) wire.Activity {
	for range 2 { // the handle, and what it refers to
		handle, _ = memory.Word(mem, handle)
	}
	var ids tasks.IDs
	if !a.heap.Holds(handle) || !a.list.Still(func() { ids = a.Thread(handle, still) }) {
		return wire.Activity{}
	}
	return wire.Activity(ids)
}

// LateActivity gives the last walk, whose stack the kernel has copied, the current Activity. It gives
// none if the thread may have left the async method since. handle is as in ActivityOf.
func (e *Base) LateActivity(c *walk.Capture, handle uint64) {
	if e.Async == nil || e.Async.late == 0 {
		return
	}
	e.Stream.Activity = e.Async.ActivityOf(e.Target.Mem, handle, func() bool {
		_, ok := e.chainNow(c, e.Async.late, true)
		return ok
	})
}

// refersStill reports whether the words of a copied stack that refer to an object are unchanged in
// memory. It checks the first words only, and returns false if the stack has no such word.
func (e *Base) refersStill(c *walk.Capture, object uint64) bool {
	const most = 16 // words that are read again
	n := 0
	for i := 0; i+8 <= len(c.Stack.Data) && n < most; i += 8 {
		if binary.LittleEndian.Uint64(c.Stack.Data[i:]) != object {
			continue
		}
		n++
		if w, ok := memory.Word(e.Target.Mem, c.Stack.Addr+uint64(i)); !ok || w != object {
			return false
		}
	}
	return n > 0
}

// withoutArgs cuts type arguments off, which names of precompiled code do not have.
func withoutArgs(name string) string {
	name, _, _ = strings.Cut(name, "<")
	return name
}

// callerID returns the number of an async method in the stream, and defines it there first if it is new.
func (e *Base) callerID(c *tasks.Caller) uint32 {
	a := e.Async
	id, ok := a.ids[c.Table]
	if !ok {
		if len(a.ids) >= maxMethods {
			clear(a.ids)
		}
		e.Stream.last++
		id = e.Stream.last
		e.Stream.Define(id, clr.FunctionID(c.Table), c.Name, c.Module)
		a.ids[c.Table] = id
	}
	return id
}
