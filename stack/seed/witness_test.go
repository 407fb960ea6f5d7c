package seed

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/clr/managed"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/walker"
)

// A process with managed code and one module, whose code is zero but for a call. Addresses in it are from its
// start on.
const (
	sp       = 0x10100 // of the seed
	methodAt = 0x7ff0_0000_1000
	nativeAt = 0x7ff1_0000_0000
	callAt   = 0x20 // a call returns here
	functAt  = 0x40 // a function begins here
	stackLow = 0x10000
	stackEnd = 0x12000
)

type code struct{ bytes [0x100]byte }

func (c *code) Bytes(at uint64, n int) []byte {
	if at+uint64(n) > uint64(len(c.bytes)) {
		return nil
	}
	return c.bytes[at : at+uint64(n)]
}
func (*code) CFIBase() uint64       { return 0 }
func (*code) Starts(at uint64) bool { return at == functAt }
func (*code) Entry() (uint64, bool) { return 0, false }
func (*code) SystemV() bool         { return true }
func (c *code) call(a context.Arch) { copy(c.bytes[callAt-5:], callOf[a]) }

var callOf = map[context.Arch][]byte{
	context.ArchAMD64: {0xe8, 0, 0, 0, 0},
	context.ArchARM64: {0, 0, 0, 0, 0x94},
}

// scene is a seed with what its witnesses see.
type scene struct {
	Witness
	regs   context.Registers
	s      unwind.State
	u      unwind.Walker
	p      managed.Specials
	bounds unwind.Bounds
	stack  []byte
	frames []unwind.Frame
}

func newScene(a context.Arch) *scene {
	c := &code{}
	c.call(a)
	x := &scene{u: walker.New(a), stack: make([]byte, stackEnd-stackLow),
		bounds: unwind.Bounds{Low: stackLow, High: stackEnd}}
	x.u.SetTable(module.NewTable(1, []module.Module{{Start: nativeAt, End: nativeAt + 0x100,
		Bias: nativeAt, Image: c}}, []memory.Range{{Start: methodAt - 0x1000, End: methodAt + 0x1000}}))
	x.regs.Arch = a
	x.regs.SetIP(methodAt)
	x.regs.SetSP(sp)
	x.record(sp + 32)
	x.s = unwind.State{Regs: &x.regs, Trust: unwind.TrustUnwindInfo}
	return x
}

// record makes a frame record that returns to managed code.
func (x *scene) record(at uint64) {
	x.regs.SetFP(at)
	x.put(at+8, methodAt+0x100)
}

func (x *scene) put(at, v uint64) {
	if off := at - stackLow; off <= uint64(len(x.stack)-8) {
		binary.LittleEndian.PutUint64(x.stack[off:], v)
	}
}

func (x *scene) confirmed() bool {
	mem := memory.New(memory.Run{Addr: stackLow, Data: x.stack})
	return x.confirms(x.u, &x.p, &x.s, mem, &x.bounds, x.frames)
}

// frame is an unmanaged frame at an address of the module.
func frameAt(at uint64) unwind.Frame {
	return unwind.Frame{IP: nativeAt + at, SP: sp - 32, FP: sp + 32, Module: 0}
}

// What the stack and the modules say of a seed.
func TestWitness(t *testing.T) {
	leaf := unwind.Frame{IP: nativeAt + 8, SP: sp, FP: sp + 32, Exact: true}
	below := leaf
	below.SP -= 32
	for _, c := range []struct {
		name       string
		change     func(x *scene)
		x64, arm64 bool
	}{
		{"called by its link register", func(x *scene) {}, true, true},
		{"its return address is further up", func(x *scene) { x.put(sp+48, methodAt) }, true, true},
		{"another function saved the link register", func(x *scene) { x.put(sp+8, methodAt) }, true, false},
		{"another function saved it in its record", func(x *scene) { x.put(sp+40, methodAt) }, true, false},
		{"read from the stack", func(x *scene) { x.put(sp+8, methodAt); x.frames[0] = below }, true, true},
		{"a record at the stack pointer", func(x *scene) { x.record(sp); x.frames[0] = below }, true, true},
		{"a record below the stack pointer", func(x *scene) { x.record(sp - 16) }, false, false},
		{"an interrupted method with a record below its stack pointer", func(x *scene) {
			x.record(sp - 16)
			x.s.Exact = true
		}, true, false},
		{"a frame pointer below the stack", func(x *scene) { x.record(0x1000) }, true, false},
		{"a misaligned record", func(x *scene) { x.record(sp + 36) }, true, false},
		{"a record outside of the stack", func(x *scene) { x.record(stackEnd) }, true, false},
		{"a record far up", func(x *scene) {
			x.record(stackEnd - 32)
			x.put(sp+longestFrame, methodAt)
		}, true, true},
		{"a record without a return address", func(x *scene) { x.put(sp+40, 0x5555) }, true, false},
		{"a record that returns after a call", func(x *scene) { x.put(sp+40, nativeAt+callAt) }, true, true},
		{"a record that returns to no call", func(x *scene) { x.put(sp+40, nativeAt+callAt+4) }, true, false},
		{"a signed return address", func(x *scene) { x.put(sp+40, 0x2a<<56|nativeAt+callAt) }, true, true},
		{"a hijacked return address", func(x *scene) { x.put(sp+40, nativeAt+functAt) }, true, true},
		{"a caller after a call", func(x *scene) { x.frames = []unwind.Frame{below, frameAt(callAt)} },
			true, true},
		{"a caller after no call", func(x *scene) { x.frames = []unwind.Frame{below, frameAt(callAt + 4)} },
			false, false},
		{"a trampoline", func(x *scene) {
			x.frames = []unwind.Frame{below, frameAt(callAt + 4)}
			x.frames[1].Kind = unwind.KindSignal
		}, true, true},
		{"an interrupted caller", func(x *scene) {
			x.frames = []unwind.Frame{below, frameAt(callAt + 4)}
			x.frames[1].Exact = true
		}, true, true},
		{"a caller in no module", func(x *scene) {
			x.frames = []unwind.Frame{below, frameAt(callAt + 4)}
			x.frames[1].Module = -1
		}, true, true},
		{"a caller with a dead frame pointer", func(x *scene) {
			x.frames = []unwind.Frame{below, frameAt(callAt)}
			x.frames[1].FP = sp - 40
		}, false, false},
		{"an epilog that has released its frame", func(x *scene) { x.frames[0].FP = sp - 16 }, true, true},
		{"below the copy", func(x *scene) { x.regs.SetSP(stackLow - 16) }, false, false},
	} {
		for _, a := range context.Arches {
			x := newScene(a)
			x.frames = []unwind.Frame{leaf}
			c.change(x)
			want := c.arm64
			if a == context.ArchAMD64 {
				want = c.x64
			}
			expect.Equal(t, x.confirmed(), want, "%v, %s", a, c.name)
		}
	}
}

// text is readable code, which ends where memory does.
type text struct {
	base  uint64
	bytes []byte
}

func (c *text) ReadAt(p []byte, addr uint64) bool {
	off := addr - c.base
	return off < uint64(len(c.bytes)) && copy(p, c.bytes[off:]) == len(p)
}

// A call must precede a seed in the code of its method, and an ARM64 method's return address in its record.
func TestCode(t *testing.T) {
	const blr, indexed = 0xd63f0100, "\xff\x94\xe8\x10\x00\x00\x00" // blr x8; call [rax+rbp*8+16]
	word := func(w uint32) string { return string(binary.LittleEndian.AppendUint32(nil, w)) }
	for _, c := range []struct {
		name       string
		arch       context.Arch
		before     string // in the method
		record     string // before the return address in the frame record
		off        uint64 // of the seed's ip, from methodAt
		exact      bool
		want, none bool // with and without Code
	}{
		{"a call", context.ArchAMD64, "\xe8\x00\x00\x00\x00", "", 0, false, true, true},
		{"an indirect call", context.ArchAMD64, "\xff\xd0", "", 0, false, true, true},
		{"no call", context.ArchAMD64, "\x90\x90", "", 0, false, false, true},
		{"a call to no code", context.ArchAMD64, "\xe8\x00\x00\x00\x44", "", 0, false, false, true},
		{"a call through a table at rbp", context.ArchAMD64, indexed, "", 0, false, true, true},
		{"an interrupted method", context.ArchAMD64, "\x90\x90", "", 0, true, true, true},
		{"code that cannot be read", context.ArchAMD64, "\xff\xd0", "", 0x10000, false, false, true},
		{"a call", context.ArchARM64, word(blr), word(blr), 0, false, true, true},
		{"no call", context.ArchARM64, word(0), word(blr), 0, false, false, true},
		{"no call before the caller", context.ArchARM64, word(blr), word(0), 0, false, false, true},
	} {
		x := newScene(c.arch)
		code := &text{methodAt - 0x100, make([]byte, 0x400)}
		copy(code.bytes[0x100-len(c.before):], c.before)
		copy(code.bytes[0x200-len(c.record):], c.record) // see newScene
		x.regs.SetIP(methodAt + c.off)
		x.s.Exact = c.exact
		x.frames = []unwind.Frame{{IP: nativeAt + 8, SP: sp - 32, FP: sp + 32, Exact: true}}
		expect.Equal(t, x.confirmed(), c.none, "%v, %s: without the code", c.arch, c.name)
		x.Code = code
		expect.Equal(t, x.confirmed(), c.want, "%v, %s", c.arch, c.name)
		expect.Equal(t, testing.AllocsPerRun(10, func() { x.returned(c.arch, methodAt) }), 0.0, "allocations")
	}
}
