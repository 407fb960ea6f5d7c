package snap

import (
	"fmt"
	"strconv"

	"github.com/seedwalk/seedwalk/context"
)

// AMD64Names are the snapshot's names in UNWIND_INFO order.
var AMD64Names = [16]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

// AMD64Index returns a register's UNWIND_INFO number, or -1.
func AMD64Index(name string) int {
	for i, n := range AMD64Names {
		if n == name {
			return i
		}
	}
	return -1
}

// AMD64 returns the snapshot's registers.
func (s *Snapshot) AMD64() (context.AMD64, error) {
	var r context.AMD64
	for i, name := range AMD64Names {
		v, ok := s.Regs[name]
		if !ok {
			return r, fmt.Errorf("snap: %s: no register %s", s.ID, name)
		}
		r.GPR[i] = uint64(v)
		r.Known |= 1 << i
	}
	pc, ok := s.Regs["rip"]
	if !ok {
		return r, fmt.Errorf("snap: %s: no register rip", s.ID)
	}
	r.RIP = uint64(pc)
	return r, nil
}

// ARM64 returns the snapshot's registers. D8-D15 are set where recorded.
func (s *Snapshot) ARM64() (context.ARM64, error) {
	var r context.ARM64
	for i := range r.X {
		v, ok := s.Regs["x"+strconv.Itoa(i)]
		if !ok {
			return r, fmt.Errorf("snap: %s: no register x%d", s.ID, i)
		}
		r.X[i] = uint64(v)
		r.Known |= 1 << i
	}
	for i := range r.D {
		if v, ok := s.Regs["d"+strconv.Itoa(i+8)]; ok {
			r.D[i] = uint64(v)
			r.Known |= 1 << (32 + i)
		}
	}
	sp, okSP := s.Regs["sp"]
	pc, okPC := s.Regs["pc"]
	if !okSP || !okPC {
		return r, fmt.Errorf("snap: %s: no register sp or pc", s.ID)
	}
	r.Sp, r.PC = uint64(sp), uint64(pc)
	return r, nil
}
