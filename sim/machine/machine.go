// Package machine runs the functions of package image on simulated threads. A thread has
// registers and a stack, and executes prologs, bodies, and epilogs. So the registers of every
// frame are known at every instruction.
//
// Sources: the calling conventions of Microsoft (x64, ARM64), System V and Arm
// (AAPCS64); the signal frames of Linux; the Intel SDM's interrupt stack frame.
//
// Glossary. The *truth* of a frame is its registers as they were when it called,
// or was interrupted. A *sentinel* is the return address 0 below the first
// function. A *diverted* return goes to another address than that of the call,
// because the return address on the stack was changed (hijacked).
//
// Strategy: a thread executes the effects of ops; machine code is not decoded.
// Registers that a function may change get random values while its body runs. So a
// walker that restores a wrong one is noticed. Steps allocate nothing. The simulated
// CLR (sim/vm) and its host drive the threads; only one of them runs at a time.
//
// Known gaps: flags, volatile vector state across signals, and code without ops.
package machine

import (
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sim/image"
)

// State is the registers of a thread or frame.
type State struct {
	PC uint64
	R  [32]uint64    // R[arch.SP()] is SP
	V  [32][2]uint64 // low quadword first; ARM64: the low 8 bytes only
}

// AMD64 returns the state in the walker's form. Every register is known.
func (s *State) AMD64() context.AMD64 {
	c := context.AMD64{RIP: s.PC, Known: context.AMD64All}
	copy(c.GPR[:], s.R[:])
	for i := range c.XMM {
		c.XMM[i] = s.V[6+i]
	}
	return c
}

// ARM64 returns the state in the walker's form. Every register is known.
func (s *State) ARM64() context.ARM64 {
	c := context.ARM64{PC: s.PC, Sp: s.R[31], Known: context.ARM64All}
	copy(c.X[:], s.R[:])
	for i := range c.D {
		c.D[i] = s.V[8+i][0]
	}
	return c
}

// Frame is the true state of one activation.
type Frame struct {
	Image *image.Image
	Func  *image.Func
	State State // at the next instruction to run in the frame: a return address, SP after the return
	Exact bool  // the frame was interrupted there, or is the leaf
}

// Event is the result of a step.
type Event uint8

const (
	Ran      Event = iota
	AtCall         // the op is a call, and was not executed: see Call and Skip
	Returned       // a function returned to its caller
	Ended          // the first function returned: the thread has ended
	Diverted       // a return went to another address than the caller's: State().PC, see Enter
	Faulted        // the op accesses memory outside the stacks, and was not executed
)

// Arch converts an architecture of package image.
func Arch(a image.Arch) context.Arch {
	if a == image.ARM64 {
		return context.ArchARM64
	}
	return context.ArchAMD64
}

// Registers returns the state of a thread of architecture a in the walker's form.
func (s *State) Registers(a image.Arch) context.Registers {
	if a == image.ARM64 {
		return context.FromARM64(s.ARM64())
	}
	return context.FromAMD64(s.AMD64())
}

// FromRegisters is the reverse of Registers.
func FromRegisters(r *context.Registers) State {
	if r.Arch == context.ArchARM64 {
		return FromARM64(&r.ARM64)
	}
	return FromAMD64(&r.AMD64)
}
