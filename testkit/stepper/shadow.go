package stepper

import (
	"bytes"
	"encoding/binary"
)

// Regs are the registers the shadow keeps, in UNWIND_INFO numbering.
type Regs struct {
	IP  uint64
	GPR [16]uint64
}

const rsp = 4

// Call is one call that has not returned.
type Call struct {
	At     uint64 // where its return address lies
	Return uint64
	Caller Regs // as of the call instruction
}

// Frame is what a walk should find: a frame's ip, sp and registers.
func (c *Call) Frame() Regs {
	f := c.Caller
	f.IP, f.GPR[rsp] = c.Return, c.At+8
	return f
}

// shadow is the stack of calls, innermost last.
type shadow struct {
	calls []Call
	size  map[uint64]uint8 // of the call instruction at an address; 0: none
	read  func(addr uint64, b []byte) bool
}

// step follows the instruction that led from one state to the next.
func (s *shadow) step(from, to *Regs) {
	sp := to.GPR[rsp]
	if n := s.callAt(from.IP); n != 0 && sp == from.GPR[rsp]-8 {
		var b [8]byte
		if back := from.IP + uint64(n); s.read(sp, b[:]) && binary.LittleEndian.Uint64(b[:]) == back {
			s.calls = append(s.calls, Call{sp, back, *from})
			return
		}
	}
	for n := len(s.calls); n > 0 && s.calls[n-1].At < sp && !s.popped(&s.calls[n-1], from, to); n-- {
		s.calls = s.calls[:n-1]
	}
}

// popped reports whether the return address of a call has been popped into a register for
// a jump to it: pop reg; lfence; jmp reg is a return by clang's hardening.
func (s *shadow) popped(c *Call, from, to *Regs) bool {
	if to.IP == c.Return || from.IP == c.Return || c.At+8 != to.GPR[rsp] {
		return false
	}
	var b [10]byte
	return s.read(to.IP-4, b[:]) &&
		(bytes.Contains(b[:], []byte{0x0f, 0xae, 0xe8, 0xff}) ||
			bytes.Contains(b[:], []byte{0x0f, 0xae, 0xe8, 0x41, 0xff}))
}

// forget drops what is known of code that was mapped again.
func (s *shadow) forget() { s.size = map[uint64]uint8{} }

func (s *shadow) callAt(ip uint64) uint8 {
	n, ok := s.size[ip]
	if !ok {
		var b [16]byte
		if s.read(ip, b[:]) || s.read(ip, b[:8]) {
			n = callSize(b[:])
		}
		if n != 0 && bytes.HasPrefix(b[n:], trap) {
			n = 0
		}
		s.size[ip] = n
	}
	return n
}

// trap is pause; lfence: what follows the call in a thunk of gcc's or clang's is executed
// speculatively only. The thunk drops or replaces the return address.
var trap = []byte{0xf3, 0x90, 0x0f, 0xae, 0xe8}

// callSize returns the length of the call instruction that code begins with, 0 if
// there is none: E8 rel32, FF /2, behind prefixes.
func callSize(code []byte) uint8 {
	n := 0
	for n < 6 && (code[n] == 0x66 || code[n] == 0x67 || code[n] == 0xf2 || code[n] == 0xf3 ||
		code[n] == 0x2e || code[n] == 0x3e || code[n]&0xf0 == 0x40) {
		n++
	}
	switch {
	case code[n] == 0xe8:
		return uint8(n + 5)
	case code[n] != 0xff || code[n+1]>>3&7 != 2:
		return 0
	}
	mod, rm := code[n+1]>>6, code[n+1]&7
	size := n + 2
	if mod != 3 && rm == 4 {
		if mod == 0 && code[n+2]&7 == 5 {
			size += 4
		}
		size++
	}
	switch {
	case mod == 1:
		size++
	case mod == 2, mod == 0 && rm == 5:
		size += 4
	}
	return uint8(size)
}
