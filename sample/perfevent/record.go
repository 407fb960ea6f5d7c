package perfevent

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/buf"
)

// Type is the kind of a record, numbered as PERF_RECORD_* are.
type Type uint32

// The types that are read; others are skipped.
const (
	Lost       Type = 2
	Comm       Type = 3
	Exit       Type = 4
	Throttle   Type = 5
	Unthrottle Type = 6
	Fork       Type = 7
	Sample     Type = 9
)

// Bits of a record's misc field.
const (
	miscModes  = 7
	miscKernel = 1
)

// MaxStack is the largest copy of a stack, bytes. The size of a record is 16 bits, and the
// kernel shortens a larger request.
const MaxStack = 65528

// MaxRecord is the largest record, bytes.
const MaxRecord = 1 << 16

// Record is one record of a ring. Its slices are valid until the next one is read.
type Record struct {
	Type     Type
	PID, TID uint32
	Parent   uint32 // Fork and Exit: the thread that created TID
	Time     uint64 // nanoseconds of CLOCK_MONOTONIC; not of Lost and Comm
	Kernel   bool   // Sample: the hit was in the kernel, IP is the kernel's
	Lost     uint64 // Lost: records
	Name     []byte // Comm: the new name of TID

	IP    uint64 // Sample
	Regs  []byte // of user mode, 8 bytes each, in the order of the mask; nil of a kernel thread
	Stack []byte // copied from the stack pointer on
	// Cut means that the stack may continue beyond the copy.
	Cut bool
}

// Layout describes the samples of an event, in addition to IP, TID, and TIME.
type Layout struct {
	Arch  context.Arch
	Regs  bool
	Stack bool
}

// Masks of the user registers that a sample holds, by the numbers of the architecture's
// perf_regs.h. On x86-64 they are ax, bx, cx, dx, si, di, bp, sp, ip and r8 to r15; on ARM64
// x0 to x30, sp and pc.
const (
	maskAMD64 = 0x1ff | 0xff<<16
	maskARM64 = 1<<33 - 1
)

func regsMask(a context.Arch) uint64 {
	switch a {
	case context.ArchAMD64:
		return maskAMD64
	case context.ArchARM64:
		return maskARM64
	}
	return 0
}

// orderAMD64 maps a sample's registers to their numbers in context.AMD64; -1 is rip.
var orderAMD64 = [...]int8{context.RAX, context.RBX, context.RCX, context.RDX, context.RSI,
	context.RDI, context.RBP, context.RSP, -1,
	context.R8, context.R9, context.R10, context.R11, context.R12, context.R13, context.R14, context.R15}

// Registers returns the user registers of a sample, false if it has none.
func (r *Record) Registers(a context.Arch) (context.Registers, bool) {
	if n := bits.OnesCount64(regsMask(a)); n == 0 || len(r.Regs) != 8*n {
		return context.Registers{}, false
	}
	if a == context.ArchARM64 {
		return context.FromARM64(registersARM64(r.Regs)), true
	}
	return context.FromAMD64(registersAMD64(r.Regs)), true
}

func registersAMD64(b []byte) (g context.AMD64) {
	for i, reg := range orderAMD64 {
		v := binary.LittleEndian.Uint64(b[8*i:])
		if reg < 0 {
			g.RIP = v
			continue
		}
		g.GPR[reg] = v
		g.Known |= 1 << reg
	}
	return g
}

func registersARM64(b []byte) (g context.ARM64) {
	for i := range g.X {
		g.X[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	g.Sp = binary.LittleEndian.Uint64(b[8*31:])
	g.PC = binary.LittleEndian.Uint64(b[8*32:])
	g.Known = 1<<31 - 1
	return g
}

// header is the first 8 bytes of each record.
const header = 8

// Parse reads a record from b, which must hold it whole. It returns false if the record's fields do not fit
// into it, or if its type is not read.
func (l Layout) Parse(b []byte, r *Record) bool {
	*r = Record{}
	if len(b) < header {
		return false
	}
	misc := binary.LittleEndian.Uint16(b[4:])
	f := buf.Reader{Data: b[header:]}
	switch r.Type = Type(binary.LittleEndian.Uint32(b)); r.Type {
	case Sample:
		r.Kernel = misc&miscModes == miscKernel
		l.sample(&f, r)
	case Fork, Exit:
		r.PID, _ = f.U32(), f.U32()
		r.TID, r.Parent, r.Time = f.U32(), f.U32(), f.U64()
	case Comm:
		r.PID, r.TID = f.U32(), f.U32()
		r.Name, _, _ = bytes.Cut(b[min(len(b), header+8):], []byte{0})
	case Lost:
		f.U64()
		r.Lost = f.U64()
	case Throttle, Unthrottle:
		r.Time = f.U64()
	default:
		return false
	}
	return f.OK()
}

func (l Layout) sample(f *buf.Reader, r *Record) {
	r.IP, r.PID, r.TID, r.Time = f.U64(), f.U32(), f.U32(), f.U64()
	if l.Regs {
		if abi := f.U64(); abi != 0 {
			r.Regs = f.Bytes(8 * uint64(bits.OnesCount64(regsMask(l.Arch))))
		}
	}
	if !l.Stack {
		return
	}
	size := f.U64()
	if size == 0 {
		return
	}
	r.Stack = f.Bytes(size)
	used := f.U64()
	r.Cut = used >= size
	r.Stack = r.Stack[:min(used, uint64(len(r.Stack)))]
}
