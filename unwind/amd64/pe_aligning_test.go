package amd64

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// TestPEAligningCall: the frame of a call that aligns the stack in a prolog is left like the
// function at the call's target.
func TestPEAligningCall(t *testing.T) {
	const (
		call   = peFn - 0x20 // the aligning one
		branch = 11          // offset of the branch in the function
		ra     = 0x1_2345_6789
	)
	begin := []byte{0x48, 0x8b, 0xd4, 0x51,
		0x48, 0xf7, 0xc4, 15, 0, 0, 0} // mov rdx, rsp; push rcx; test rsp, 15
	sub := []byte{0x48, 0x81, 0xec, 0x20, 5, 0, 0} // sub rsp, 520h
	short := func(op byte, n int) []byte { return []byte{op, byte(call - (peFn + n + 2))} }
	long := func(op byte, n int) []byte {
		return binary.LittleEndian.AppendUint32([]byte{0x0f, op}, uint32(call-(peFn+n+6)+1<<32))
	}
	cat := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	jne, jneNear := short(0x75, branch), long(0x85, branch)
	for _, c := range []struct {
		name  string
		code  []byte
		op    byte // of the call
		to    int  // where it leads in the function
		exact bool
		sp    uint64 // of the caller, from RSP; 0: NoInfo
	}{
		{"before the room is made", cat(begin, jne, sub), 0xe8, branch + 2, false, 8},
		{"a branch of six bytes", cat(begin, jneNear, sub), 0xe8, branch + 6, false, 8},
		{"behind the room", cat(sub, begin, short(0x74, 18)), 0xe8, 20, false, 0x528},
		{"interrupted there", cat(begin, jne, sub), 0xe8, branch + 2, true, 0},
		{"a jump", cat(begin, jne, sub), 0xe9, branch + 2, false, 0},
		{"no branch", cat(begin, []byte{0x90, 0x90}, sub), 0xe8, branch + 2, false, 0},
		{"a branch elsewhere", cat(begin, []byte{0x75, 7}, sub), 0xe8, branch + 2, false, 0},
		{"no conditional branch", cat(begin, short(0xeb, branch), sub), 0xe8, branch + 2, false, 0},
		{"no conditional branch of six bytes",
			cat(begin, long(0x95, branch), sub), 0xe8, branch + 6, false, 0},
		{"a branch of six bytes elsewhere",
			cat(begin, []byte{0x0f, 0x85, 7, 0, 0, 0}, sub), 0xe8, branch + 6, false, 0},
		{"of the whole function", cat(begin, jne, sub), 0xe8, 0, false, 0},
		{"of nothing that is covered", nil, 0xe8, peLen, false, 0},
		{"of code before it", nil, 0xe8, -8, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			codes := []byte{24, 1, 0xa4, 0} // allocated: 520h
			if c.sp > 8 {
				codes[0] = 7
			}
			at := binary.LittleEndian.AppendUint32([]byte{c.op}, uint32(peFn+c.to-(call+5)+1<<32))
			before := cat(short(0x75, -10),
				bytes.Repeat([]byte{0x90}, 6), short(0x75, -2)) // branches before the function, too
			im := peImage(info(1, 0, 24, 0, codes...), c.code, pe.Block{RVA: call, Data: append(at, 0xcc)},
				pe.Block{RVA: peFn - 10, Data: before})
			data := make([]byte, 0x1000)
			binary.LittleEndian.PutUint64(data[max(c.sp, 8)-8:], ra)
			u, regs, f := peUnwinder(im), peRegs(call+5), unwind.Frame{}
			exact, stop := stepOf(u, &regs, c.exact, memory.New(memory.Run{Addr: peRSP, Data: data}), nil, &f)
			switch {
			case c.sp == 0 && stop != unwind.NoInfo:
				t.Errorf("%v at %#x", stop, regs.RIP)
			case c.sp != 0 && (stop != 0 || exact || regs.RIP != ra || regs.SP() != peRSP+c.sp ||
				u.trust != unwind.TrustUnwindInfo || regs.Known != windowsKept):
				t.Errorf("%v at %#x, sp +%#x by %v, known %#x", stop, regs.RIP,
					regs.SP()-peRSP, u.trust, regs.Known)
			}
		})
	}
}

// TestPEInterruptedByReturnHook: the caller of the CLR's throw helper of .NET Core 2 is an
// interrupted frame. The walker may find it from the helper's own frame, or from the frame of
// the helper's aligning call.
func TestPEInterruptedByReturnHook(t *testing.T) {
	const (
		call = peFn - 0x20
		ra   = 0x1_2345_6789
	)
	code := []byte{
		0x48, 0x8b, 0xd4, 0x51, 0x48, 0xf7, 0xc4, 15, 0, 0, 0, // mov rdx, rsp; push rcx; test rsp, 15
		0x75, 0xd3, 0x48, 0x81, 0xec, 0x20, 5, 0, 0, // jne; sub rsp, 520h
		0xe8, 0, 0, 0, 0, 0xcc,
	}
	align := append([]byte{0xe8}, binary.LittleEndian.AppendUint32(nil, peFn+13-(call+5))...)
	im := peImage(info(1, 0, 20, 0, 20, 1, 0xa4, 0), code, pe.Block{RVA: call, Data: append(align, 0xcc)})
	helper := []unwind.ReturnHook{{Arch: testHooks[0].Arch, PE: true, Code: code[:11], Interrupted: true}}
	for _, c := range []struct {
		name  string
		at    uint32
		sp    uint64 // of the caller, from RSP
		hooks []unwind.ReturnHook
		want  bool
	}{
		{"its frame", peFn + 25, 0x528, helper, true},
		{"its frame, not known", peFn + 25, 0x528, nil, false},
		{"its call's frame", call + 5, 8, helper, true},
		{"its call's frame, not known", call + 5, 8, testHooks, false},
	} {
		data := make([]byte, 0x1000)
		binary.LittleEndian.PutUint64(data[c.sp-8:], ra)
		mem := memory.New(memory.Run{Addr: peRSP, Data: data})
		u := peUnwinder(im)
		u.SetReturnHooks(c.hooks)
		for _, kept := range []string{"first", "again"} {
			regs, f := peRegs(c.at), unwind.Frame{}
			exact, stop := stepOf(u, &regs, false, mem, nil, &f)
			expect.True(t, stop == 0 && exact == c.want && regs.RIP == ra && regs.SP() == peRSP+c.sp &&
				u.trust == unwind.TrustUnwindInfo,
				"%s, %s: %v, exact %v at %#x, sp +%#x by %v", c.name, kept, stop, exact, regs.RIP,
				regs.SP()-peRSP, u.trust)
		}
		s := unwind.State{Regs: &context.Registers{Arch: context.ArchAMD64, AMD64: peRegs(c.at)}}
		_, ok := u.HookReturn(&s, mem)
		expect.True(t, !ok, "%s: somebody has replaced its return address", c.name)
	}
}
