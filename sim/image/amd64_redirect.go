package image

// RedirectStub returns the code to which the CLR of 64-bit Windows redirects a thread. No call enters
// it. Its first instruction makes room for a return address. After its prolog, it gets that address
// and stores it there. Source: RedirectedHandledJITCase.asm, GenerateRedirectedStub.
func RedirectStub(name string) Func {
	const locals = 40
	a := asm{part: Prolog}
	a.emit(short(0x50, rax), Effect{Kind: Reserve, Reg: rax})
	a.push(rbp)
	a.sub(locals)
	a.movFromSP(rbp)
	a.part = Body
	a.emit([]byte{0x48, 0x89, 0x45, locals + 8}) // mov [rbp+48], rax: what machine.Answer does
	a.nop(3)
	a.call()
	a.nop(1)
	a.part = Epilog
	a.add(locals)
	a.pop(rbp)
	a.emit([]byte{0xc3}, Effect{Kind: Return})
	return Func{Name: name, Ops: a.ops, Size: a.off}
}
