package main

var (
	memoryTests  = &Step{"./context/memory", nil}
	leavingX64   = &Step{"./unwind/amd64", []string{"-run", "^TestLeavesStack$"}}
	leavingARM64 = &Step{"./unwind/arm64", []string{"-run", "^(TestLeavesStack|TestPEStaysOnItsStack)$"}}
	stubTests    = &Step{"./unwind/amd64", []string{"-run", "^(TestPEAsynchronousCall|TestPEStubOfTwoSections)$"}}
)

// leavesFaults break the checks of stack switches, of memory runs, and of system-call stubs
// below asynchronous procedures.
func leavesFaults() []Fault {
	may := faultsOf("unwind/leaves.go", leavingX64, leavingARM64)
	x64 := faultsIn("unwind/amd64/", leavingX64)
	arm := faultsIn("unwind/arm64/", leavingARM64)
	stub := faultsIn("unwind/amd64/", stubTests)
	window := faultsOf("context/memory/window.go", memoryTests)
	const callerRun = "\trun, ok := mem.Run(caller - 8)\n"
	return []Fault{
		may("leave-guess", "a guess may leave its stack", "s.Trust.Doubtful() || s.Left", "s.Left"),
		may("leave-ever", "stacks are left for ever", " || s.Left >= MaxLeft {", " {"),
		may("leave-once-more", "a stack more is left", "s.Left >= MaxLeft", "s.Left > MaxLeft"),
		may("leave-often", "sixty-four stacks are left", "const MaxLeft = 32", "const MaxLeft = 64"),
		may("leave-no-memory", "the other stack need not be in memory", callerRun+"\tif !ok {\n\t\treturn false\n\t}\n", callerRun),
		may("leave-empty", "a caller at the high end of its stack is in no memory", callerRun, "\trun, ok := mem.Run(caller)\n"),
		may("leave-both", "bounds count if both stacks lie in them", "from || to {", "from && to {"),
		may("leave-own", "both stacks may be the thread's own", "return from != to", "return true"),
		may("leave-no-bounds", "the thread's bounds say nothing", "; from || to {", "; false {"),
		may("leave-one-run", "two stacks may be of one run of memory", "return ok && at.Addr != run.Addr", "return ok && at.Addr+1 != run.Addr"),
		may("leave-from-nowhere", "the stack that is left need not be in memory", "return ok && at.Addr != run.Addr", "return at.Addr != run.Addr"),
		may("leave-first-word", "what lies below a stack's first word is not of it", "mem.Run(sp - 8)", "mem.Run(sp)"),
		may("leave-copied", "a stack that is copied from the stack pointer on is in no memory", "\tif !ok {\n\t\tat, ok = mem.Run(sp)\n\t}\n", ""),
		may("leave-low", "what lies below the thread's stack is its own", "sp >= b.Low && ", ""),
		may("leave-high", "an empty stack is not the thread's", "sp <= b.High }", "sp < b.High }"),

		x64("step.go", "x64-leave-rsp", "a rule that counts from RSP leads to another stack", "r.Kind() != RuleBP || !u.leavesStack", "!u.leavesStack"),
		x64("step.go", "x64-leave-uncalled", "no call need stand before the return address", "s.LeavesStack(sp, mem, b) && u.afterCall(ra)", "s.LeavesStack(sp, mem, b)"),
		x64("step.go", "x64-leave-uncounted", "stacks left by a rule are not counted", "\t\t\ts.Left += left\n", "\t\t\t_ = left\n"),
		x64("step_cfi.go", "x64-leave-side-uncounted", "stacks left by a row are not counted", "\tfrom.Left += left\n", "\t_ = left\n"),
		x64("step_cfi.go", "x64-leave-side-rsp", "a row that counts from RSP leads to another stack", "s.countsFromRSP() || !u.leavesStack", "!u.leavesStack"),
		x64("step_cfi.go", "x64-leave-side-base", "any register and a distance count from RSP", " && s.cfa.Reg == dwarfRSP && ", " && "),
		x64("step_cfi.go", "x64-leave-side-kept", "an RSP of its own counts from RSP", " && s.regs[dwarfRSP].Kind <= cfi.SameValue", ""),
		arm("step.go", "arm-leave-sp", "a rule that counts from SP leads to another stack", "r.kind != RuleSlots || r.base != regFP || !s.LeavesStack", "r.kind != RuleSlots || !s.LeavesStack"),
		arm("step.go", "arm-leave-pe", "a PE function leads to another stack", "r.kind != RuleSlots || r.base != regFP || !s.LeavesStack", "r.base != regFP || !s.LeavesStack"),
		arm("step.go", "arm-leave-uncalled", "no call need stand before the return address", "left != 0 && !u.called(pc, mem)", "false"),
		arm("step.go", "arm-leave-uncounted", "stacks left by a rule are not counted", "\ts.Left += left\n", ""),
		arm("step_cfi.go", "arm-leave-row-uncounted", "stacks left by a row are not counted", "\ts.Left += left\n", "\t_ = left\n"),
		arm("step_cfi.go", "arm-leave-row-uncalled", "no call need stand before a row's return address", "!s.LeavesStack(sp, mem, b) || !u.called(pc, mem)", "!s.LeavesStack(sp, mem, b)"),
		arm("step_cfi.go", "arm-leave-row-sp", "a row that counts from SP leads to another stack", "!other || !s.LeavesStack", "!other && false || !s.LeavesStack"),
		arm("step_cfi.go", "arm-leave-row-base", "any register and a distance count from SP", "row.CFA.Kind != cfi.RegisterOffset || row.CFA.Reg != regSP", "row.CFA.Kind != cfi.RegisterOffset"),
		arm("step_cfi.go", "arm-leave-row-kept", "an SP of its own counts from SP", "\t\tother = true\n", ""),

		window("run-hot-word", "a word that the hot run has in part is of it", "w.hot.slice(addr, 8); ok {\n\t\treturn w.hot", "w.hot.slice(addr, 1); ok {\n\t\treturn w.hot"),
		window("run-word", "a word that a run has in part is of it", "_, ok := r.slice(addr, 8)", "_, ok := r.slice(addr, 1)"),
		window("run-unchecked", "a word behind a run is of it", "_, ok := r.slice(addr, 8)", "ok := true"),
		window("run-hot-only", "words are of the hot run only", "\t\t\treturn *r, true\n", "\t\t\treturn w.hot, false\n"),
		window("run-hot-always", "each word is of the hot run", "\t\t\treturn *r, true\n", "\t\t\treturn w.hot, true\n"),
		window("run-first", "a run's first word is of the run below", "w.more[mid].Addr <= addr {", "w.more[mid].Addr < addr {"),
		window("run-lowest", "there is a run below each word", "\tif lo == 0 {\n\t\treturn nil\n\t}\n", ""),

		stub("syscall.go", "stub-shorter", "a stub of full length is not recognized", "const maxSystemCall = 31", "const maxSystemCall = 30"),
		stub("syscall.go", "stub-any-beginning", "a stub may begin with anything", "bytes.HasPrefix(code, systemCallBegin) && ", ""),
		stub("syscall.go", "stub-half-beginning", "a stub begins with any mov r10", "systemCallBegin = []byte{0x4c, 0x8b, 0xd1, 0xb8}", "systemCallBegin = []byte{0x4c, 0x8b}"),
		stub("syscall.go", "stub-any-behind", "anything may stand behind a system call", " && code[n] == 0xc3 {", " {"),
		stub("syscall.go", "stub-anywhere", "every return of a stub is behind its system call", "return bytes.HasSuffix(code[:n], call)", "return len(code) > 0"),
		stub("syscall.go", "stub-cut", "a stub that is cut off is read to its end", "len(code) == int(n)+1 && ", ""),
		stub("syscall.go", "stub-no-syscall", "syscall is no system call", "{{0x0f, 0x05}, ", "{"),
		stub("syscall.go", "stub-no-int", "int 2eh is no system call", "{0xcd, 0x2e}, ", ""),
		stub("syscall.go", "stub-no-wine", "Wine's call is no system call", ", {0xff, 0x14, 0x25, 0, 0x10, 0xfe, 0x7f}}", "}"),
		stub("syscall.go", "stub-any-call", "a jump to where Wine calls is its call", "{0xff, 0x14, 0x25, 0, 0x10, 0xfe, 0x7f}}", "{0x25, 0, 0x10, 0xfe, 0x7f}}"),
		stub("prove.go", "stub-doubted", "the stub below an asynchronous procedure is doubtful", "!exact && behindSystemCall(m, regs.RIP)", "false"),
		stub("prove.go", "stub-uncalled", "no call need stand before a stub's return address", "return to, true, u.afterCall(to.RIP)", "return to, true, true"),
		stub("step_pe_module.go", "stub-called", "a stub below an asynchronous procedure was not interrupted", "\t\tf.Exact = f.Exact || proven\n", ""),
	}
}

// auditFaults break thunks, tail calls, followed code, the successor cache, and checks that
// an audit found untested.
func auditFaults() []Fault {
	x64 := faultsIn("unwind/amd64/", x64Tests)
	arm := faultsIn("unwind/arm64/", arm64Tests)
	return []Fault{
		x64("quirks.go", "epilog-word", "a tail call needs no return address", "to.GPR[context.RSP] == cfa && u.afterCall(to.RIP)", "to.GPR[context.RSP] == cfa"),
		x64("quirks.go", "epilog-depth", "any jump leaves a function", "ok && to.GPR[context.RSP] == cfa && u.afterCall", "ok && to.GPR[context.RSP] != 0 && u.afterCall"),
		x64("quirks.go", "epilog-indirect", "a jump through a register stays in the function", "case flowJump, flowIndirect:", "case flowJump:"),
		x64("quirks.go", "late-raised", "a row misses what raises the stack pointer too", "ok && e.regs[context.RSP].v < entrySP {", "ok {"),
		x64("quirks.go", "unpush-red-zone", "nothing is saved below the stack pointer", " && e.load(at, nil).kind != entryValue {", " {"),
		x64("quirks.go", "unpush-none", "registers are saved before they are pushed", "\t\t\trow.Set(c, cfi.Rule{Kind: cfi.SameValue})\n\t\t}\n\t}\n}\n\n// returnByJump", "\t\t}\n\t}\n}\n\n// returnByJump"),
		x64("quirks.go", "late-saved", "a row that names saved registers is late", "row.Used != [2]uint64{1 << dwarfRA} || ", ""),
		x64("thunk.go", "thunk-drop", "the return of a return thunk has a word more", "if t.drops && into == t.ret {", "if t.drops && into == t.ret+9 {"),
		x64("thunk.go", "thunk-behind", "the row of an inlined thunk holds behind it", "if off != thunkCFA {", "if off != thunkCFA+1 {"),
		x64("thunk.go", "thunk-call", "at the call of a thunk a word more lies on the stack", "into, off = 0, 8", "into, off = 0, 16"),
		x64("thunk.go", "thunk-kind", "the call of a return thunk is that of a branch", "\t\tok = ok && !t.drops\n", ""),
		x64("thunk.go", "thunk-first", "what begins twelve bytes before its row's end is a call", "if !ok && addr == row.Hi-trapSize {", "if addr == row.Hi-trapSize {"),
		x64("thunk.go", "thunk-jump", "where a thunk jumps to, the stack has a word less", "regs.GPR[reg], cfa-8\n", "regs.GPR[reg], cfa\n"),
		x64("thunk.go", "thunk-goto", "a thunk was called", "!known(regs, reg) || k > RuleSide", "!known(regs, reg) || k > RuleNone"),
		x64("thunk.go", "thunk-nowhere", "a thunk that cannot be left changes registers", "\t\t*regs = was\n", "\t\t_ = was\n"),
		x64("thunk.go", "thunk-padded", "thunks are not aligned", "size < trapSize+align", "size < trapSize+1"),
		x64("follow.go", "prove-return-jump", "a proof goes on in the caller", " && !(f.prove && u.afterCall(to.v))", ""),
		x64("step_pe.go", "return-epilog", "a return address may be in an epilog", "return s.leave(fn, exact)", "return s.leave(fn, true)"),
		x64("step_pe.go", "pushed-word", "any word is the pushed number", "there && v == number", "there && v|number != 0"),
		x64("quirks.go", "pushed-zero", "0 is a pushed number", "before[0] != 0 && len(", "len("),
		x64("quirks.go", "pushed-far", "a number stays pushed behind any instruction", "before[0] != 0 && len(skipPlain(before[1:])) == 0 {", "before[0] != 0 {"),
		x64("quirks.go", "pushed-pop", "no pop need follow", "n != 0 && n < len(rest)", "n < len(rest)"),
		x64("quirks.go", "pushed-listed", "a pop at which the row ends is not listed", "n != 0 && n < len(rest)", "n != 0"),
		x64("quirks.go", "pushed-row", "a push before the row is not listed", "begin := max(row.Lo, addr-", "begin := max(row.FDE.Lo, addr-"),
		x64("quirks.go", "pushed-rbp", "a pushed number moves a CFA that counts from RBP", " || row.CFA.Reg != dwarfRSP || !m.SystemV() {\n\t\treturn\n\t}\n\tbegin", " || !m.SystemV() {\n\t\treturn\n\t}\n\tbegin"),
		x64("step_pe.go", "pushed-rule", "a rule is made for a pushed number", "s.deep = s.deep || ok && s.symbolic; !ok", "!ok"),
		x64("step_pe.go", "pushed-frame", "a pushed number moves a frame register's base", "base == context.RSP && s.pushedNumber", "s.pushedNumber"),
		x64("thunk.go", "thunk-expression", "a thunk's row counts from a register", "cfi.RegisterOffset && row.CFA.Kind != cfi.Expression ||", "cfi.RegisterOffset ||"),
		x64("thunk.go", "pe-thunk-jump", "a jump to a thunk is a tail call", "code[0]&^2 == 0xe9 {", "code[0] == 0 {"),
		x64("thunk.go", "pe-thunk-short", "a short jump leads to no thunk", "code[0]&^2 == 0xe9 {", "code[0] == 0xe9 {"),
		x64("thunk.go", "pe-thunk-call", "at the call of a thunk a word more lies on the stack", "t.rule(RuleThunk, i, 8), ok", "t.rule(RuleThunk, i, 16), ok"),
		x64("pe_rule.go", "unpack-slot", "near slots are unpacked a word too low", "uint16(maxSlot - s)", "uint16(maxSlot - 1 - s)"),
		x64("pe_epilog.go", "epilog-return-thunk", "any inlined thunk is a return", "bytes.HasPrefix(code[in.Size:], returnThunk)", "bytes.HasPrefix(code[in.Size:], trap)"),
		faultsOf("unwind/x86/writes.go", x64Tests)("zeroes-ffreep", "ffreep is no part of an epilog", "in.Op == 0xdf && in.Reg&7 == 0:", "in.Op == 0xdf && in.Reg&7 == 9:"),
		x64("prove.go", "exit-stored", "a return to a stored address is an exit", " || e.stored(sp.v)", ""),
		x64("prove.go", "straight-stored", "a straight leaf may write its return address", " ||\n\t\t\tin.Memory && in.Base == context.RSP && in.Disp < 8 {", " {"),
		x64("thunk.go", "thunk-reg", "a thunk jumps by the register below", "b[0]&4<<1 | b[2]>>3", "b[2] >> 3"),
		x64("step_cfi.go", "moved-kept", "registers saved on an aligned stack lie at the CFA", "\t\t\trow.Regs[c].Kind = cfi.Undefined\n", ""),
		x64("step_cfi.go", "moved-own", "the register of the CFA is lost", " && c != int(row.CFA.Reg) {", " {"),
		x64("step_cfi.go", "moved-rsp", "a CFA that is RSP is a moved one", " || row.CFA.Reg == dwarfRSP || row.CFA.Reg == dwarfRBP {", " {"),
		x64("quirks.go", "row-return", "registers that are restored are in their words", "\t\trestored(row)\n\t\treturn\n", ""),
		x64("quirks.go", "row-return-go", "every language preserves registers", "code[size-1] == 0xc3 && savedBelow(row, 8) {", "code[size-1] == 0xc3 {"),
		x64("quirks.go", "returns-anywhere", "any jump behind a call's address is a return", "(sp == cfa || e.load(sp-8, mem) == ra) && u.afterCall(ra.v)", "sp != 0 && u.afterCall(ra.v)"),
		x64("step.go", "null-interrupted", "a row of an interrupted instruction ends the stack", "!(s.Exact && (r.Kind() <= RuleSide || r.Kind() == RuleThunk))", "true"),
		arm("step.go", "arm-null-interrupted", "a row of an interrupted instruction ends the stack", "!(s.Exact && (r.Kind() == RuleSlots || r.Kind() == RuleCFI))", "true"),
		x64("thunk.go", "thunk-unexplained", "a register is saved below RSP at a call", "\t\treturn cfi.NoInfo\n", ""),
		x64("thunk.go", "thunk-fell", "a common row that fell is believed", "\treturn row.Fell\n}\n", "\treturn false\n}\n"),
		x64("quirks.go", "jump-fence", "the pop of a return address has happened before it", "left <= uint64(n)+4 {", "left <= uint64(n)+5 {"),
		x64("pe_epilog.go", "jump-register", "the return address is in the register below", "\treturn n, reg\n", "\treturn n, reg & 7\n"),
		x64("pe_epilog.go", "epilog-popped", "in PE functions the return address is not popped", "into%fence == uint32(n) {", "into == 0 {"),
		x64("pe_epilog.go", "epilog-popped-any", "any pop before a fence pops a return address", "code[2*n+3] != 0xe0|reg&7", "code[2*n+3]&0xf8 != 0xe0"),
		x64("pe_epilog.go", "epilog-pop-return", "the pop of a return address is one of a register", "k == 0 || last != 0 {", "k == 0 || last > 2 {"),
		x64("quirks.go", "epilog-ret-anywhere", "an epilog may return to what was pushed", "to.GPR[context.RSP] == cfa || u.afterCall(to.RIP)", "true"),
		x64("quirks.go", "epilog-call", "an epilog may call", "in.Op != 0xe8 || !bytes.HasPrefix(code, trap)", "in.Op != 0xe8"),
		x64("thunk.go", "thunk-registers", "in a thunk registers are still saved", "\t\t\trow.Set(c, cfi.Rule{Kind: cfi.SameValue})\n", ""),
		x64("thunk.go", "thunk-below", "a common row has a register below RSP", "if w&15 > thunkCFA/8 {", "if w&15 > 15 {"),
		x64("thunk.go", "thunk-mov", "any store to the stack is a thunk", "b[2]&0xc7 == 4 && b[3] == 0x24", "b[3] == 0x24"),
		x64("step.go", "outside-next", "a frame in no known code is sure", "\ts.Trust = s.Trust.Then(unwind.TrustOutside)\n", ""),
		x64("walk_fused.go", "after-any", "any successor is the caller", "if e := &u.cache[next&(cacheSize-1)]; e.addr == ra-1 {", "if e := &u.cache[next&(cacheSize-1)]; e.rule.bits != 0 {"),
		x64("walk_fused_near.go", "after-near", "any successor is a PE function's caller", "if e := &u.cache[next&(cacheSize-1)]; e.addr == ra-1 {", "if e := &u.cache[next&(cacheSize-1)]; e.rule.bits != 0 {"),
		x64("step_cfi.go", "side-kept", "registers without a rule are the caller's", "have |= regs.Known & nonvolatile & (1 << n)", "have |= regs.Known & (1 << n)"),
		x64("follow.go", "follow-two", "two returns that disagree are an answer", "\tcase found != at.v:\n\t\tf.torn = true\n", "\tcase found != at.v:\n"),
		arm("step.go", "arm-outside-step", "a frame that a step reaches in no known code is sure", "\tif r.outside() {\n\t\tdoubtOutside(s)\n\t}\n", ""),
		arm("walk.go", "arm-outside-walk", "a frame that a walk reaches in no known code is sure", "if n > 0 && r.outside() {", "if n > 0 && r.outside() && r.Managed() {"),
		arm("walk_fused.go", "arm-after-any", "any successor is the caller", "e.addr != to-1 {", "e.rule.kind == RuleNone {"),
		x64("step.go", "outside-null", "what a call to 0 interrupted is doubtful", "!r.outside() || s.Exact && regs.RIP < nullPage {", "!r.outside() {"),
		x64("step_cfi.go", "side-null", "a return address of 0 is a frame by any row", "s.signal && stop == unwind.NullReturn", "stop == unwind.NullReturn"),
		engineFault("stack/merge/merge.go", "merge-grown-edge", "a frame may begin at its caller's SP", "return f.SP < above", "return f.SP <= above", &Step{"./stack/merge", nil}),
		x64("follow.go", "follow-below", "a return below the frame counts", "at.kind != knownValue || at.v < f.sp {", "at.kind != knownValue {"),
		x64("follow.go", "follow-frame", "a beginning needs not give the frame's frame pointer", "f.ok = fp.v == f.fp && (f.ok || sp.kind == unknownValue)", "_ = fp"),
		x64("follow.go", "follow-variable", "a frame pointer needs a stack pointer beside it", "f.ok = fp.v == f.fp && (f.ok || sp.kind == unknownValue)", "f.ok = fp.v == f.fp && f.ok"),
		x64("follow.go", "follow-frame-alone", "a frame pointer is enough", "f.ok = fp.v == f.fp && (f.ok || sp.kind == unknownValue)", "f.ok = fp.v == f.fp"),
		x64("follow.go", "follow-saved-place", "saved registers lie where the measuring run had them", "mem.Word(s.at + at - ran)", "mem.Word(s.at)"),
		arm("synchronous.go", "arm-begins", "a jump into the middle of a function leaves it", "return u.next.FDE.Lo == at && bare(&u.next)", "return bare(&u.next)"),
		engineFault("cfi/header.go", "cfi-header-middle", "the header may lead into a record", "if off < l.readTo || err != nil", "if err != nil", cfiTests),
		engineFault("elf/section.go", "elf-max-section", "a section may expand to 16 GiB", "MaxSection = 1 << 28", "MaxSection = 1 << 34", elfTests),
		Fault{Name: "merge-fresh-doubt", What: "code that the CLR knows is doubtful", File: "stack/merge/managed.go",
			Old: "\t\tm.at.Trust = unwind.TrustCLR\n", New: "\t\t_ = unwind.TrustCLR\n", By: []*Step{{"./stack/merge", nil}}},
	}
}
