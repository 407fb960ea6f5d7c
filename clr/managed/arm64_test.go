package managed

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/testkit/armrun"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// armCode is a runtime of ARM64 with one method, followed by a stub.
type armCode struct {
	code, xdata []byte
	stub        Kind
}

const (
	armBase  = 0x7d00_0000_0000
	armBegin = 0x1000 // RVAs
	armXdata = 0x8000
	armStub  = 0x9000
	armCall  = armBase + 0xa000 // behind a call of native code
)

func (a *armCode) Code(at unwind.Address, c *Code) unwind.Stop {
	switch off := at.IP - armBase - armBegin; {
	case off <= uint64(len(a.code)): // a call may be the last instruction
		*c = Code{Kind: Method, Base: armBase,
			EntryARM64: arm64.RuntimeFunction{Begin: armBegin, Data: armXdata}}
	case at.IP == armBase+armStub:
		*c = Code{Kind: a.stub}
	default:
		return unwind.NoInfo
	}
	return unwind.StopNone
}

func (a *armCode) ReadAt(b []byte, addr uint64) bool {
	if addr+uint64(len(b)) == armCall {
		clear(b)
		copy(b[len(b)-4:], []byte{1, 0, 0, 0x94}) // bl
		return true
	}
	for _, p := range []struct {
		at   uint64
		data []byte
	}{{armBase + armBegin, a.code}, {armBase + armXdata, a.xdata}} {
		if off := addr - p.at; off < uint64(len(p.data)) && len(b) <= len(p.data)-int(off) {
			copy(b, p.data[off:])
			return true
		}
	}
	return false
}

func (a *armCode) Arch() context.Arch { return context.ArchARM64 }
func (a *armCode) Unix() bool         { return true }

// step undoes the frame of the machine's code.
func (a *armCode) step(m *armrun.Machine, exact bool) (to armrun.Registers, err error) {
	r := context.Registers{Arch: context.ArchARM64}
	g := &r.ARM64
	g.X, g.Sp, g.PC, g.Known = m.X, m.SP, m.PC, 1<<31-1|0xff<<32
	copy(g.D[:], m.D[8:])
	s, f := unwind.State{Regs: &r, Exact: exact}, unwind.Frame{}
	if stop := New(a).Step(&s, memory.New(memory.Run{Addr: m.Base, Data: m.Stack}), &unwind.Bounds{},
		&f); stop != unwind.StopNone {
		return to, errors.New(stop.String())
	}
	to.X, to.SP, to.PC = g.X, g.Sp, g.PC
	copy(to.D[8:], g.D[:])
	return to, nil
}

// recordedARM64 reads methods that .NET 10.0.9 compiled for linux-arm64. Each has three lines. The first has
// the name, the bytes of another method's frame that the method frees, and the numbers of instructions in its
// prolog and epilogs. The second is its code, the third its .xdata record.
func recordedARM64(t *testing.T) (out []recordedMethod) {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/arm64-methods.txt"))(t)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := 0; i+3 <= len(lines); i += 3 {
		var m recordedMethod
		if n, err := fmt.Sscanf(lines[i], "%s %d %d %d", &m.name, &m.entered, &m.prolog, &m.epilog); n != 4 {
			t.Fatal(lines[i], err)
		}
		m.code = must.Get(hex.DecodeString(lines[i+1]))(t)
		m.xdata = must.Get(hex.DecodeString(lines[i+2]))(t)
		out = append(out, m)
	}
	return out
}

type recordedMethod struct {
	name           string
	entered        uint64
	prolog, epilog int
	armCode
}

// Methods are undone at every instruction of their prologs and epilogs.
func TestMethodsARM64(t *testing.T) {
	for _, m := range recordedARM64(t) {
		t.Run(m.name, func(t *testing.T) {
			got, err := armrun.Frames(m.code, armBase+armBegin, armCall,
				func(r *armrun.Machine, _ uint64) (armrun.Registers, error) { return m.step(r, true) })
			expect.True(t, err == nil && got.Entered == m.entered && got.Prolog == m.prolog &&
				got.Epilog == m.epilog, "%+v, %v", got, err)
		})
	}
}

// Code without a frame is left through x30 if a thread was interrupted in it.
func TestStubsARM64(t *testing.T) {
	m := recordedARM64(t)[0]
	inMethod := uint64(armBase + armBegin + 16)
	for _, c := range []struct {
		name  string
		kind  Kind
		ra    uint64
		known bool
		exact bool
		ok    bool
	}{
		{"a stub that a method called", Stub, inMethod, true, true, true},
		{"a stub that native code called", Stub, armCall, true, true, true},
		{"code without a source", Uncharted, inMethod, true, true, true},
		{"a thunk that a method called", Thunk, inMethod, true, true, true},
		{"a thunk that a native function called", Thunk, armCall, true, true, false},
		{"no call stands before x30", Stub, armCall + 4, true, true, false},
		{"x30 is not known", Stub, inMethod, false, true, false},
		{"a stub that has called", Stub, inMethod, true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m.stub = c.kind
			r := context.Registers{Arch: context.ArchARM64}
			r.ARM64.PC, r.ARM64.Sp, r.ARM64.Known = armBase+armStub, 0x7f00_0000, 1<<31-1
			r.ARM64.X[30] = c.ra
			if !c.known {
				r.ARM64.Known &^= 1 << 30
			}
			s, f := unwind.State{Regs: &r, Exact: c.exact}, unwind.Frame{}
			stop := New(&m).Step(&s, memory.New(), &unwind.Bounds{}, &f)
			if (stop == unwind.StopNone) != c.ok ||
				c.ok && (r.ARM64.PC != c.ra || r.ARM64.Sp != 0x7f00_0000 || f.Kind != unwind.KindStub) {
				t.Errorf("%v, %#x, %+v", stop, r.ARM64.PC, f)
			}
		})
	}
}

// A truncated or missing record, or one of an unknown version, ends a walk with a reason.
func TestHostileRecordsARM64(t *testing.T) {
	good := recordedARM64(t)[0]
	for _, c := range []struct {
		name  string
		xdata []byte
	}{
		{"not there", nil},
		{"cut", good.xdata[:len(good.xdata)-4]},
		{"another version", binary.LittleEndian.AppendUint32(nil,
			binary.LittleEndian.Uint32(good.xdata)|1<<18)},
		{"ones", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := armCode{code: good.code, xdata: c.xdata}
			_, err := armrun.Frames(a.code, armBase+armBegin, armCall,
				func(m *armrun.Machine, _ uint64) (armrun.Registers, error) {
					return a.step(m,
						true)
				})
			expect.True(t, err != nil, "it was undone")
		})
	}
}
