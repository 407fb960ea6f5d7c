package amd64

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
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

// The stack begins where musl calls a thread's function: its result is passed to the
// function that ends the thread, whose address is known from the image. It also begins where that function
// is called.
func TestLastCall(t *testing.T) {
	const bias, exit = 0x400000, 0x1800
	afterEnd := []byte{0xb9, 1, 0, 0, 0} // mov ecx, 1
	call := func(before ...byte) []byte {
		code := append([]byte{0xff, 0x13}, before...) // call [rbx]
		at := 0x1000 + len(code)
		code = binary.LittleEndian.AppendUint32(append(code, 0xe8), uint32(exit-at-5))
		return append(code, afterEnd...)
	}
	toFirst := call(0x48, 0x89, 0xc7)
	binary.LittleEndian.PutUint32(toFirst[6:], 1<<32-0x100a)
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
		{"of an image that does not say, to its first byte", toFirst, [2]uint64{}, false, unwind.NoInfo},
		{"with another argument", call(0x48, 0x89, 0xde), [2]uint64{exit, 0}, false, unwind.NoInfo},
		{"interrupted there", call(0x48, 0x89, 0xc7), [2]uint64{exit, 0}, true, unwind.NoInfo},
		{"cut off", call(0x48, 0x89, 0xc7)[:7], [2]uint64{exit, 0}, false, unwind.NoInfo},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := New()
			u.SetTable(module.NewTable(1,
				[]module.Module{{ID: 1, Start: bias + 0x1000, End: bias + 0x2000, Bias: bias,
					Image: bare{c.code}, Endings: c.endings}}, nil))
			after := uint64(len(c.code) - len(afterEnd)) // the call that ends the thread, in whole code
			for _, off := range []uint64{2, after} {
				g := context.AMD64{RIP: bias + 0x1000 + off, Known: 1 << context.RSP}
				g.GPR[context.RSP] = 0x7000
				regs := context.FromAMD64(g)
				s := unwind.State{Regs: &regs, Exact: c.exact}
				var f unwind.Frame
				stop := u.Step(&s, memory.New(memory.Run{Addr: 0x7000, Data: make([]byte, 256)}),
					&unwind.Bounds{}, &f)
				expect.True(t, stop == c.want, "at %#x: %v, want %v", off, stop, c.want)
			}
		})
	}
}

// ldStart is _start of ld.so in Debian's glibc 2.36, with the beginning of the next
// function: no unwind data marks it as a first function.
var ldStart = []byte{
	0x48, 0x89, 0xe7, // mov rdi, rsp
	0xe8, 0xf8, 0x0b, 0, 0, // call _dl_start
	0x49, 0x89, 0xc4, 0x48, 0x8b, 0x14, 0x24, 0x48, 0x89, 0xd6, 0x49, 0x89, 0xe5, // mov r12, rax; ...
	0x48, 0x83, 0xe4, 0xf0, // and rsp, -16
	0x48, 0x8b, 0x3d, 0x90, 0x84, 0x01, 0, 0x49, 0x8d, 0x4c, 0xd5, 0x10, 0x49, 0x8d, 0x55, 0x08, 0x31, 0xed,
	0xe8, 0xf0, 0x9e, 0xfe, 0xff, // call _dl_init
	0x48, 0x8d, 0x15, 0x29, 0x9b, 0xfe, 0xff, 0x4c, 0x89, 0xec, // lea rdx, ...; mov rsp, r13
	0x41, 0xff, 0xe4, // jmp r12
	0x0f, 0x1f, 0, // nop
	0x53, 0x48, 0x89, 0xfb, 0xe8, 0, 0, 0, 0, // push rbx; mov rbx, rdi; call
}

// Where the kernel enters a program and where makecontext enters a function the stack
// ends: at each instruction of ld.so's _start and at the first of __start_context.
func TestRoot(t *testing.T) {
	context0 := []byte{0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85,
		0xff, 0x74, 0x05, 0xe8, 0, 0, 0, 0}
	with := func(at int, b byte) []byte {
		code := bytes.Clone(context0)
		code[at] = b
		return code
	}
	padded := append(ldStart[:0x30:0x30], 0x90, 0x90, 0x53, 0xe8, 0, 0, 0, 0)
	for _, c := range []struct {
		name  string
		code  []byte
		entry uint64 // of the image, from the beginning of the code
		off   uint64
		exact bool
		stop  unwind.Stop
	}{
		{"at the first instruction", ldStart, 0, 0, true, unwind.EndOfStack},
		{"in _dl_start", ldStart, 0, 8, false, unwind.EndOfStack},
		{"between the calls", ldStart, 0, 0x15, true, unwind.EndOfStack},
		{"in a constructor, under _dl_init", ldStart, 0, 0x30, false, unwind.EndOfStack},
		{"at the jump to the program", ldStart, 0, 0x3a, true, unwind.EndOfStack},
		{"amid an instruction", ldStart, 0, 0x31, true, unwind.NoInfo},
		{"another function behind it", ldStart, 0, 0x49, false, unwind.NoInfo},
		{"another function behind padding", padded, 0, 0x38, false, unwind.NoInfo},
		{"behind padding that follows no call", []byte{0xe8, 0, 0, 0, 0, 0x31, 0xed, 0x90, 0xf4}, 0, 8, true,
			unwind.EndOfStack},
		{"of an image that is entered elsewhere", ldStart, 0x900, 0x30, false, unwind.NoInfo},
		{"a context begins", context0, 0x900, 0, false, unwind.EndOfStack},
		{"a context begins, interrupted", context0, 0x900, 0, true, unwind.EndOfStack},
		{"behind its first instruction", context0, 0x900, 3, true, unwind.NoInfo},
		{"from another register", with(1, 0x8c), 0x900, 0, false, unwind.NoInfo},
		{"another is tested", with(9, 0xf6), 0x900, 0, false, unwind.NoInfo},
		{"cut off", context0[:9], 0x900, 0, false, unwind.NoInfo},
	} {
		t.Run(c.name, func(t *testing.T) {
			image := elfasm.Code(elfasm.AMD64, codeLo-textBias, append(bytes.Clone(c.code), 0xcc))
			binary.LittleEndian.PutUint64(image[24:], codeLo-textBias+c.entry) // e_entry
			f := must.Get(elf.New(image, "code"))(t)
			u := unwinder(module.NewTable(1,
				[]module.Module{{Start: textBias, End: textBias + 0x2000, Bias: textBias, ELF: f}}, nil))
			r, left := start(codeLo+c.off, sp0), unwind.Frame{}
			before := r
			_, stop := stepOf(u, &r, c.exact, newStack().Window(), nil, &left)
			expect.True(t, stop == c.stop && r == before,
				"%v, want %v; registers changed: %v", stop, c.stop, r != before)
		})
	}
}
