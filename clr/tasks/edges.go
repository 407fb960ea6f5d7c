package tasks

import (
	"encoding/binary"
	"slices"

	"github.com/seedwalk/seedwalk/clr/objects"
)

// Bounds for one task.
const (
	maxWrapped  = 8       // wrappers around a continuation
	maxContinue = 1 << 20 // continuations of one task
	maxWords    = 256     // words of an object or a state machine to follow
	maxParts    = 1 << 29 // bytes of large arrays in all
)

// connect finds the awaiters of each pending task, and the sources that boxes await.
func (g *graph) connect() {
	for i := range g.all {
		p := g.all[i]
		if p.shape.next != 0 {
			left := maxContinue
			g.follow(int32(i), p.word(p.shape.next), 0, &left)
		}
	}
	for i := 0; i < len(g.all); i++ { // awaitsSource adds more
		p := g.all[i]
		if len(p.shape.awaiters) > 0 && p.below == 0 && !g.awaitsSource(int32(i)) && g.refresh(p) {
			g.awaitsSource(int32(i))
		}
	}
}

// refresh reads a box of a running process again. By now, it may await a task that is younger than the
// reading of the heap.
func (g *graph) refresh(p *pending) bool {
	if !g.src.Moves || p.shape.kind != box {
		return false
	}
	o, ok := g.load(p.addr)
	if !ok || g.shapes.shape(o.Type) != p.shape ||
		p.shape.flags != 0 && o.Word(p.shape.flags)&stateEnded != 0 {
		return false
	}
	p.data = slices.Clone(o.Data)
	return true
}

// follow adds the edges from a task to its continuations, and the objects on which threads block.
func (g *graph) follow(from int32, at uint64, depth int, left *int) {
	if at == 0 || depth > maxWrapped || *left <= 0 {
		return
	}
	*left--
	if to, ok := g.index[at]; ok {
		g.edge(from, to)
		return
	}
	o, ok := g.load(at)
	if !ok {
		g.out.Changed++
		return
	}
	sh := g.shapes.shape(o.Type)
	switch {
	case !sh.valid:
	case sh.kind == blocked:
		g.all[from].blocks = append(g.all[from].blocks, at)
	case sh.kind == wrapper, sh.kind == action:
		g.follow(from, o.Word(sh.next), depth+1, left)
	case sh.kind == list:
		g.followList(from, o.Word(sh.next), uint64(uint32(o.Field("_size"))), depth, left)
	}
}

// followList follows the items of a list of continuations.
func (g *graph) followList(from int32, items, size uint64, depth int, left *int) {
	const first = 16 // offset of an array's first item
	b := make([]byte, 8)
	for i := range min(size, maxContinue) {
		if !g.src.Memory.ReadAt(b, items+first+8*i) {
			g.out.Changed++
			return
		}
		g.follow(from, binary.LittleEndian.Uint64(b), depth+1, left)
	}
}

// edge records that to awaits from, if to confirms it. Otherwise the continuation is unconfirmed.
func (g *graph) edge(from, to int32) {
	p := g.all[to]
	if !g.confirms(p, g.all[from].addr) {
		g.out.Unconfirmed++
		return
	}
	p.below++
	g.all[from].next = append(g.all[from].next, to)
}

// confirms reports whether the awaiter of a task refers to it: directly, or through one object of its own,
// such as the state machine of unoptimized code. A one-way promise does not refer to the task.
func (g *graph) confirms(p *pending, to uint64) bool {
	switch {
	case p.shape.kind == oneWay, p.awaits(to):
		return true
	case p.shape.kind == combined:
		return g.tasksIn(p)[to]
	}
	for i, n := 8, 0; i+8 <= len(p.data) && n < maxWords; i, n = i+8, n+1 {
		at := binary.LittleEndian.Uint64(p.data[i:])
		if _, isTask := g.index[at]; isTask || at&7 != 0 || at == 0 {
			continue
		}
		if o, ok := g.load(at); ok && refers(o.Data, to) {
			return true
		}
	}
	return false
}

// awaits reports whether an object refers to a task, other than as its own continuation: in a circle, a task
// is also the continuation of what awaits it.
func (p *pending) awaits(to uint64) bool {
	at := min(p.shape.next, uint64(len(p.data)))
	return refers(p.data[:at], to) || refers(p.data[at:], to) // refers skips the first word of each
}

// tasksIn returns the pending tasks that a promise refers to through an array or list of its own.
func (g *graph) tasksIn(p *pending) map[uint64]bool {
	if parts, ok := g.parts[p.addr]; ok {
		return parts
	}
	parts := map[uint64]bool{}
	g.parts[p.addr] = parts
	for i := 8; i+8 <= len(p.data) && i < 8*maxWords; i += 8 {
		at := binary.LittleEndian.Uint64(p.data[i:])
		if _, isTask := g.index[at]; isTask || at&7 != 0 || at == 0 {
			continue
		}
		o, ok := g.load(at)
		if sh := g.shapes.shape; ok && sh(o.Type).kind == list {
			o, ok = g.load(o.Word(sh(o.Type).next))
		}
		if ok {
			g.addParts(parts, &o)
		}
	}
	return parts
}

// addParts adds the pending tasks to which an object refers. Of an array of references, it reads all items,
// because load stops at 64 KB.
func (g *graph) addParts(parts map[uint64]bool, o *objects.Object) {
	b := o.Data
	if o.Size > uint64(len(b)) && o.Type.ItemSize() == 8 {
		b = g.readArray(o.Addr, o.Size)
	}
	for i := 8; i+8 <= len(b); i += 8 {
		at := binary.LittleEndian.Uint64(b[i:])
		if _, isTask := g.index[at]; isTask {
			parts[at] = true
		}
	}
}

// readArray reads an array. It reads at most maxContinue items, and maxParts bytes of all arrays together.
func (g *graph) readArray(addr, size uint64) []byte {
	n := min(size, 8*maxContinue, maxParts-g.partBytes)
	g.out.ArraysCut = g.out.ArraysCut || n < size
	b := make([]byte, n)
	b = b[:g.src.Memory.ReadSome(b, addr)]
	g.partBytes += uint64(len(b))
	return b
}

// awaitsSource finds the source of the ValueTask that a box, or the task of ValueTask.AsTask, awaits. The
// awaiter refers to the source, and the source refers back. An async iterator is itself the source. A task
// that the reading of the heap lacks is found in the same way.
func (g *graph) awaitsSource(i int32) bool {
	p := g.all[i]
	n := 0
	for _, data := range g.awaiters(p) {
		for off := 0; off+8 <= len(data) && n < maxWords; n, off = n+1, off+8 {
			if at := binary.LittleEndian.Uint64(data[off:]); at != 0 && at&7 == 0 && at != p.addr &&
				g.awaits(i, at) {
				return true
			}
		}
	}
	return false
}

// awaiters returns the parts of an object that hold awaiters: of a box's state machine, or of the task that
// ValueTask.AsTask made.
func (g *graph) awaiters(p *pending) (out [][]byte) {
	machine, from := p.data, p.shape.state-objectHeader // a struct: it is inside the box
	if p.shape.class {
		o, ok := g.load(p.word(p.shape.state))
		if !ok {
			return nil
		}
		machine, from = o.Data, 0
	}
	size := uint64(len(machine))
	for _, s := range p.shape.awaiters {
		out = append(out, machine[min(from+s.From, size):min(from+s.To, size)])
	}
	return out
}

// objectHeader is the size of the MethodTable's address, which a struct inside an object lacks.
const objectHeader = 8

// awaits adds the edge from the object at an address to a box, if the box awaits it.
func (g *graph) awaits(box int32, at uint64) bool {
	p := g.all[box]
	if from, ok := g.index[at]; ok { // a pooled box, or a source with other awaiters too
		f := g.all[from]
		if f.shape.flags != 0 || !refers(f.data, p.addr) {
			return false
		}
		return g.link(from, box)
	}
	o, ok := g.loadNew(at)
	if !ok {
		return false
	}
	sh := g.shapes.shape(o.Type)
	switch back := refers(o.Data, p.addr); {
	case sh.flags != 0 && sh.valid:
		if o.Word(sh.flags)&stateEnded != 0 || !g.resumes(o.Word(sh.next), p.addr) {
			return false
		}
	case sh.kind != other:
		return false
	case back:
		if from, ok := g.machineOf(&o); ok {
			return g.link(from, box)
		}
	case !g.refersBy(&o, p.addr):
		return false
	}
	from := g.add(pending{addr: at, shape: sh, data: slices.Clone(o.Data)})
	if sh.flags != 0 {
		g.all[from].state = uint32(o.Word(sh.flags))
	}
	g.index[at] = from
	return g.link(from, box)
}

// resumes reports whether a continuation resumes a box.
func (g *graph) resumes(at, box uint64) bool {
	for range maxWrapped {
		o, ok := g.loadNew(at)
		if sh := g.shapes.shape; at == box || !ok || sh(o.Type).kind != wrapper && sh(o.Type).kind != action {
			break
		}
		at = o.Word(g.shapes.shape(o.Type).next)
	}
	return at == box
}

// link records that a box awaits from.
func (g *graph) link(from, box int32) bool {
	if from == box {
		return false
	}
	g.all[box].below++
	g.all[from].next = append(g.all[from].next, box)
	return true
}

// machineOf returns the box of an object that is a state machine.
func (g *graph) machineOf(o *objects.Object) (box int32, ok bool) {
	for i := 8; i+8 <= len(o.Data) && i < 8*maxWords; i += 8 {
		b, ok := g.index[binary.LittleEndian.Uint64(o.Data[i:])]
		if ok && g.all[b].shape.class && g.all[b].word(g.all[b].shape.state) == o.Addr {
			return b, true
		}
	}
	return 0, false
}

// refersBy reports whether o refers to an object that refers to an address, as a pipe's reader does through
// its pipe.
func (g *graph) refersBy(o *objects.Object, to uint64) bool {
	for i := 8; i+8 <= len(o.Data) && i < 8*maxWords; i += 8 {
		if inner, ok := g.load(binary.LittleEndian.Uint64(o.Data[i:])); ok && refers(inner.Data, to) {
			return true
		}
	}
	return false
}
