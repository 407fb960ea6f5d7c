package nettrace

import "github.com/seedwalk/seedwalk/internal/buf"

// stackTable holds the stacks since the last sequence point. Writers assign ascending ids, so
// the id is an index. Ids out of order go to a map.
type stackTable struct {
	arena []byte
	refs  []stackRef
	first uint32 // id of refs[0]
	other map[uint32]stackRef
}

type stackRef struct{ off, size uint32 }

func (t *stackTable) find(id uint32) ([]byte, bool) {
	ref, ok := t.other[id]
	if !ok {
		i := id - t.first
		if id < t.first || uint64(i) >= uint64(len(t.refs)) {
			return nil, false
		}
		ref = t.refs[i]
	}
	return t.arena[ref.off : ref.off+ref.size : ref.off+ref.size], true
}

// add stores a stack. It returns false if there is no room.
func (t *stackTable) add(id uint32, raw []byte) bool {
	if len(t.arena)+len(raw) > maxStacks || len(t.refs)+len(t.other) >= maxStackIDs {
		return false
	}
	ref := stackRef{uint32(len(t.arena)), uint32(len(raw))}
	t.arena = append(t.arena, raw...)
	switch {
	case len(t.refs) == 0:
		t.first, t.refs = id, append(t.refs, ref)
	case uint64(id) == uint64(t.first)+uint64(len(t.refs)):
		t.refs = append(t.refs, ref)
	default:
		if t.other == nil {
			t.other = map[uint32]stackRef{}
		}
		t.other[id] = ref
	}
	return true
}

// clear removes all stacks: ids start again.
func (t *stackTable) clear() {
	t.arena, t.refs, t.other = t.arena[:0], t.refs[:0], nil
}

// stackBlock reads: first id, count, and per stack its size and addresses.
func (r *Reader) stackBlock() {
	r.events.active = false
	b := buf.At(r.data, 0)
	id, n := b.U32(), b.U32()
	for i := uint32(0); i < n && b.OK(); i++ {
		at := r.base + int64(b.Pos())
		size := b.U32()
		raw := b.Bytes(uint64(size))
		if !b.OK() {
			break
		}
		r.counts.Stacks++
		switch {
		case size%uint32(r.trace.PointerSize) != 0:
			r.fault(BadStacks, at, "a stack's size is not a multiple of a pointer's")
		case !r.stacks.add(id, raw):
			r.fault(TooMuch, at, "stacks between two sequence points")
			return
		}
		id++
	}
	if !b.OK() {
		r.abandon(BadStacks, r.base+int64(b.Pos()))
	}
}
