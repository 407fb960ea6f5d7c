package tasks

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/naming"
	"github.com/seedwalk/seedwalk/clr/objects"
	"github.com/seedwalk/seedwalk/context/memory"
)

// Source is the process or core whose tasks are read.
type Source struct {
	Memory   objects.Reader
	Tables   *contract.Tables
	Names    *naming.Names
	Contexts func() []memory.Range // the threads' allocation contexts
	Stacks   []Stack
	Moves    bool // the process is running
}

// Stack is a thread's stack and registers.
type Stack struct {
	TID   uint32
	Addr  uint64 // of the stack
	Size  uint64 // bytes of Data that are the stack; the registers follow
	Data  []byte
	Runs  []Run    // from the frames that run tasks or async methods
	Waits []uint64 // words of the frames that wait for a task; one is the object on which the thread blocks
}

// Reasons why tasks cannot be read.
var (
	ErrNoHeap  = errors.New("the collector's list of heap regions was not found")
	errLayout  = errors.New("the layout or the names of this runtime's types are not known")
	errRegions = errors.New("the collector's list of heap regions contradicts itself: memory is missing, or a collection is changing it")
)

// maxPending bounds the pending tasks that are kept.
const maxPending = 1 << 24

// pending is a pending task or a box.
type pending struct {
	addr   uint64
	shape  *shape
	data   []byte
	state  uint32 // m_stateFlags, 0 if it is not a Task
	below  int32  // number of things that it awaits
	next   []int32
	blocks []uint64 // objects on which threads block until it ends
}

// graph holds the pending tasks and their awaiters.
type graph struct {
	src    *Source
	heap   *objects.Heap
	shapes shapes
	all    []*pending
	slab   []pending // room for more of them
	index  map[uint64]int32
	arena  []byte

	parts     map[uint64]map[uint64]bool // see tasksIn
	partBytes uint64                     // of large arrays that were read for parts

	claims claims
	stacks map[uint64]uint32 // objects to which a stack refers, with the first such thread
	out    *Result

	sources []uint64 // of CancellationTokens, with a timer
	tokens  tokens

	queues  []uint64        // of the thread pool
	queued  map[uint64]bool // work items in them
	waiting map[uint32]bool // threads that block on tasks

	round map[int32]string // first tasks of chains that begin in a circle, with the state of the chain

	length  uint64 // offset of a string's length
	rooted  bool   // the root of at least one type is System.Object
	strange bool   // the root of at least one type is not: of an interface, or in an unknown layout
	wrong   bool   // a string's length is not where the runtime publishes it
}

// maxTries bounds how often the regions of a running process are read again until no collection changes
// them. The process may have been stopped in the middle of a collection.
const maxTries = 64

// open finds the collector's list of regions.
func (g *graph) open() error {
	heap, ok := objects.OpenHeap(g.src.Memory, g.src.Tables.DebuggerGlobals())
	if !ok {
		return ErrNoHeap
	}
	types, err := objects.NewTypes(g.src.Memory, g.src.Tables.Descriptor(), g.src.Names)
	if err != nil {
		return err
	}
	length, _ := g.src.Tables.Descriptor().Offset("String", "m_StringLength")
	g.length = uint64(length)
	g.heap, g.shapes = heap, shapes{names: g.src.Names, types: types, of: map[*objects.Type]*shape{}}
	return nil
}

// read reads the pending tasks of the heap, the objects on stacks, the queues of the thread pool, and the
// waits that tokens end.
func (g *graph) read() error {
	ok := g.heap.Read()
	for try := 0; (!ok || g.heap.Busy) && g.src.Moves && try < maxTries; try++ {
		time.Sleep(time.Millisecond)
		ok = g.heap.Read()
	}
	if !ok {
		return errRegions
	}
	g.heap.Contexts(g.src.Contexts())
	g.out.Heap = g.heap.Walk(g.src.Memory, g.shapes.types, g.wanted, g.keep)
	if g.wrong || g.strange && !g.rooted {
		return errLayout
	}
	g.index = make(map[uint64]int32, len(g.all))
	g.parts, g.partBytes = map[uint64]map[uint64]bool{}, 0
	for i := range g.all {
		g.index[g.all[i].addr] = int32(i)
	}
	g.readStacks()
	g.readClaims()
	g.readQueues()
	g.readTokens()
	return nil
}

// readStacks finds the objects to which stacks refer.
func (g *graph) readStacks() {
	g.stacks = map[uint64]uint32{}
	for _, s := range g.src.Stacks {
		for i := 0; i+8 <= len(s.Data); i += 8 {
			if at := binary.LittleEndian.Uint64(s.Data[i:]); at&7 == 0 && g.heap.Holds(at) &&
				g.stacks[at] == 0 {
				g.stacks[at] = s.TID
			}
		}
	}
}

// wanted selects tasks, boxes, sources of tokens, and the thread pool's queues. It also checks the layout of
// types: some have the root System.Object, and the length of strings is where the runtime publishes it.
func (g *graph) wanted(t *objects.Type) bool {
	root := t
	for root.Parent != nil {
		root = root.Parent
	}
	g.rooted = g.rooted || root.Name == "System.Object"
	g.strange = g.strange || root.Name != "System.Object" && root.ItemSize() == 0 // not freed memory
	if t.Name == "System.String" {
		at, ok := t.Field("_stringLength")
		g.wrong = g.wrong || !ok || at != g.length
	}
	sh := g.shapes.shape(t)
	switch sh.kind {
	case task, box, combined, oneWay, tokenSource:
		return sh.valid
	}
	return isQueue(t)
}

// keep records a pending task, a box, a queue, or a source of tokens with a timer.
func (g *graph) keep(o *objects.Object) {
	if isQueue(o.Type) {
		g.queues = append(g.queues, o.Addr)
		return
	}
	sh := g.shapes.shape(o.Type)
	if sh.kind == tokenSource {
		if o.Word(sh.next) != 0 && len(g.sources) < maxSources {
			g.sources = append(g.sources, o.Addr)
		}
		return
	}
	state := uint32(0)
	if sh.flags != 0 {
		g.out.Tasks++
		if state = uint32(o.Word(sh.flags)); state&stateEnded != 0 {
			return
		}
	}
	if len(g.all) >= maxPending {
		g.out.Unread++
		return
	}
	if cap(g.arena)-len(g.arena) < len(o.Data) {
		g.arena = make([]byte, 0, max(1<<20, len(o.Data)))
	}
	from := len(g.arena)
	g.arena = append(g.arena, o.Data...)
	g.add(pending{addr: o.Addr, shape: sh, state: state, data: g.arena[from:len(g.arena):len(g.arena)]})
}

// add adds p, and returns its number.
func (g *graph) add(p pending) int32 {
	if len(g.slab) == cap(g.slab) {
		g.slab = make([]pending, 0, 1<<12)
	}
	g.slab = append(g.slab, p)
	g.all = append(g.all, &g.slab[len(g.slab)-1])
	return int32(len(g.all) - 1)
}

func (p *pending) word(offset uint64) uint64 {
	if n := uint64(len(p.data)); offset == 0 || n < 8 || offset > n-8 {
		return 0
	}
	return binary.LittleEndian.Uint64(p.data[offset:])
}

// name returns the name in chains. Task.Run and Unwrap use the same promise, and only its field _lookForOce
// differs.
func (p *pending) name() string {
	if at := p.shape.lookForOce; at != 0 && at < uint64(len(p.data)) && p.data[at] == 0 {
		return "Task.Unwrap"
	}
	return p.shape.name
}

// refers reports whether an object's bytes after the MethodTable contain an address.
func refers(data []byte, to uint64) bool {
	for i := 8; i+8 <= len(data); i += 8 {
		if binary.LittleEndian.Uint64(data[i:]) == to {
			return true
		}
	}
	return false
}

// loadNew is load for an object to which a live one refers. In a running process, it may be younger than the
// list of regions.
func (g *graph) loadNew(at uint64) (o objects.Object, ok bool) {
	if !g.src.Moves || at&7 != 0 {
		return g.load(at)
	}
	return g.shapes.types.Load(g.src.Memory, at)
}

// load reads the object at an address, false if the address is in no region or has no object.
func (g *graph) load(at uint64) (o objects.Object, ok bool) {
	if !g.heap.Holds(at) {
		return o, false
	}
	return g.shapes.types.Load(g.src.Memory, at)
}
