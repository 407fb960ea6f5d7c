package amd64

import (
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/memory"
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/unwind"
)

// bare is an image of code at 0x1000 and nothing else.
type bare struct{ code []byte }

func (b bare) Bytes(at uint64, n int) []byte {
	if at < 0x1000 || at-0x1000 >= uint64(len(b.code)) {
		return nil
	}
	return b.code[at-0x1000:][:min(n, len(b.code)-int(at-0x1000))]
}
func (bare) CFIBase() uint64       { return 0 }
func (bare) Starts(uint64) bool    { return false }
func (bare) Entry() (uint64, bool) { return 0, false }
func (bare) SystemV() bool         { return true }

// Where musl calls a thread's function the stack begins: the result is given to the
// function that ends the thread, and the image says which that is.
func TestLastCall(t *testing.T) {
	const bias, exit = 0x400000, 0x1800
	call := func(before ...byte) []byte {
		code := append([]byte{0xff, 0x13}, before...) // call [rbx]
		at := 0x1000 + len(code)
		code = binary.LittleEndian.AppendUint32(append(code, 0xe8), uint32(exit-at-5))
		return append(code, 0xb9, 1, 0, 0, 0)
	}
	for _, c := range []struct {
		name    string
		code    []byte
		endings [2]uint64
		exact   bool
		want    unwind.Stop
	}{
		{"of a thread", call(0x48, 0x89, 0xc7), [2]uint64{exit, 0}, false, unwind.EndOfStack},
		{"of a C11 thread", call(0x48, 0x63, 0xf8), [2]uint64{exit, 0}, false, unwind.EndOfStack},
		{"of a program", call(0x89, 0xc7), [2]uint64{0, exit}, false, unwind.EndOfStack},
		{"of something else", call(0x48, 0x89, 0xc7), [2]uint64{exit - 16, exit + 16}, false, unwind.NoInfo},
		{"of an image that does not say", call(0x48, 0x89, 0xc7), [2]uint64{}, false, unwind.NoInfo},
		{"with another argument", call(0x48, 0x89, 0xde), [2]uint64{exit, 0}, false, unwind.NoInfo},
		{"interrupted there", call(0x48, 0x89, 0xc7), [2]uint64{exit, 0}, true, unwind.NoInfo},
		{"cut off", call(0x48, 0x89, 0xc7)[:7], [2]uint64{exit, 0}, false, unwind.NoInfo},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := New()
			u.SetTable(module.NewTable(1, []module.Module{{ID: 1, Start: bias + 0x1000, End: bias + 0x2000, Bias: bias, Image: bare{c.code}, Endings: c.endings}}, nil))
			g := context.AMD64{RIP: bias + 0x1002, Known: 1 << context.RSP}
			g.GPR[context.RSP] = 0x7000
			regs := context.FromAMD64(g)
			s := unwind.State{Regs: &regs, Exact: c.exact}
			var f unwind.Frame
			if stop := u.Step(&s, memory.New(memory.Run{Addr: 0x7000, Data: make([]byte, 256)}), &unwind.Bounds{}, &f); stop != c.want {
				t.Errorf("%v, want %v", stop, c.want)
			}
		})
	}
}
