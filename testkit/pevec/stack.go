package pevec

import (
	"encoding/binary"
	"fmt"

	"github.com/seedwalk/seedwalk/context/memory"
)

const (
	mul64 = 0x9E3779B97F4A7C15 // stack_fill: a word at A is A times this

	margin   = 64 << 10 // zeros around what was recorded, bytes
	maxStack = 64 << 20
)

// Stacks builds stacks. A window is good until the next is built. The zero
// Stacks is ready.
type Stacks struct {
	buf    []byte
	filled map[[2]Hex]*memory.Window
}

// Window returns the stack at p: recorded runs with zeros between and around
// them, or words made of their addresses.
func (s *Stacks) Window(v *Vector, p *Point) (*memory.Window, error) {
	if v.StackRange[1] != 0 {
		return s.fill(v)
	}
	lo, hi := ^uint64(0), uint64(0)
	for _, sp := range []*Hex{p.RSP, p.SP} {
		if sp != nil {
			lo, hi = uint64(*sp), uint64(*sp)
		}
	}
	if sp, ok := p.GPR["rsp"]; ok {
		lo, hi = uint64(sp), uint64(sp)
	}
	for _, r := range p.Stack {
		lo, hi = min(lo, uint64(r.Addr)), max(hi, uint64(r.Addr)+uint64(len(r.Data)))
	}
	return s.zeros(v, p, lo, hi)
}

func (s *Stacks) zeros(v *Vector, p *Point, lo, hi uint64) (*memory.Window, error) {
	lo = lo &^ 15
	if lo < margin || hi < lo || hi-lo > maxStack || hi+margin < hi {
		return nil, fmt.Errorf("pevec: %s: stack runs from %#x to %#x", v.ID, lo, hi)
	}
	lo -= margin
	n := hi + margin - lo
	if uint64(len(s.buf)) < n {
		s.buf = make([]byte, n)
	}
	data := s.buf[:n]
	clear(data)
	for _, r := range p.Stack {
		copy(data[uint64(r.Addr)-lo:], r.Data)
	}
	return memory.New(memory.Run{Addr: lo, Data: data}), nil
}

func (s *Stacks) fill(v *Vector) (*memory.Window, error) {
	if w := s.filled[v.StackRange]; w != nil {
		return w, nil
	}
	lo, hi := uint64(v.StackRange[0]), uint64(v.StackRange[1])
	if v.StackFill != "mul64" || lo&7 != 0 || hi < lo || hi-lo > maxStack {
		return nil, fmt.Errorf("pevec: %s: stack from %#x to %#x filled with %q", v.ID, lo, hi, v.StackFill)
	}
	data := make([]byte, (hi-lo)&^7)
	for i := uint64(0); i < uint64(len(data)); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], (lo+i)*mul64)
	}
	w := memory.New(memory.Run{Addr: lo, Data: data})
	if s.filled == nil {
		s.filled = map[[2]Hex]*memory.Window{}
	}
	s.filled[v.StackRange] = w
	return w, nil
}
