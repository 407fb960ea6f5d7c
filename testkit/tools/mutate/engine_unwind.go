package main

// unwindFaults are those of package unwind and what it stands on.
func unwindFaults() []Fault {
	return []Fault{
		engineFault("unwind/amd64/rule.go", "rule-slot-bound", "a slot runs into the next register's", "slot-8 < 8*maxSlot &&", "slot-8 <= 8*maxSlot &&", x64Tests),
		engineFault("unwind/amd64/rule.go", "rule-cfa-bound", "a CFA runs into the slots", "off>>3 > maxOffset {", "off>>3 > maxOffset+1 {", x64Tests),
		engineFault("unwind/amd64/rule.go", "rule-ra", "a return address elsewhere is taken for one below the CFA", "ra.Kind != cfi.Offset || ra.Off != -8 {", "ra.Kind != cfi.Offset {", x64Tests),
		engineFault("unwind/amd64/rule.go", "rule-r12", "R12 has R13's slot", "-1, 8, 12, 16, 20}", "-1, 12, 12, 16, 20}", x64Tests),
		engineFault("unwind/amd64/step.go", "step-sp-falls", "the stack pointer may fall", "\tif caller < sp {\n\t\treturn unwind.NoProgress\n\t}\n", "", x64Tests),
		engineFault("unwind/amd64/step.go", "step-high", "a CFA at the stack's end is outside", "&& caller > b.High {", "&& caller >= b.High {", x64Tests),
		engineFault("unwind/amd64/step.go", "step-null", "a return address of 0 is a frame", "\tif ra == 0 {\n\t\treturn unwind.NullReturn\n\t}\n", "", x64Tests),
		engineFault("unwind/stop.go", "null-anywhere", "a return address of 0 ends the stack anywhere", "return NullReturn\n", "return EndOfStack\n", unwindTests, x64Tests),
		engineFault("unwind/stop.go", "null-nowhere", "a return address of 0 never ends the stack", "\t\treturn EndOfStack\n\t}\n", "\t\treturn NullReturn\n\t}\n", unwindTests, x64Tests),
		engineFault("unwind/amd64/pe_epilog.go", "epilog-vzeroupper", "vzeroupper is no part of an epilog", "bytes.HasPrefix(code, vzeroupper) {", "bytes.HasPrefix(code, nil) && len(code) > 1<<20 {", x64Tests),
		engineFault("unwind/amd64/pe_epilog.go", "epilog-rex-pop", "pop r8 to r15 are of one byte", "return 2, code[0]&1<<3 | code[1]&7", "return 1, code[0]&1<<3 | code[1]&7", x64Tests),
		engineFault("unwind/amd64/pe_epilog.go", "epilog-switch", "a jump without REX.W ends a function", "return len(code) >= 2 && code[1] == 0x25 // jmp", "return len(code) >= 2 && code[1]&0x38 == 0x20 // jmp", x64Tests),
		engineFault("unwind/amd64/pe_epilog.go", "epilog2-rex-pop", "in an epilog of version 2 pop r8 to r15 are of one byte", "done += 1 + uint32(reg>>3)", "done++", x64Tests),
		engineFault("unwind/amd64/pe_epilog.go", "epilog-jump-far", "a jump of four bytes ends an epilog wherever it leads", "return len(code) >= 5 && e.jump(at+5+signed32(code[1:]))", "return len(code) >= 5", x64Tests),
		engineFault("unwind/amd64/step_pe.go", "x64-chain-limit", "chains are followed four times as far", "const maxChain = 32", "const maxChain = 128", x64Tests),
		engineFault("unwind/amd64/step_pe.go", "x64-machine-skip", "an error code is not skipped", "return s.machineFrame(8 * uint64(c.Info))", "return s.machineFrame(0)", x64Tests),
		engineFault("unwind/amd64/step_pe.go", "x64-code-offset", "a code applies before its instruction ends", "\t\t\tif into >= uint32(codes[0]) {", "\t\t\tif into+1 >= uint32(codes[0]) {", x64Tests),
		engineFault("unwind/amd64/step_pe_module.go", "x64-unproven-leaf", "an unproven leaf is trusted", "\t\tu.by = unwind.TrustCode\n", "\t\tu.by = unwind.TrustLeaf\n", x64Tests),
		engineFault("unwind/amd64/prove.go", "prove-disagree", "ways out may disagree", "sp.kind != knownValue || f.returns > 0 && f.found.regs[context.RSP].v != sp.v", "sp.kind != knownValue", x64Tests),
		engineFault("unwind/amd64/prove.go", "prove-word", "any word is a return address", "return to, exact, ok && u.afterCall(to.RIP)", "return to, exact, ok", x64Tests),
		engineFault("unwind/amd64/prove.go", "straight-stack", "a straight leaf may move the stack pointer", " || in.Writes()>>context.RSP&1 != 0", "", x64Tests),
		engineFault("unwind/amd64/hook.go", "hook-red-zone", "what a function that has returned left below the stack pointer is a return address", "u.unknown == 0 || at < sp {", "u.unknown == 0 {", x64Tests),
		engineFault("unwind/amd64/rule.go", "looked-exact", "what interrupted code showed holds for its return address", "r.bits&seenBit != 0 && r.exactPE() == exact }", "r.bits&seenBit != 0 }", x64Tests),
		engineFault("unwind/amd64/walk_fused_restore.go", "fused-oldest", "the frame farthest from the caller has a register's value", "\t\t\twant &^= nibbles(s, othersCFI)\n", "", x64Tests),
		engineFault("unwind/amd64/walk_fused_near.go", "fused-near-exact", "an interrupted function's rule is that of its return addresses", "exactBit|managedBit|15", "managedBit|15", x64Tests),
		engineFault("unwind/amd64/walk_fused_near.go", "fused-near-home", "RBP is never in the home area", "at += nearAbove + 8 - int(8*k)", "at += 8 - int(8*k)", x64Tests),
		engineFault("unwind/amd64/side.go", "x64-lowered-register", "an expression of a register that no row keeps is kept as a word", "in.OK() && reg <= dwarfRA", "in.OK() && reg <= dwarfRA+1", x64Tests),
		engineFault("unwind/amd64/step_cfi.go", "x64-env-known", "expressions take RBP for known if RSI is", "k<<1&(1<<6)", "k<<1&(1<<5)", x64Tests),
		engineFault("unwind/amd64/pe_rule.go", "x64-table-xmm", "saved XMM registers have their neighbour's place", "p.slots[8+i])", "p.slots[8+i^1])", x64Tests),
		engineFault("unwind/arm64/fallback.go", "arm-page-trampoline", "a trampoline behind managed code is managed code", " || s.Regs.ARM64.PC&(pageSize-1) == 0", "", arm64Tests),
		engineFault("unwind/arm64/rule.go", "arm-measure", "a rule's highest slot lies outside its words", "uint16(int(high)+1-int(low))", "uint16(int(high)-int(low))", arm64Tests),
		engineFault("unwind/arm64/step_hot.go", "arm-hot-lr", "a hot frame that has called may have its return address in x30", "} else if !exact || !known(regs, regLR) {", "} else if !known(regs, regLR) {", arm64Tests),
		engineFault("unwind/arm64/walk_fused.go", "arm-fused-oldest", "the frame farthest from the caller has a register's value", "\t\twant &^= s\n", "", arm64Tests),
		engineFault("unwind/amd64/quirks.go", "late-cfa-believed", "a late CFA is believed", "row.CFA.Off += int64(int32(", "row.CFA.Off += 0 * int64(int32(", x64Tests),
		engineFault("unwind/amd64/emulate.go", "emulate-leave", "leave does not pop", "\t\te.set(context.RBP, e.pop(mem))\n", "", x64Tests),
		engineFault("unwind/amd64/emulate.go", "emulate-call", "a call keeps volatile registers", "\tcase op == 0xe8:\n\t\te.forget(volatileRegs)\n", "\tcase op == 0xe8:\n", x64Tests),
		engineFault("unwind/amd64/emulate.go", "emulate-sub", "sub adds", "\tcase ok && operation == 5:\n\t\tr.v -= v.v", "\tcase ok && operation == 5:\n\t\tr.v += v.v", x64Tests),
		engineFault("unwind/amd64/root.go", "root-null-page", "a call of 0 is not left", "const nullPage = 4096", "const nullPage = 0", x64Tests),
		engineFault("unwind/x86/decode.go", "decode-sib-base", "a SIB without base has no displacement", "\t\t\tin.Base, mod = NoReg, 2\n", "\t\t\tin.Base = NoReg\n", x64Tests),
		engineFault("unwind/x86/decode.go", "decode-group3", "not has an immediate", "op == 0xf6 && in.Reg&6 == 0:", "op == 0xf6:", x64Tests),
		engineFault("unwind/arm64/pe_rule.go", "arm-context-pc", "the pc of a CONTEXT is its sp", "ctxPC = 0x108", "ctxPC = 0x100", arm64Tests),
		engineFault("unwind/arm64/pe_rule.go", "arm-pair-step", "the second of a pair lies on the first", "\t\tat.off += size\n\t\tu.load(c, int(c.Reg2), at)", "\t\tu.load(c, int(c.Reg2), at)", arm64Tests),
		engineFault("unwind/arm64/pe_rule.go", "arm-strip", "a signed return address is kept", "\tif u.strip {\n\t\tr.saved |= flagStrip", "\tif false {\n\t\tr.saved |= flagStrip", arm64Tests),
		engineFault("unwind/arm64/rule.go", "arm-slot-d", "d8 has d9's slot", "return int(reg) - 72 + numX", "return min(int(reg)-71, 7) + numX", arm64Tests),
		engineFault("unwind/arm64/rule.go", "arm-slot-far", "a slot farther than 16 bits is cut", "off < math.MinInt16*8 || off >= math.MaxInt16*8", "off >= math.MaxInt16*16", arm64Tests),
		engineFault("unwind/arm64/step.go", "arm-sp-falls", "the stack pointer may fall", "\tif caller < sp {\n\t\treturn unwind.NoProgress\n\t}\n", "", arm64Tests),
		engineFault("unwind/arm64/step.go", "arm-null", "a return address of 0 is a frame", "\tif ra == 0 {\n\t\treturn unwind.NullReturn\n\t}\n", "", arm64Tests),
		engineFault("unwind/arm64/step.go", "arm-live-lr", "a frame that has called may have its return address in x30", "\tcase !s.Exact && r.saved&flagExact == 0:\n\t\treturn 0, unwind.BadInfo\n", "", arm64Tests),
	}
}

// codeFaults are of functions of ARM64 Windows that have no unwind data, and of rows that the
// code contradicts.
func codeFaults() []Fault {
	leaf := func(name, what, old, new string) Fault {
		return engineFault("unwind/arm64/leaf.go", name, what, old, new, arm64Tests)
	}
	row := func(name, what, old, new string) Fault {
		return engineFault("unwind/arm64/synchronous.go", name, what, old, new, arm64Tests)
	}
	return []Fault{
		engineFault("unwind/amd64/follow.go", "prove-switch", "a switch leaves a function", "case f.prove && in.Memory && in.PCRel:", "case f.prove && (true || in.Memory):", x64Tests),
		engineFault("unwind/amd64/follow.go", "follow-entered", "a caller's stack has to be aligned though the function's beginning leads there", "!s.Exact && !entered && to.GPR", "!s.Exact && to.GPR", x64Tests),
		engineFault("unwind/amd64/prove.go", "proven-calls", "code that calls proves its caller", "case leafProven, frameProven:", "case leafProven, leafCalls, frameProven:", x64Tests),
		engineFault("unwind/amd64/prove.go", "proven-called", "code behind a call proves its caller", "if !s.Exact || !m.SystemV() {", "if !m.SystemV() {", x64Tests),
		engineFault("unwind/amd64/prove.go", "proven-words", "any word is a return address", "return to, ok && u.afterCall(to.RIP)\n}\n\n// silent", "return to, ok\n}\n\n// silent", x64Tests),
		row("arm-row-below", "what lies below SP is a saved register", "\tpopped(row)\n", ""),
		row("arm-row-prolog", "rows of prologs are believed", "u.amidProlog(m, addr, row)\n\tok", "false\n\tok"),
		row("arm-row-epilog", "rows of epilogs are believed", "u.amidEpilog(m, addr, row, prolog) ||", "true ||"),
		row("arm-row-through", "a call in a prolog ends it", "\t\tif e.through(m, pc, w) {\n\t\t\tcontinue\n\t\t}\n", ""),
		row("arm-row-onto", "an epilog ends where it jumps", "in.toReturn(m, pc) && in.regs[regSP].kind == knownValue", "false && in.toReturn(m, pc)"),
		row("arm-row-back", "what returns elsewhere is a part of its caller", " || in.regs[regLR] != back", ""),
		row("arm-row-part", "a part of a function is taken for its beginning", "case there && (saves || bare(row)):", "case there && (saves || true):"),
		row("arm-row-agrees", "a row is as good as the code if its CFA is", "\tif lr.Kind == cfi.Offset {\n\t\treturn saved && at == entrySP+uint64(lr.Off)\n\t}\n", "\t_ = at\n\tif lr.Kind == cfi.Offset || saved {\n\t\treturn true\n\t}\n"),
		row("arm-row-called", "what stands behind a call that does not return is of this path", ", addr, true\n", ", addr, false\n"),
		row("arm-row-elsewhere", "a jump to another part of a function leaves it", "u.next.FDE.Lo == at && bare(&u.next)", "u.next.FDE.Lo == at"),
		row("arm-row-table", "a jump to a linkage table does not leave a function", "\tcase cfi.NoInfo:\n\t\treturn true\n", ""),
		row("arm-row-aligned", "where SP is aligned nothing is known", "(e.regs[regSP].kind == knownValue || e.regs[regFP].kind == knownValue)", "e.regs[regSP].kind == knownValue"),
		row("arm-row-lost", "a return address that is loaded on the way is in x30", "\t\treturn false\n\t}\n\tgone", "\t}\n\tgone"),
		row("arm-row-late", "a row that restores too early is believed", "\t\te.reload(row)\n", ""),
		row("arm-row-vectors", "vector registers are right where others are not", "late = true", "late = false"),
		row("arm-row-resolve", "glibc's own way of resolving is an epilog", "row.CFA.Reg == regSP && row.CFA.Off < 0 || ", ""),
		engineFault("unwind/arm64/quirks.go", "arm-row-forgets", "a frame that has called has its return address in x30", "row.CFA.Kind == cfi.RegisterOffset && inRegister(row)", "false", arm64Tests),
		engineFault("unwind/arm64/scan.go", "arm-outlined", "a part of a function that is called keeps registers", "if outlined(s.m, s.pc-4, w) {", "if false {", arm64Tests),
		engineFault("unwind/arm64/step_pe.go", "arm-leaf-unproven", "code without an entry is a leaf whatever it does", " && !u.provenLeaf(m, addr) {", " && addr&3 != 0 {", arm64Tests),
		leaf("arm-leaf-sp", "a leaf may move SP", "e.regs[regSP] != (value64{regSP, entryValue}) || ", ""),
		leaf("arm-leaf-lr", "a leaf may change x30", " || e.regs[regLR] != (value64{regLR, entryValue})", ""),
		leaf("arm-leaf-signed", "what is signed in x30 is a return address", " || authenticates(w)", ""),
		leaf("arm-leaf-calls", "a leaf may call", "\t\tdefault:\n\t\t\treturn -1\n", "\t\tdefault:\n\t\t\tpc += 4\n"),
		leaf("arm-leaf-endless", "what never returns is a leaf", "return ways > 0", "return true"),
		leaf("arm-leaf-branch", "one way of a branch is enough", "\t\t\tf.add(pc+uint64(by), &e)\n", ""),
		leaf("arm-leaf-doubt", "the platform's rule is sure", "u.by = unwind.TrustCode", "u.by = unwind.TrustLeaf"),
		leaf("arm-leaf-called-rule", "the platform's rule holds for what has made a call", " || !s.Exact || ", " || "),
	}
}
