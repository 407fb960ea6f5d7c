package amd64

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// TestStepByFollowing leaves functions that have called and have neither unwind data nor
// a frame pointer, if such steps are allowed: over all branches to their returns, or from
// their beginning where there is none. It is a guess unless both agree.
func TestStepByFollowing(t *testing.T) {
	ways := []byte{
		0xf2, 0x0f, 0x58, 0xc1, // addsd xmm0, xmm1
		0x85, 0xc0, 0x74, 6, // test eax, eax; jz
		0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3, // add rsp, 16; pop rbx; ret
		0x31, 0xc0, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3, // xor eax, eax; the same
	}
	disagree := bytes.Clone(ways)
	disagree[11] = 0x20
	below := append(bytes.Clone(ways[:14]), 0x48, 0x83, 0xec, 0x18, 0xc3) // its second way: sub rsp, 24; ret
	// lea rax, [rip+3]; jmp rax; int3
	moves := append([]byte{0x48, 0x8d, 0x05, 3, 0, 0, 0, 0xff, 0xe0, 0xcc}, ways...)
	// add rsp, 0x20 with six bytes in the first window of code; sub rsp, 0x20
	window := slices.Concat(bytes.Repeat([]byte{0x90}, codeWindow-6),
		[]byte{0x48, 0x81, 0xc4, 0x20, 0, 0, 0, 0x48, 0x83, 0xec, 0x20}, ways)
	compared := append([]byte{0x48, 0x39, 0xdc}, disagree...) // cmp rsp, rbx
	loop := []byte{
		0x53, 0x48, 0x83, 0xec, 0x10, // push rbx; sub rsp, 16
		0xe8, 0, 1, 0, 0, 0xeb, 0xf9, // call; jmp
	}
	returns := append([]byte{0x53, 0x48, 0x83, 0xec,
		0x10, 0xe8, 0, 1, 0, 0}, ways...) // push rbx; sub rsp, 16; call
	follow, guess := unwind.Bounds{Follow: true}, unwind.Bounds{Guess: true}
	for _, c := range []struct {
		name   string
		code   []byte
		off    uint64
		sp     uint64 // of the frame, from sp0
		b      unwind.Bounds
		caller uint64 // the return address
		stop   unwind.Stop
		trust  unwind.Trust
	}{
		{"two ways out", ways, 0, 0, follow, codeCall, unwind.StopNone, unwind.TrustCode},
		{"two ways out, any guess allowed", ways, 0, 0, guess, codeCall, unwind.StopNone, unwind.TrustCode},
		{"two ways out, no guess allowed", ways, 0, 0, unwind.Bounds{}, codeCall,
			unwind.NoInfo, unwind.TrustNone},
		{"no call before the return address", ways, 0, 0, follow, codeCall + 1,
			unwind.NoInfo, unwind.TrustNone},
		{"a caller whose stack is not aligned", ways, 0, 8, follow, codeCall,
			unwind.NoInfo, unwind.TrustNone},
		{"a caller whose stack is not aligned, by two ways", returns, 10, 8, follow, codeCall,
			unwind.StopNone, unwind.TrustLeaf},
		{"a jump to an address that the code computes", moves, 0, 0, follow, codeCall,
			unwind.StopNone, unwind.TrustCode},
		{"an instruction at the end of the window", window, 0, 0, follow, codeCall,
			unwind.StopNone, unwind.TrustCode},
		{"a comparison before another", compared, 0, 0, follow, codeCall, unwind.NoInfo, unwind.TrustNone},
		{"ways that disagree", disagree, 0, 0, follow, codeCall, unwind.NoInfo, unwind.TrustNone},
		{"a way to what lies below the frame", below, 0, 0, follow, codeCall,
			unwind.StopNone, unwind.TrustCode},
		{"no way out", loop, 10, 0, follow, codeCall, unwind.StopNone, unwind.TrustCode},
		{"no way out, not called from there", loop, 10, 0, follow, codeCall + 0x20,
			unwind.NoInfo, unwind.TrustNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := codeTable(t, c.code)
			// The call before codeCall is of the function's first byte.
			text := table.At(0).Bytes(codeCall-5, 5)
			to := int64(codeLo) - codeCall
			binary.LittleEndian.PutUint32(text[1:], uint32(int32(to)))
			u, s, r := unwinder(table), newStack(), start(codeLo+c.off, sp0+c.sp)
			s.Set(sp0+c.sp+0x18, c.caller)
			s.Set(sp0+c.sp+0x28, codeCall)
			s.Set(sp0+c.sp-0x18, codeCall)
			at := stateOf(&r, false)
			var f unwind.Frame
			stop := u.Step(&at, s.Window(), &c.b, &f)
			got := at.Regs.AMD64
			if stop != c.stop || stop != unwind.StopNone && got != r {
				t.Fatalf("%v, want %v", stop, c.stop)
			}
			if stop == unwind.StopNone &&
				(got.RIP != codeCall || got.SP() != sp0+c.sp+0x20 ||
					got.GPR[context.RBX] != s.Word(sp0+c.sp+0x10) || at.Trust != c.trust) {
				t.Errorf("%#x/%#x, rbx %#x by %v", got.RIP, got.SP(), got.GPR[context.RBX], at.Trust)
			}
		})
	}
}

// TestStepFromBeginning: a function that never returns is run from its beginning. The run must end
// with the frame's frame pointer. It restores the registers that the function saved or did not touch.
func TestStepFromBeginning(t *testing.T) {
	framed := []byte{0x55, 0x48, 0x89, 0xe5} // push rbp; mov rbp, rsp
	fixed, variable := []byte{0x48, 0x83, 0xec, 0x18}, []byte{0x48, 0x29, 0xc4}
	body := []byte{0x53, 0x45, 0x31, 0xe4, 0xe8, 0, 1, 0, 0, 0xeb, 0xf9} // push rbx; zero r12; call; jmp
	for name, c := range map[string]struct {
		code   []byte
		called bool   // a call before the return address names the function
		fp     uint64 // of the frame, from sp0; 0: unknown
		ok     bool
	}{
		"an unknown frame pointer":         {slices.Concat(framed, fixed, body), true, 0, true},
		"a return address below the frame": {slices.Concat([]byte{0x5b}, body[1:]), false, 0x20, false},
		"the frame's":                      {slices.Concat(framed, fixed, body), true, 0x20, true},
		"a register that is stored twice": {slices.Concat(framed, fixed, body[:1],
			[]byte{0x48, 0x89, 0x5c, 0x24, 8}, body[1:]), true, 0x20, true}, // mov [rsp+8], rbx
		"another frame pointer":         {slices.Concat(framed, fixed, body), true, 0x30, false},
		"an unknown stack pointer":      {slices.Concat(framed, variable, body), true, 0x20, true},
		"an unknown one, another frame": {slices.Concat(framed, variable, body), true, 0x30, false},
		"another stack pointer": {slices.Concat(framed, fixed, []byte{0x50}, body), true,
			0x20, false},
		"a beginning that no call names": {slices.Concat(framed, fixed, body), false, 0x20, true},
		"another beginning, a word lower": {slices.Concat([]byte{0x55}, framed, fixed, body), true,
			0x20, false},
		"no call names an unaligned frame": {slices.Concat(framed, fixed, []byte{0x50}, body), false,
			0x20, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := map[bool]byte{false: 0xcc, true: 1}[c.called] // behind a 1 no function begins
			code := append(bytes.Repeat([]byte{before}, 16), c.code...)
			table := codeTable(t, code)
			if c.called {
				binary.LittleEndian.PutUint32(table.At(0).Bytes(codeCall-4, 4),
					uint32(0x100000000+codeLo+16-codeCall))
			}
			u, s, r := unwinder(table), newStack(), start(codeLo+uint64(len(code))-2, sp0)
			r.GPR[context.RBP] = sp0 + c.fp
			if c.fp == 0 {
				r.Known &^= 1 << context.RBP
			}
			s.Set(sp0+0x28, codeCall)
			s.Set(sp0-8, codeCall)
			at, b := stateOf(&r, false), unwind.Bounds{Follow: true}
			var f unwind.Frame
			stop := u.Step(&at, s.Window(), &b, &f)
			must.True(t, (stop == unwind.StopNone) == c.ok, "%v, SP %#x by %v", stop, at.Regs.AMD64.SP(),
				at.Trust)
			if got := &at.Regs.AMD64; c.ok &&
				(got.RIP != codeCall || got.SP() != sp0+0x30 || at.Trust != unwind.TrustCode ||
					got.FP() != s.Word(sp0+0x20) || !known(got, context.RBP) ||
					got.GPR[context.RBX] != s.Word(sp0) && got.GPR[context.RBX] != r.GPR[context.RBX] ||
					got.GPR[context.R13] != r.GPR[context.R13] || !known(got, context.R13) ||
					known(got, context.R12)) {
				t.Errorf("%#x/%#x, rbp %#x by %v, known %#x", got.RIP, got.SP(),
					got.FP(), at.Trust, got.Known)
			}
		})
	}
}

// TestStepAtFirstByte: a function that never returns was interrupted at its first byte.
func TestStepAtFirstByte(t *testing.T) {
	for name, before := range map[string]byte{"a call names it": 1, "no call names it": 0xcc} {
		code := append(bytes.Repeat([]byte{before}, 16), 0xeb, 0xfe) // jmp to itself
		table := codeTable(t, code)
		if before == 1 {
			binary.LittleEndian.PutUint32(table.At(0).Bytes(codeCall-4, 4),
				uint32(0x100000000+codeLo+16-codeCall))
		}
		u, s, r := unwinder(table), newStack(), start(codeLo+16, sp0)
		s.Set(sp0, codeCall)
		var f unwind.Frame
		_, stop := stepOf(u, &r, true, s.Window(), &unwind.Bounds{Follow: true}, &f)
		expect.True(t, stop == unwind.StopNone && r.RIP == codeCall && r.SP() == sp0+8,
			"%s: %v, at %#x/%#x", name, stop, r.RIP, r.SP())
	}
}

// TestStepExported: a function that its image exports is run from its beginning, even if the
// call before the return address does not name it.
func TestStepExported(t *testing.T) {
	code := []byte{
		0x53, 0x48, 0x83, 0xec, 0x10, 0xe8, 0, 1, 0, 0, // push rbx; sub rsp, 16; call
		0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3, // add rsp, 16; pop rbx; ret
	}
	for name, c := range map[string]struct {
		functions []module.Function
		trust     unwind.Trust
	}{
		"exported": {[]module.Function{{Addr: codeLo - 64, Size: 8}, {Addr: codeLo, Size: 16}},
			unwind.TrustLeaf},
		"not exported": {nil, unwind.TrustCode},
		"too short":    {[]module.Function{{Addr: codeLo, Size: 10}}, unwind.TrustCode},
		"another one":  {[]module.Function{{Addr: codeLo + 5, Size: 11}}, unwind.TrustCode},
	} {
		t.Run(name, func(t *testing.T) {
			m := *codeTable(t, code).At(0)
			m.Functions = c.functions
			for i := range m.Functions {
				m.Functions[i].Addr -= m.Bias
			}
			u, s, r := unwinder(module.NewTable(2, []module.Module{m}, nil)),
				newStack(), start(codeLo+10, sp0)
			s.Set(sp0+0x18, codeCall)
			at := stateOf(&r, false)
			var f unwind.Frame
			stop := u.Step(&at, s.Window(), &unwind.Bounds{Follow: true}, &f)
			expect.True(t, stop == unwind.StopNone && at.Regs.AMD64.RIP == codeCall && at.Trust == c.trust,
				"%v, at %#x by %v, want by %v", stop, at.Regs.AMD64.RIP, at.Trust, c.trust)
		})
	}
}

// TestStepPastNoreturn: the next function follows a call that never returns. At its return, a stale
// return address may be on the stack. That return leaves the caller an unaligned stack, the right one
// does not.
func TestStepPastNoreturn(t *testing.T) {
	test, leave, fail := []byte{0x85, 0xc0, 0x74, 6}, []byte{0x48, 0x83, 0xc4, 0x18, 0xc3, 0x90},
		[]byte{0xe8, 0, 1, 0, 0, 0xc3}
	for name, code := range map[string][]byte{
		"the way out first": slices.Concat(test, leave, fail),
		"it second":         slices.Concat(test, fail, leave),
	} {
		t.Run(name, func(t *testing.T) {
			u, s, r := unwinder(codeTable(t, code)), newStack(), start(codeLo, sp0)
			s.Set(sp0, codeCall)
			s.Set(sp0+0x18, codeCall)
			var f unwind.Frame
			_, stop := stepOf(u, &r, false, s.Window(), &unwind.Bounds{Follow: true}, &f)
			expect.True(t, stop == unwind.StopNone && r.SP() == sp0+0x20 && u.trust == unwind.TrustCode,
				"%v, sp %#x, trust %v", stop, r.SP(), u.trust)
		})
	}
}
