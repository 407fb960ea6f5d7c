package tasks

import "encoding/binary"

// Bounds of what one task may lead to.
const (
	maxWrapped  = 8       // wrappers around a continuation
	maxContinue = 1 << 20 // continuations of one task
	maxWords    = 256     // words of a state machine that are followed
)

// connect finds what awaits each pending task.
func (g *graph) connect() {
	for i := range g.all {
		p := g.all[i]
		if p.shape.next != 0 {
			left := maxContinue
			g.follow(int32(i), p.word(p.shape.next), 0, &left)
		}
	}
	for i := range g.all {
		if p := g.all[i]; p.shape.kind == box && p.below == 0 {
			g.awaitsSource(int32(i))
		}
	}
}

// follow adds the edges from a task to what resumes when it ends.
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
		g.all[from].block = at
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

// edge adds that to awaits from, if to refers to from where it has to.
func (g *graph) edge(from, to int32) {
	p := g.all[to]
	if to == from || !g.confirms(p, g.all[from].addr) {
		g.out.Unconfirmed++
		return
	}
	p.below++
	g.all[from].next = append(g.all[from].next, to)
}

// confirms reports whether what awaits a task refers to it: directly, or by one object of its
// own, as WhenAll has an array and code that is not optimized a state machine. A promise of
// Unwrap does not keep the task.
func (g *graph) confirms(p *pending, to uint64) bool {
	if p.shape.kind == unwrap || refers(p.data, to) {
		return true
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

// awaitsSource finds what a box awaits that is no task: an object that the box refers to
// and that refers to the box, as sources of ValueTasks do.
func (g *graph) awaitsSource(i int32) {
	p := g.all[i]
	for n, off := 0, int(p.shape.state); off+8 <= len(p.data) && n < maxWords; n, off = n+1, off+8 {
		at := binary.LittleEndian.Uint64(p.data[off:])
		if at == 0 || at&7 != 0 || at == p.addr {
			continue
		}
		if from, ok := g.index[at]; ok {
			if f := g.all[from]; f.shape.flags == 0 && refers(f.data, p.addr) { // a pooled box
				p.below++
				f.next = append(f.next, i)
			}
			continue
		}
		o, ok := g.load(at)
		if !ok || !refers(o.Data, p.addr) {
			continue
		}
		if sh := g.shapes.shape(o.Type); sh.kind == other {
			g.source(i, at, sh)
			return
		}
	}
}

// source adds an object that a box awaits.
func (g *graph) source(box int32, at uint64, sh *shape) {
	from, ok := g.index[at]
	if !ok {
		from = g.add(pending{addr: at, shape: sh})
		g.index[at] = from
	}
	g.all[box].below++
	g.all[from].next = append(g.all[from].next, box)
}
