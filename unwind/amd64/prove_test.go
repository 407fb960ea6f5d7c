package amd64

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// chkstk is gcc's ___chkstk_ms, which has no unwind data and pushes.
var chkstk = []byte{
	0x51, 0x50, // push rcx, rax
	0x48, 0x3d, 0, 0x10, 0, 0, // cmp rax, 1000h
	0x48, 0x8d, 0x4c, 0x24, 0x18, // lea rcx, [rsp+24]
	0x72, 0x19, // jb
	0x48, 0x81, 0xe9, 0, 0x10, 0, 0, // sub rcx, 1000h
	0x48, 0x83, 0x09, 0, // or [rcx], 0
	0x48, 0x2d, 0, 0x10, 0, 0, // sub rax, 1000h
	0x48, 0x3d, 0, 0x10, 0, 0, // cmp rax, 1000h
	0x77, 0xe7, // ja
	0x48, 0x29, 0xc1, // sub rcx, rax
	0x48, 0x83, 0x09, 0, // or [rcx], 0
	0x58, 0x59, 0xc3, // pop rax, rcx; ret
}

// thunkOfClang is clang's __llvm_retpoline_r11: call 1f; 0: pause; lfence; jmp 0b; nop; 1: mov [rsp], r11;
// ret; nop.
var thunkOfClang = []byte{0xe8, 11, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9, 0x0f, 0x1f, 0x40, 0,
	0x4c, 0x89, 0x1c, 0x24, 0xc3, 0x90}

// TestPESilent: code that the exception directory does not cover is left by its
// instructions. The made function makes one call, so that only peFn+16 is a return
// address.
func TestPESilent(t *testing.T) {
	const call = peBase + peFn + 16
	// As many jumps to a return as can be pending, and one to a push: the last way disagrees.
	var branchy []byte
	for i := range maxPaths + 1 {
		branchy = append(branchy, 0x74, byte(2*(maxPaths-i)+1+i/maxPaths))
	}
	branchy = append(branchy, 0xc3, 0xc3, 0x50, 0xc3)
	// jz over a return to more instructions than are followed
	endless := append([]byte{0x74, 1, 0xc3}, append(bytes.Repeat([]byte{0x90}, maxProof), 0xc3)...)
	for _, c := range []struct {
		name  string
		code  []byte
		at    uint32 // of ip in the code
		rbp   uint64 // how far above RSP
		words []uint64
		exact bool
		stop  unwind.Stop
		sp    uint64 // of the caller, from RSP
		trust unwind.Trust
	}{
		{"a leaf", []byte{0x31, 0xc0, 0xc3}, 0, 0, []uint64{call}, true, 0, 8, unwind.TrustLeaf},
		{"a leaf with branches", []byte{0x85, 0xc0, 0x74, 1, 0xc3, 0xff, 0xc0, 0xc3}, 0, 0, []uint64{call},
			true, 0, 8, unwind.TrustLeaf},
		{"more branches than are followed", branchy, 0, 0, []uint64{call}, true, 0, 8, unwind.TrustCode},
		{"a return to below the frame", []byte{0x48, 0x83, 0xec, 0x18, 0xc3}, 0, 0, []uint64{call},
			true, 0, 8, unwind.TrustCode},
		{"no code, and no return address", nil, 0, 0, []uint64{7}, true, unwind.NoInfo, 0, 0},
		{"one way is too long", endless, 0, 0, []uint64{call}, true, 0, 8, unwind.TrustCode},
		{"a linkage stub", []byte{0xff, 0x25, 0, 0, 0, 0}, 0, 0, []uint64{call},
			true, 0, 8, unwind.TrustLeaf},
		{"a switch", []byte{0x48, 0x63, 0x04, 0x81, 0x48, 0x01, 0xc8, 0xff, 0xe0}, 0, 0, []uint64{call},
			true, 0, 8, unwind.TrustCode},
		{"a system call's stub",
			[]byte{0x4c, 0x8b, 0xd1, 0xb8, 1, 0, 0, 0, 0x0f, 0x05, 0xc3, 0xcd, 0x2e, 0xc3}, 10, 0,
			[]uint64{call}, true, 0, 8, unwind.TrustLeaf},
		{"before a stub's call", []byte{0xff, 0x14, 0x25, 0, 0x10, 0xfe, 0x7f, 0xc3}, 0, 0, []uint64{call},
			true, 0, 8, unwind.TrustLeaf},
		{"before a stub's call, no return address", []byte{0xff, 0x14, 0x25, 0, 0x10, 0xfe, 0x7f, 0xc3}, 0, 0,
			[]uint64{call + 1}, true, unwind.NoInfo, 0, 0},
		{"under an asynchronous call", []byte{0xff, 0x14, 0x25, 0, 0x10, 0xfe, 0x7f, 0xc3}, 7, 0,
			[]uint64{call}, false, 0, 8, unwind.TrustCode},
		{"under a call, no return address", []byte{0xff, 0x14, 0x25, 0, 0x10, 0xfe, 0x7f, 0xc3}, 7, 0,
			[]uint64{7}, false, unwind.NoInfo, 0, 0},
		{"chkstk, at its beginning", chkstk, 0, 0, []uint64{call}, true, 0, 8, unwind.TrustLeaf},
		{"chkstk, one push", chkstk, 1, 0, []uint64{1, call}, true, 0, 16, unwind.TrustLeaf},
		{"chkstk, in its loop", chkstk, 22, 0, []uint64{1, 2, call}, true, 0, 24, unwind.TrustLeaf},
		{"chkstk, one pop", chkstk, uint32(len(chkstk)) - 2, 0, []uint64{1, call},
			true, 0, 16, unwind.TrustLeaf},
		{"chkstk, no return address there", chkstk, 22, 0, []uint64{1, call, 3}, true, unwind.NoInfo, 0, 0},
		{"ways out that disagree", []byte{0x74, 2, 0x58, 0xc3, 0xc3}, 0, 0,
			[]uint64{7, call}, true, unwind.NoInfo, 0, 0},
		{"ways out that disagree, a leaf after all", []byte{0x74, 2, 0x58, 0xc3, 0xc3}, 0, 0,
			[]uint64{call, call}, true, 0, 8, unwind.TrustCode},
		{"bytes that are no code", []byte{0x06}, 0, 0, []uint64{call}, true, 0, 8, unwind.TrustCode},
		{"a jump by a return", []byte{0x4c, 0x89, 0x1c, 0x24, 0xc3}, 0, 0, []uint64{call},
			true, 0, 8, unwind.TrustCode},
		{"a jump by a return, the address is no register's", []byte{0x48, 0xc7, 4, 0x24, 1, 0, 0, 0, 0xc3}, 0,
			0, []uint64{call}, true, 0, 8, unwind.TrustCode},
		{"a store above the return address", []byte{0x4c, 0x89, 0x5c, 0x24, 8, 0xc3}, 0, 0, []uint64{call},
			true, 0, 8, unwind.TrustLeaf},
		{"a return by a jump", []byte{0x59, 0x0f, 0xae, 0xe8, 0xff, 0xe1}, 0, 0, []uint64{call, 1, call},
			true, 0, 8, unwind.TrustCode},
		{"the body of a thunk", thunkOfClang, 16, 0, []uint64{7, call}, true, 0, 16, unwind.TrustCFI},
		{"the return of a thunk", thunkOfClang, 20, 0, []uint64{7, call}, true, 0, 16, unwind.TrustCFI},
		{"a frame that is left by rbp", []byte{0xc9, 0xc3}, 0, 16, []uint64{1, 2, 3, call},
			true, 0, 32, unwind.TrustLeaf},
	} {
		t.Run(c.name, func(t *testing.T) {
			fn := append(bytes.Repeat([]byte{0x90}, 11), 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0xc3)
			im := peImage(info(1, 0, 0, 0), fn, pe.Block{RVA: peLeaf - 0x800, Data: c.code})
			data := make([]byte, 256)
			for i, w := range c.words {
				binary.LittleEndian.PutUint64(data[8*i:], w)
			}
			mem := memory.New(memory.Run{Addr: peRSP, Data: data})
			for _, cached := range []bool{true, false} {
				u := peUnwinder(im)
				u.DisableCache(!cached)
				regs := peRegs(peLeaf - 0x800 + c.at)
				regs.GPR[context.RBP] = peRSP + c.rbp
				var f unwind.Frame
				_, stop := stepOf(u, &regs, c.exact, mem, nil, &f)
				must.True(t, stop == c.stop, "cached %v: %v, want %v", cached, stop, c.stop)
				if c.stop == 0 && (regs.RIP != call || regs.SP() != peRSP+c.sp || u.trust != c.trust) {
					t.Errorf("cached %v: %#x, sp +%d by %v", cached, regs.RIP, regs.SP()-peRSP, u.trust)
				}
			}
		})
	}
}

// systemCall is the stub of a system call in Wine's ntdll.dll. Windows' stubs have
// int 2eh instead of the call.
var systemCall = []byte{
	0x4c, 0x8b, 0xd1, 0xb8, 0x34, 0, 0, 0, // mov r10, rcx; mov eax, number
	0xf6, 0x04, 0x25, 0x08, 0x03, 0xfe, 0x7f, 1, // test byte [7ffe0308h], 1
	0x75, 3, 0x0f, 0x05, 0xc3, // jne; syscall; ret
	0xeb, 1, 0xc3, 0xff, 0x14, 0x25, 0, 0x10, 0xfe, 0x7f, 0xc3, // call [7ffe1000h]; ret
}

// TestPEAsynchronousCall: an asynchronous procedure runs on top of the system call in
// which its thread waited. Without a machine frame, its dispatcher's frame has the address
// after the system call in the return address's place. The stub counts as interrupted, and
// the step out of it is as certain as if the stub were on top.
func TestPEAsynchronousCall(t *testing.T) {
	const call = peBase + peFn + 16
	interrupt := append(systemCall[:18:18], 0x0f, 0x05, 0xc3, 0xcd, 0x2e, 0xc3)
	other := bytes.Clone(systemCall)
	other[2] = 0xd2
	jump := bytes.Clone(systemCall)
	jump[25] = 0x24
	for _, c := range []struct {
		name  string
		code  []byte
		at    uint32
		ra    uint64
		stop  unwind.Stop
		trust unwind.Trust
		exact bool // the frame left was interrupted
	}{
		{"behind syscall", systemCall, 20, call, 0, unwind.TrustLeaf, true},
		{"behind Wine's call", systemCall, 31, call, 0, unwind.TrustLeaf, true},
		{"behind int 2e", interrupt, 23, call, 0, unwind.TrustLeaf, true},
		{"no return address", systemCall, 20, call + 1, unwind.NoInfo, 0, false},
		{"not behind a system call", systemCall, 23, call, 0, unwind.TrustCode, false},
		{"behind a jump to where Wine calls", jump, 31, call, 0, unwind.TrustCode, false},
		{"no stub's beginning", other, 20, call, 0, unwind.TrustCode, false},
		{"no beginning at all", systemCall[18:], 2, call, 0, unwind.TrustCode, false},
		{"another instruction behind", append(systemCall[:20:20], 0x90, 0xc3), 20,
			call, 0, unwind.TrustCode, false},
		{"cut off", systemCall[:20:20], 20, call, unwind.NoInfo, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fn := append(bytes.Repeat([]byte{0x90}, 11), 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0xc3)
			im := peImage(info(1, 0, 0, 0), fn, pe.Block{RVA: peLeaf - 0x800, Data: c.code})
			data := make([]byte, 256)
			binary.LittleEndian.PutUint64(data, c.ra)
			mem := memory.New(memory.Run{Addr: peRSP, Data: data})
			u, regs, f := peUnwinder(im), peRegs(peLeaf-0x800+c.at), unwind.Frame{}
			was := regs
			exact, stop := stepOf(u, &regs, false, mem, nil, &f)
			must.True(t, stop == c.stop && !exact && f.Exact == c.exact,
				"%v, caller exact %v, frame exact %v; want %v", stop, exact, f.Exact, c.stop)
			if stop == 0 && (regs.RIP != call || regs.SP() != peRSP+8 || u.trust != c.trust ||
				regs.Known != windowsKept || regs.XMM != was.XMM) {
				t.Errorf("%#x, sp +%d by %v, known %#x", regs.RIP, regs.SP()-peRSP, u.trust, regs.Known)
			}
		})
	}
}

// TestPEStubOfTwoSections: a stub does not begin in one section and end in another.
func TestPEStubOfTwoSections(t *testing.T) {
	const call, ret = peBase + peFn + 16, peLeaf - 0x800
	fn := append(bytes.Repeat([]byte{0x90}, 11), 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0xc3)
	im := peImage(info(1, 0, 0, 0), fn, pe.Block{RVA: ret - 20, Data: systemCall[:8]},
		pe.Block{RVA: ret, Data: []byte{0xc3}})
	mem := memory.New(memory.Run{Addr: peRSP, Data: binary.LittleEndian.AppendUint64(nil, call)})
	u, regs, f := peUnwinder(im), peRegs(ret), unwind.Frame{}
	_, stop := stepOf(u, &regs, false, mem, nil, &f)
	expect.True(t, stop == 0 && regs.RIP == call && u.trust == unwind.TrustCode && !f.Exact,
		"%v at %#x by %v, exact %v", stop, regs.RIP, u.trust, f.Exact)
}

// TestStraightLeaf: what the short look at a leaf accepts, following its code proves.
func TestStraightLeaf(t *testing.T) {
	for _, c := range []struct {
		name string
		code []byte
		want bool
	}{
		{"ret", []byte{0xc3}, true},
		{"moves and sums", []byte{0x48, 0x8b, 0x44, 0x24, 8, 0x48, 0x03, 0xc1, 0x0f, 0xb6, 0xc0, 0xc3}, true},
		{"endbr64", []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xc3}, true},
		{"push", []byte{0x53, 0x5b, 0xc3}, false},
		{"sub rsp", []byte{0x48, 0x83, 0xec, 8, 0xc3}, false},
		{"xchg rax, rsp", []byte{0x48, 0x94, 0xc3}, false},
		{"mov rsp, r11", []byte{0x49, 0x8b, 0xe3, 0xc3}, false},
		{"movd esp, xmm0", []byte{0x66, 0x0f, 0x7e, 0xc4, 0xc3}, false},
		{"a branch", []byte{0x74, 1, 0xc3, 0xc3}, false},
		{"a call", []byte{0xff, 0xd0, 0xc3}, false},
		{"xbegin", []byte{0xc7, 0xf8, 0, 0, 0, 0, 0xc3}, false},
		{"no return", []byte{0x90, 0x90}, false},
		{"no instruction", []byte{0x06, 0xc3}, false},
	} {
		expect.Equal(t, straightLeaf(c.code), c.want, c.name)
	}
	rnd, leaves := rand.New(rand.NewPCG(1, 2)), 0
	for range 20000 {
		code := make([]byte, 1+rnd.IntN(12))
		for i := range code {
			code[i] = byte(rnd.Uint32())
		}
		if code = append(code, 0xc3); !straightLeaf(code) {
			continue
		}
		leaves++
		u := peUnwinder(peImage(info(1, 0, 0, 0), nil, pe.Block{RVA: peLeaf - 0x800, Data: code}))
		expect.Equal(t, u.proves(u.Table().At(0), peBase+peLeaf-0x800, &symbols, nil), leafProven,
			"% x", code)
	}
	expect.True(t, leaves >= 100, "only %d random leaves", leaves)
}

// TestSkipPlain: instructions are skipped unless they may change the stack pointer.
func TestSkipPlain(t *testing.T) {
	for _, c := range []struct {
		code  []byte
		plain bool
	}{
		{[]byte{0x66, 0x0f, 0x38, 0x00, 0xc1, 0xc3}, true},        // pshufb xmm0, xmm1
		{[]byte{0x66, 0x0f, 0x3a, 0x14, 0xc0, 1, 0xc3}, true},     // pextrb eax, xmm0, 1
		{[]byte{0x66, 0x0f, 0x3a, 0x16, 0xc4, 1, 0xc3}, false},    // pextrd esp, xmm0, 1
		{[]byte{0x48, 0x0f, 0x38, 0xf0, 0x20, 0xc3}, false},       // movbe rsp, [rax]
		{[]byte{0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xe0, 0xc3}, false}, // crc32 rsp, rax
	} {
		if rest := skipPlain(c.code); (len(rest) == 1) != c.plain || !c.plain && len(rest) != len(c.code) {
			t.Errorf("% x: % x is left", c.code, rest)
		}
	}
}
