package sim

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/machine"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// store holds the memory of the worlds that one worker makes one after another.
// Without it, most of the time of a million worlds would go to the garbage collector.
// No world sees data of an earlier one.
type store struct {
	fresh map[thread]*machine.Thread // in their first state
	spare []*machine.Thread
	used  []*machine.Thread
	slots []*slot
}

// thread is the key of a new machine: everything that decides its state.
type thread struct {
	arch      image.Arch
	low, high uint64
	seed      uint64
}

// maxFresh bounds the remembered machines. Random worlds never ask for one twice.
const maxFresh = 64

// storeOf returns the worker's store and frees all that the last world used.
func storeOf(s *sched.World) *store {
	st, ok := s.Keep.(*store)
	if !ok {
		st = &store{fresh: map[thread]*machine.Thread{}}
		s.Keep = st
	}
	st.spare = append(st.spare, st.used...)
	st.used = st.used[:0]
	return st
}

// machine is machine.New in memory of an earlier world, if there is some.
func (st *store) machine(a image.Arch, low, high, seed uint64) *machine.Thread {
	key := thread{a, low, high, seed}
	first := st.fresh[key]
	if first == nil {
		if len(st.fresh) == maxFresh {
			clear(st.fresh)
		}
		first = machine.New(a, low, high, seed)
		st.fresh[key] = first
	}
	m := &machine.Thread{}
	if n := len(st.spare); n > 0 {
		m, st.spare = st.spare[n-1], st.spare[:n-1]
	}
	m.CopyFrom(first)
	st.used = append(st.used, m)
	return m
}

// slot returns slot i of a host, for stacks of so many bytes.
func (st *store) slot(i int, stack uint64) *slot {
	for len(st.slots) <= i {
		st.slots = append(st.slots, &slot{frames: make([]clr.SnapshotFrame, 0, frameCount)})
	}
	s := st.slots[i]
	if uint64(len(s.stack)) < stack {
		s.stack = make([]byte, stack)
	}
	*s = slot{stack: s.stack, frames: s.frames[:0], truth: s.truth[:0]}
	return s
}
