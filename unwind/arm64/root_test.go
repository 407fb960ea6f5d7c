package arm64

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// crtStart is _start of glibc 2.17's crt1.o and the code after it, as in the program of .NET 10.0.9 for
// linux-arm64. No call frame information covers it.
var crtStart = []uint32{
	0xd280001d, 0xd280001e, 0xaa0003e5, 0xf94003e1, 0x910023e2, 0x910003e6, 0xd503201f, 0x100103a0,
	0xb0003a63, 0x910d6063, 0xb0003a64, 0x910f6084,
	0x941d34a8, 0x941d34a3, // bl __libc_start_main, abort
	0x90003cc0, 0xf941a800, 0xb4000040, 0x141d34a7, 0xd65f03c0, 0, // call_weak_fn
	0xb0003e40, 0x911a2000, 0xb0003e41, 0x911a2021, // deregister_tm_clones
}

func TestRoot(t *testing.T) {
	const called = 0x34                               // behind the call of __libc_start_main
	const record, context0 = stackLow + 0x2000, 0x300 // a frame record; offset of a context's code
	// the code there, from setcontext.S: of Debian's libc.so.6 2.36, and of one built with BTI
	plain := []uint32{0xd503201f, 0xaa1303e0, 0xb5fff9c0, 0x17fff579}
	guarded := append([]uint32{0xd503245f}, plain[1:]...)
	for _, c := range []struct {
		name  string
		off   uint64 // of pc in the code
		fp    uint64
		words int      // of crtStart; nops follow
		begin []uint32 // of a context
		stop  unwind.Stop
	}{
		{"behind the call of main", called, 0, len(crtStart), nil, unwind.EndOfStack},
		{"behind the call of abort, which does not return", called + 4, 0,
			len(crtStart), nil, unwind.EndOfStack},
		{"a frame record leads on", called, record, len(crtStart), nil, unwind.NoInfo},
		{"another function behind a return", 0x58, 0, len(crtStart), nil, unwind.NoInfo},
		{"too far behind", 0x200, 0, 14, nil, unwind.NoInfo},
		{"a context begins", context0, record, 0, plain, unwind.EndOfStack},
		{"a context begins, its branches guarded", context0, record, 0, guarded, unwind.EndOfStack},
		{"without the first instruction", context0, record, 0, plain[1:], unwind.EndOfStack},
		{"another register is given", context0, record, 0,
			[]uint32{plain[0], 0xaa1403e0, plain[2], plain[3]}, unwind.NoInfo},
		{"another is asked", context0, record, 0,
			[]uint32{plain[0], plain[1], 0xb5fff9c1, plain[3]}, unwind.NoInfo},
		{"it calls instead", context0, record, 0,
			[]uint32{plain[0], plain[1], plain[2], 0x97fff579}, unwind.NoInfo},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := bytes.Repeat([]byte{0x1f, 0x20, 0x03, 0xd5}, 0x400) // nop
			for i, w := range crtStart[:c.words] {
				binary.LittleEndian.PutUint32(code[4*i:], w)
			}
			for i, w := range c.begin {
				binary.LittleEndian.PutUint32(code[context0+4*i:], w)
			}
			image := elfasm.Code(elfasm.ARM64, codeLo-textBias, code)
			const entry = 24 // e_entry
			binary.LittleEndian.PutUint64(image[entry:], codeLo-textBias)
			f := must.Get(elf.New(image, "program"))(t)
			none := elfasm.Frames{}
			rows := must.Get(cfi.Load(cfi.Sections{Arch: context.ArchARM64,
				EHFrame: none.Bytes(), EHFrameAddr: 0x100000}))(t)
			u := unwinder(module.NewTable(1,
				[]module.Module{{Start: textBias, End: textBias + 0x10000,
					Bias: textBias, CFI: rows, ELF: f}}, nil))
			r := context.FromARM64(start(codeLo+c.off, sp0))
			r.ARM64.X[regFP] = c.fp
			s, left := unwind.State{Regs: &r}, unwind.Frame{}
			expect.Equal(t, u.Step(&s, newStack().Window(), &unwind.Bounds{}, &left), c.stop)
		})
	}
}
