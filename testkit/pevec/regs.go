package pevec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/snap"
)

// names of the x86-64 registers in UNWIND_INFO numbering.
var names = snap.AMD64Names

// WindowsAMD64 are the registers a Windows x64 function preserves, as bits of
// context.AMD64.Known.
const WindowsAMD64 = 1<<context.RBX | 1<<context.RBP | 1<<context.RSP | 1<<context.RSI | 1<<context.RDI |
	1<<context.R12 | 1<<context.R13 | 1<<context.R14 | 1<<context.R15 | 0x3ff<<16

// AMD64 returns the registers at p.
func (v *Vector) AMD64(p *Point) (context.AMD64, error) {
	r := context.AMD64{Known: context.AMD64All}
	if p.PC != nil {
		r.RIP = uint64(v.Base) + uint64(*p.PC)
	}
	if p.RSP != nil {
		r.GPR[context.RSP] = uint64(*p.RSP)
	}
	err := override(&r, &v.Entry)
	if err == nil {
		err = override(&r, &p.State)
	}
	return r, err
}

// WantAMD64 returns the registers after the step from p. Registers that are not listed are from's.
func (v *Vector) WantAMD64(p *Point, from *context.AMD64) (context.AMD64, error) {
	r, e := *from, v.Want(p)
	if e == nil {
		return r, fmt.Errorf("pevec: %s: nothing is expected", v.ID)
	}
	err := override(&r, e)
	if e.RIP != nil {
		r.RIP = uint64(*e.RIP)
	}
	if e.RSP != nil {
		r.GPR[context.RSP] = uint64(*e.RSP)
	}
	return r, err
}

func override(r *context.AMD64, s *State) error {
	for name, val := range s.GPR {
		i := snap.AMD64Index(name)
		if i < 0 {
			return fmt.Errorf("pevec: no register %q", name)
		}
		r.GPR[i] = uint64(val)
	}
	for name, val := range s.XMM {
		i, err := strconv.Atoi(strings.TrimPrefix(name, "xmm"))
		if err != nil || i < 0 || i > 15 {
			return fmt.Errorf("pevec: no register %q", name)
		}
		if i >= 6 {
			r.XMM[i-6] = context.XMM(val)
		}
	}
	return nil
}

// DiffAMD64 names the first register of check (a set of bits of Known) that differs or is unknown in got; ""
// if none.
func DiffAMD64(got, want *context.AMD64, check uint32) string {
	if got.RIP != want.RIP {
		return fmt.Sprintf("rip %#x, want %#x", got.RIP, want.RIP)
	}
	for i, name := range names {
		switch {
		case check>>i&1 == 0:
		case got.Known>>i&1 == 0:
			return name + " is not known"
		case got.GPR[i] != want.GPR[i]:
			return fmt.Sprintf("%s %#x, want %#x", name, got.GPR[i], want.GPR[i])
		}
	}
	for i := range got.XMM {
		switch {
		case check>>(16+i)&1 == 0:
		case got.Known>>(16+i)&1 == 0:
			return fmt.Sprintf("xmm%d is not known", 6+i)
		case got.XMM[i] != want.XMM[i]:
			return fmt.Sprintf("xmm%d %016x%016x, want %016x%016x", 6+i, got.XMM[i][1], got.XMM[i][0],
				want.XMM[i][1], want.XMM[i][0])
		}
	}
	return ""
}

// ARM64 registers at p.
func (v *Vector) RegsARM64(p *Point) (context.ARM64, error) {
	r := context.ARM64{Known: context.ARM64All}
	err := overrideARM64(&r, &v.Entry)
	if err == nil {
		err = overrideARM64(&r, &p.State)
	}
	if p.PC != nil {
		r.PC = uint64(v.Base) + uint64(*p.PC)
	}
	return r, err
}

// WantARM64 returns the registers after the step from p, taken by from.
func (v *Vector) WantARM64(p *Point, from *context.ARM64) (context.ARM64, error) {
	r, e := *from, v.Want(p)
	if e == nil {
		return r, fmt.Errorf("pevec: %s: nothing is expected", v.ID)
	}
	err := overrideARM64(&r, e)
	if e.PC != nil {
		r.PC = uint64(*e.PC)
	}
	return r, err
}

func overrideARM64(r *context.ARM64, s *State) error {
	if s.SP != nil {
		r.Sp = uint64(*s.SP)
	}
	if s.LR != nil {
		r.X[30] = uint64(*s.LR)
	}
	for name, val := range s.X {
		i, err := strconv.Atoi(strings.TrimPrefix(name, "x"))
		if err != nil || i < 0 || i > 30 {
			return fmt.Errorf("pevec: no register %q", name)
		}
		r.X[i] = uint64(val)
	}
	for name, val := range s.D {
		i, err := strconv.Atoi(strings.TrimPrefix(name, "d"))
		if err != nil || i < 0 || i > 31 {
			return fmt.Errorf("pevec: no register %q", name)
		}
		if i >= 8 && i < 16 {
			r.D[i-8] = uint64(val)
		}
	}
	return nil
}

// DiffARM64 names the first register in which got is not want: pc, sp, x19-x29,
// d8-d15; "" if none.
func DiffARM64(got, want *context.ARM64) string {
	switch {
	case got.PC != want.PC:
		return fmt.Sprintf("pc %#x, want %#x", got.PC, want.PC)
	case got.Sp != want.Sp:
		return fmt.Sprintf("sp %#x, want %#x", got.Sp, want.Sp)
	}
	for i := 19; i < 30; i++ {
		if got.Known>>i&1 == 0 || got.X[i] != want.X[i] {
			return fmt.Sprintf("x%d %#x, want %#x", i, got.X[i], want.X[i])
		}
	}
	for i := range got.D {
		if got.Known>>(32+i)&1 == 0 || got.D[i] != want.D[i] {
			return fmt.Sprintf("d%d %#x, want %#x", 8+i, got.D[i], want.D[i])
		}
	}
	return ""
}
