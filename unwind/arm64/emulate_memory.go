package arm64

import "github.com/seedwalk/seedwalk/context/memory"

// memory executes loads and stores: exactly for x registers. For others it updates the base register, makes
// loaded general registers unknown, and records the addresses of loaded vector registers.
func (e *emulator) memory(w uint32, mem *memory.Window) {
	switch {
	case w&0xfe400000 == 0x68000000, w&0xff200000 == 0xd9200000, w&0xff200400 == 0xf8200400:
		e.regs[w>>5&31] = value64{} // memory tags, and loads that authenticate, are rare
		e.write(w, value64{})
	case w&0xbe800000 == 0x0c800000:
		e.structures(w)
	case w&0x3a000000 == 0x28000000: // pairs
		e.pair(w, mem)
	case w&0x3b000000 == 0x39000000: // unsigned offset
		e.single(w, uint64(w>>10&0xfff)<<size(w), 2, mem)
	case w&0x3b200000 == 0x38000000: // unscaled, post- and pre-indexed, unprivileged
		e.single(w, uint64(int64(int32(w<<11)>>23)), [4]uint32{2, 1, 2, 3}[w>>10&3], mem)
	case w&0x3f000000 == 0x08000000: // exclusive: the status too
		e.write(w>>16, value64{})
		e.write(w, value64{})
		e.write(w>>10, value64{})
	case w>>26&1 == 0:
		e.write(w, value64{}) // literals, register offsets, atomics
	}
}

// size returns the logarithm of the number of bytes of a load or store.
func size(w uint32) uint32 { return max(w>>30, w>>26&1*(w>>23&1)*4) }

// structures updates the base register of LD1 to ST4 (structures of vector registers), post-indexed.
func (e *emulator) structures(w uint32) {
	bytes := [16]uint32{0: 4, 2: 4, 4: 3, 6: 3, 7: 1, 8: 2, 10: 2}[w>>12&15] * 8 << (w >> 30 & 1)
	if w>>24&1 != 0 { // one element of each register, or copies of it
		bytes = (w>>12&2 | w>>21&1 + 1) << [4]uint32{0, 1, 2 + w>>10&1, w >> 10 & 3}[w>>14&3]
	}
	b := &e.regs[w>>5&31]
	if *b = add(*b, uint64(bytes), false); w>>16&31 != 31 { // by a register
		*b = value64{}
	}
}

// pair executes ldp and stp in all sizes.
func (e *emulator) pair(w uint32, mem *memory.Window) {
	scale := uint32(2)
	switch {
	case w>>26&1 != 0:
		scale += w >> 30
	case w>>31 != 0:
		scale = 3
	}
	off := uint64(int64(int32(w<<10)>>25)) << scale
	at, known := e.base(w, off, w>>23&3)
	for i, reg := range [2]uint32{w, w >> 10} {
		e.transfer(w, reg, at+uint64(i)<<scale, known, w>>30 == 2, w>>22&1 != 0, mem)
	}
}

// single executes ldr and str in all sizes.
func (e *emulator) single(w uint32, off uint64, mode uint32, mem *memory.Window) {
	at, known := e.base(w, off, mode)
	e.transfer(w, w, at, known, w>>30 == 3, w>>22&3 != 0, mem)
}

// base returns the address and updates the base register. mode is 1 for post-indexed, 3 for pre-indexed, and
// anything else for no update.
func (e *emulator) base(w uint32, off uint64, mode uint32) (at uint64, known bool) {
	b := &e.regs[w>>5&31]
	known = b.kind == knownValue
	at = b.v + off
	if mode == 1 {
		at = b.v
	}
	if mode == 1 || mode == 3 {
		*b = add(*b, off, false)
	}
	return at, known
}

// transfer loads or stores a register of the instruction w at an address, if that is known.
func (e *emulator) transfer(w, reg uint32, at uint64, known, wide, load bool, mem *memory.Window) {
	switch i := reg&31 - 8; {
	case w>>26&1 != 0 && i >= 8:
	case w>>26&1 != 0 && w>>22&1 == 0:
		e.stored |= 1 << i
	case w>>26&1 != 0:
		if e.vectors[i] = at; !known || e.stored>>i&1 != 0 {
			e.vectors[i] = 0
		}
	case load && known && wide:
		e.write(reg, e.load(at, mem))
	case load:
		e.write(reg, value64{})
	case known && wide:
		e.save(at, e.source(reg))
	}
}
