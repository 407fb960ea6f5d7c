package main

// followFaults break the code that leaves a function by following its instructions, the steps at
// addresses without unwind data, and the rule cache.
func followFaults() []Fault {
	x64 := faultsOf("unwind/amd64/follow.go", x64Tests)
	last := faultsOf("unwind/amd64/fallback.go", x64Tests)
	writes := faultsOf("unwind/x86/writes.go", x64Tests)
	cache := faultsOf("unwind/amd64/cache.go", x64Tests)
	arm := faultsOf("unwind/arm64/follow.go", arm64Tests)
	entry := faultsOf("unwind/arm64/follow_entry.go", arm64Tests)
	scan := faultsOf("unwind/arm64/scan.go", arm64Tests)
	return []Fault{
		x64("follow-return-below", "a return may lie below the stack pointer", "at.kind != knownValue || at.v < f.sp", "at.kind != knownValue"),
		x64("follow-any-word", "a return to any word is one", "ra.kind != knownValue || !u.afterCall(ra.v)", "ra.kind != knownValue"),
		x64("follow-disagree", "the first of two returns that disagree counts", "\tcase found != at.v:\n\t\tf.torn = true\n", ""),
		x64("follow-behind", "a return behind a call that never returns counts", "case found != at.v && f.calls && found&15 != at.v&15:\n\t\tif at.v&15 == returnSlot {", "case found != at.v && f.calls && found&15 != at.v&15:\n\t\tif false {"),
		x64("follow-branch", "only one way of a branch is followed", "\t\t\tf.add(ip+uint64(in.Disp), &e)\n", ""),
		x64("follow-decided", "a decided branch is not decided", "taken, decided := was.decides(&in)", "taken, decided := was.decides(&in)\n\t\t\tdecided = false"),
		x64("follow-windows", "Windows functions keep what those of other systems keep", "\tif !m.SystemV() {\n\t\tf.kept = windowsKept & (1<<16 - 1)\n\t}\n", ""),
		x64("follow-unknown-code", "what cannot be decoded is no way out", "\t\t\tf.torn = f.torn || f.prove\n\t\t\treturn\n\t\t}\n\t\tip, code", "\t\t\treturn\n\t\t}\n\t\tip, code"),
		x64("follow-pointer", "a function is entered with any frame pointer", "f.ok = fp.v == f.fp && (f.ok || sp.kind == unknownValue)", "f.ok = f.ok || sp.kind == unknownValue"),
		x64("follow-backward", "no function is named by a word of the stack", "if back, proven := u.backward(m, regs, mem); proven {", "if back, proven := u.backward(m, regs, mem); proven && false {"),
		x64("follow-begin", "a function begins anywhere", "len(before) == 0 || bytes.IndexByte(beforeBegin, before[0]) < 0 {", "len(before) == 0 {"),
		x64("follow-kept", "a register that was changed has its value", "known(regs, reg) && f.found.regs[reg] == value64{uint64(reg), entryValue}", "known(regs, reg)"),
		x64("follow-restored", "a register that was saved has its value", "v, ok = mem.Word(s.at + at - ran)", "_, ok = mem.Word(s.at + at - ran)"),
		x64("follow-trust", "what code says alone is sure", "\tif !entered {\n\t\tu.by = unwind.TrustCode\n\t}\n", ""),
		x64("follow-moved", "an import's address does not lead out", "\t\t\t\tf.exit(&e)\n\t\t\tcase f.prove: //", "\t\t\t\tf.torn = true\n\t\t\tcase f.prove: //"),

		x64("measured-aligned", "a stack that is aligned has frames of one size", "|| depth != moved || !read", "|| !read"),
		x64("measured-any-word", "any word is the return address of a measured frame", "|| !read || !u.afterCall(ra) {", "|| !read {"),
		x64("measured-part", "a part of a function begins as a whole one", "u.row.CFA.Reg != dwarfRSP || u.row.CFA.Off != 8 {", "false {"),
		last("last-null", "a call of 0 is no call", "if s.Exact && regs.RIP < nullPage {", "if s.Exact && regs.RIP == nullPage {"),
		last("last-null-caller", "a caller in the null page was called from it", "if s.Exact && regs.RIP < nullPage {", "if regs.RIP < nullPage {"),
		last("last-keeps", "JIT code keeps no frame pointer", "keeps := i < 0 && r.bits&jitBit != 0 || ", "keeps := "),
		last("last-linkage", "a frame that has called stands in a linkage table", "ok && a.Exact {\n\t\treturn codeLinkage", "ok {\n\t\treturn codeLinkage"),
		last("last-popped", "a linkage table pushes nothing", "regs.GPR[context.RSP]+8*uint64(words)", "regs.GPR[context.RSP]"),
		last("last-trust", "the frame pointer of silent code is sure", "\tu.by = unwind.TrustFramePointer\n", "\tu.by = unwind.TrustLeaf\n"),
		last("last-aligned", "a frame pointer lies anywhere", "|| fp&7 != 0 ", ""),
		last("last-below", "a frame pointer lies below the stack pointer", "|| fp < sp ", ""),
		last("last-code", "the word above a frame pointer is an address of code", "if !ok || !ok2 || !u.isCode(ra) {", "if !ok || !ok2 {"),
		last("last-known", "a guess leaves all registers known", "regs.Known = 1<<context.RSP | 1<<context.RBP", "regs.Known |= 1<<context.RSP | 1<<context.RBP"),
		last("last-class", "what was found out of code before a call holds behind it", "r.looked(s.Exact)", "r.looked(true)"),

		writes("writes-high", "AH is RSP", "if byteSized && in.REX == 0 && reg >= 4 {", "if byteSized && in.REX == 0 && reg > 16 {"),
		writes("writes-cmov", "a conditional move writes nothing", "case op&0xf0 == 0x40, op == 0x02", "case op == 0x02"),
		writes("writes-not", "not writes nothing", "case ext < 4:\n\t\treturn in.toRM(small)", "case ext < 2:\n\t\treturn in.toRM(small)"),
		writes("writes-cpuid", "cpuid keeps RBX", "bitAX | bitDX | 1<<context.RCX | 1<<context.RBX", "bitAX | bitDX | 1<<context.RCX"),
		writes("writes-bzhi", "what BMI computes is not written", "in.Table == 2 && (op == 0xf2 || op == 0xf5 || op == 0xf7), ", ""),

		cache("cache-generation", "rules of replaced modules are kept", "\tdefault:\n\t\tu.flush()\n", ""),
		cache("cache-managed", "rules of generated code are kept", "\tcase t.SameModules(was):\n\t\tu.dropManaged()\n", "\tcase t.SameModules(was):\n"),
		cache("cache-elsewhere", "rules of addresses that hold generated code now are kept", " || u.table.IsManaged(e.addr) {", " {"),

		arm("arm-follow-below", "a return may lie below the stack pointer", "|| sp.v < f.sp ", ""),
		arm("arm-follow-any", "a return to any word is one", "|| !u.afterCall(stripPAC(lr.v), f.mem) ", ""),
		arm("arm-follow-torn", "the first of two returns that disagree counts", "\t\tf.torn = true\n\tdefault:", "\tdefault:"),
		arm("arm-follow-lr", "x30 of a frame that has called is its own", "(s.Exact || i != regLR)", "true"),
		arm("arm-follow-pac", "a signed return address is an address", "to.PC, to.Sp, to.X[regLR], to.Known = stripPAC(lr), ", "to.PC, to.Sp, to.X[regLR], to.Known = lr, "),
		arm("arm-follow-trust", "what code says alone is sure", "u.by = unwind.TrustCode", "u.by = unwind.TrustLeaf"),
		arm("arm-follow-kept", "all registers are kept", "v.kind == knownValue && nonvolatile>>reg&1 != 0", "v.kind == knownValue"),
		arm("arm-follow-branch", "only one way of a branch is followed", "\t\t\tf.add(pc+uint64(by), &e)\n", ""),
		entry("arm-entry-where", "x30 may have been saved elsewhere", "ok && saved == at {", "ok && saved != 0 {"),
		entry("arm-entry-call", "any word names a function", "if !ok || w>>26 != 0x25 {", "if !ok {"),
		entry("arm-entry-moved", "a frame's size does not count", "return at + regs.Sp - f.found.regs[regSP].v, ok", "return regs.Sp, ok"),
		entry("arm-entry-sp", "SP of a caller is where x30 lies", "to.Sp = entrySP + regs.Sp - f.found.regs[regSP].v", "to.Sp = regs.Sp"),
		entry("arm-entry-changed", "a register that was changed has its value", "known(regs, int(reg)) && f.found.regs[reg] == value64{reg, entryValue}", "known(regs, int(reg))"),
		entry("arm-entry-saved", "a register that was saved has its value", "v, ok = mem.Word(at)", "_, ok = mem.Word(at)"),
		entry("arm-entry-ends", "a function begins anywhere", "!ok || !ends(w) {", "!ok || w == 1 {"),
		scan("arm-scan-call", "x30 survives a call", "s.regs.Known &= nonvolatile &^ (1 << regLR)", "s.regs.Known &= nonvolatile"),
		scan("arm-scan-caller", "x30 of a frame that has called is its own", "\tif !from.Exact {\n\t\ts.forget(regLR)\n\t}\n", ""),
		scan("arm-scan-begin", "a function's beginning behind a call is this one's", "return refused // a hint but", "return goOn // a hint but"),
		scan("arm-scan-ret", "a return through any register is one to x30", "\t\tif w>>5&31 == regLR {\n\t\t\treturn returns\n\t\t}\n\t\treturn refused\n", "\t\treturn returns\n"),
		scan("arm-scan-sp", "a caller's SP may lie below", "known(&s.regs, regLR) && s.regs.Sp >= from.Sp", "known(&s.regs, regLR)"),

		engineFault("pe/header.go", "pe-header-wide", "PE32 has directories where PE32+ has them", "h.wide, fixed = true, 112\n\t} else", "h.wide = true\n\t} else", peTests),
		engineFault("pe/header.go", "pe-header-dirs", "a header may have more directories than bytes", "dirCount, uint64(len(b)-fixed)/8)", "dirCount)", peTests),
		engineFault("pe/header.go", "pe-header-sections", "the section table follows a header of 240 bytes", "h.sections = at + 24 + uint64(size)", "h.sections = at + 24 + 240", peTests),
		engineFault("elf/relative.go", "elf-relr-next", "a bitmap of relocations begins at its address", "next = e + 8", "next = e", elfTests),
		engineFault("elf/relative.go", "elf-relr-63", "a bitmap has 64 words", "next += 63 * 8", "next += 64 * 8", elfTests),
		engineFault("elf/relative.go", "elf-rela-arm", "both architectures have one relocation", "if f.Arch() == context.ArchARM64 {", "if f.Arch() == context.NoArch {", elfTests),
	}
}
