package armrun

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Counts are instructions at which a frame was undone correctly.
type Counts struct {
	Prolog, Epilog int
	Epilogs        int    // epilogs that could be executed to their end
	Entered        uint64 // bytes that epilogs free beyond what the prolog allocated
}

// Undo undoes the frame of the function that a machine runs, offset bytes into it.
type Undo func(m *Machine, offset uint64) (caller Registers, err error)

const (
	stackSize = 1 << 18
	stackBase = 0x7f00_0000_0000
)

// function is the function under test.
type function struct {
	at, ret uint64
	code    []byte
	ends    []end
	caller  Registers
	undo    Undo
}

// end is an epilog.
type end struct {
	from uint64    // offset of its first load
	kept [2]uint32 // registers that it restores: x registers, d registers
}

// Frames runs the function whose code is at an address, called from ret, and undoes its frame at each
// executed instruction. The error describes the first instruction at which undo returns wrong registers.
func Frames(code []byte, at, ret uint64, undo Undo) (c Counts, err error) {
	f := function{at: at, ret: ret, code: code, undo: undo}
	f.caller = f.entered().Registers
	f.caller.PC = ret
	froms := epilogs(code)
	first := uint64(len(code))
	if len(froms) > 0 {
		first = froms[0]
	}
	for _, from := range froms {
		if e, free, ok := f.understood(from, first); ok {
			f.ends, c.Entered = append(f.ends, e), free
		}
	}
	f.caller.SP += c.Entered
	m := f.entered()
	if c.Prolog, err = f.run(m, first, f.check); err != nil {
		return c, err
	}
	for _, e := range f.ends {
		m := f.body(first)
		m.scramble(e.kept)
		if err := f.check(m); err != nil {
			return c, fmt.Errorf("in the body %w", err)
		}
		m.PC = at + e.from
		n, err := f.run(m, uint64(len(code)), f.check)
		if c.Epilog, c.Epilogs = c.Epilog+n, c.Epilogs+1; err != nil {
			return c, err
		}
	}
	return c, nil
}

// entered returns a machine at the function's first instruction.
func (f *function) entered() *Machine {
	rnd := rand.New(rand.NewPCG(f.at, 64))
	m := &Machine{Stack: make([]byte, stackSize), Base: stackBase}
	for i := range m.X {
		m.X[i] = rnd.Uint64() | 1<<62 // not an address of anything
	}
	for i := range m.D {
		m.D[i] = rnd.Uint64()
	}
	m.X[29], m.X[30] = stackBase+stackSize-256, f.ret
	m.SP, m.PC = stackBase+stackSize-4096, f.at
	return m
}

// body returns a machine whose prolog has run.
func (f *function) body(first uint64) *Machine {
	m := f.entered()
	f.run(m, first, nil)
	return m
}

// scramble changes registers that functions preserve.
func (m *Machine) scramble(which [2]uint32) {
	for i := range 32 {
		if which[0]>>i&1 != 0 {
			m.X[i] ^= 0x5eed_5eed
		}
		if which[1]>>i&1 != 0 {
			m.D[i] ^= 0x5eed_5eed
		}
	}
}

// preserved are the registers that a body may change if its function saves them.
var preserved = [2]uint32{0x3ff << 19, 0xff << 8}

// understood runs an epilog. It returns the registers that the epilog restores, and the number of bytes that
// it frees beyond those that the prolog allocated. ok is false if the epilog does not restore the frame
// pointer and the return address. ok is also false if it sets a preserved register to a value other than the
// caller's.
func (f *function) understood(from, first uint64) (e end, free uint64, ok bool) {
	m := f.body(first)
	m.scramble(preserved)
	was := m.Registers
	m.PC = f.at + from
	f.run(m, uint64(len(f.code)), nil)
	if m.X[29] != f.caller.X[29] || m.X[30] != f.ret || m.SP < f.caller.SP {
		return e, 0, false
	}
	e.from = from
	for i := range 32 {
		if preserved[0]>>i&1 != 0 && m.X[i] != was.X[i] {
			e.kept[0] |= 1 << i
			ok = ok || m.X[i] != f.caller.X[i]
		}
		if preserved[1]>>i&1 != 0 && m.D[i] != was.D[i] {
			e.kept[1] |= 1 << i
			ok = ok || m.D[i] != f.caller.D[i]
		}
	}
	return e, m.SP - f.caller.SP, !ok
}

// run runs instructions up to an offset, an unknown instruction, or one that leaves the function. It returns
// how many passed check.
func (f *function) run(m *Machine, to uint64, check func(*Machine) error) (n int, err error) {
	for {
		off := m.PC - f.at
		if off >= to || off+4 > uint64(len(f.code)) {
			return n, nil
		}
		if check != nil {
			if err := check(m); err != nil {
				return n, err
			}
		}
		n++
		if m.Do(binary.LittleEndian.Uint32(f.code[off:])) != On {
			return n, nil
		}
	}
}

func (f *function) check(m *Machine) error {
	off := m.PC - f.at
	got, err := f.undo(m, off)
	if err == nil {
		err = f.differ(&got)
	}
	if err != nil {
		return fmt.Errorf("at %#x of %#x bytes: %w", off, len(f.code), err)
	}
	return nil
}

// differ compares the preserved registers and PC with those of the caller. It compares SP only if the
// function has an understood epilog: only an epilog shows how much the function frees.
func (f *function) differ(got *Registers) error {
	want := &f.caller
	if got.PC != want.PC || len(f.ends) > 0 && got.SP != want.SP {
		return fmt.Errorf("pc %#x, sp %#x, want %#x, %#x", got.PC, got.SP, want.PC, want.SP)
	}
	for i := 19; i < 30; i++ {
		if got.X[i] != want.X[i] {
			return fmt.Errorf("x%d %#x, want %#x", i, got.X[i], want.X[i])
		}
	}
	for i := 8; i < 16; i++ {
		if got.D[i] != want.D[i] {
			return fmt.Errorf("d%d %#x, want %#x", i, got.D[i], want.D[i])
		}
	}
	return nil
}

// epilogs returns, for each jump that leaves the function, the offset of the first load right before it.
func epilogs(code []byte) (out []uint64) {
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(code[i:]) }
	for i := 4; i+4 <= len(code); i += 4 {
		w := word(i)
		leaves := w&0xfffffc1f == 0xd65f0000 || w&0xfffffc1f == 0xd61f0000 || w>>26 == 5 // ret, br, b
		from := i
		for leaves && from > 0 && restores(word(from-4)) {
			from -= 4
		}
		if from < i {
			out = append(out, uint64(from))
		}
	}
	return out
}

// restores reports whether an instruction may be part of an epilog: a load from the frame, an instruction
// that moves SP, or one that computes the distance for that.
func restores(w uint32) bool {
	base := w >> 5 & 31
	switch {
	case w&0x3a400000 == 0x28400000, w&0x3a400000 == 0x38400000:
		return base == sp || base == 29
	case w&0xbf80001f == 0x9100001f, w&0xbfe0fc1f == 0x8b20601f:
		return true
	}
	return w&0x1f800000 == 0x12800000
}
