package main

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
		engineFault("unwind/amd64/follow.go", "prove-switch", "a switch leaves a function", "case f.prove && in.memory && in.pcrel:", "case f.prove && (true || in.memory):", x64Tests),
		engineFault("unwind/amd64/follow.go", "follow-entered", "a caller's stack has to be aligned though the function's beginning leads there", "!s.Exact && !entered && to.GPR", "!s.Exact && to.GPR", x64Tests),
		engineFault("unwind/amd64/prove.go", "proven-calls", "code that calls proves its caller", "case leafProven, frameProven:", "case leafProven, leafCalls, frameProven:", x64Tests),
		engineFault("unwind/amd64/prove.go", "proven-called", "code behind a call proves its caller", "if !s.Exact || !m.SystemV() {", "if !m.SystemV() {", x64Tests),
		engineFault("unwind/amd64/prove.go", "proven-words", "any word is a return address", "return to, ok && u.afterCall(to.RIP)\n}\n\n// silent", "return to, ok\n}\n\n// silent", x64Tests),
		row("arm-row-below", "what lies below SP is a saved register", "\tpopped(row)\n", ""),
		row("arm-row-prolog", "rows of prologs are believed", "u.amidProlog(m, addr, row) || ", ""),
		row("arm-row-epilog", "rows of epilogs are believed", " || u.amidEpilog(m, addr, row)", " || true"),
		row("arm-row-part", "a part of a function is taken for its beginning", "case there && (saves || bare(row)):", "case there && (saves || true):"),
		row("arm-row-agrees", "a row is as good as the code if its CFA is", "\tif lr.Kind == cfi.Offset {\n\t\treturn saved && at == entrySP+uint64(lr.Off)\n\t}\n", "\t_ = at\n\tif lr.Kind == cfi.Offset || saved {\n\t\treturn true\n\t}\n"),
		row("arm-row-called", "what stands behind a call that does not return is of this path", ", addr, true\n", ", addr, false\n"),
		row("arm-row-elsewhere", "a jump to another part of a function leaves it", "u.next.FDE.Lo == at && bare(&u.next)", "u.next.FDE.Lo == at"),
		row("arm-row-table", "a jump to a linkage table does not leave a function", "\tcase cfi.NoInfo:\n\t\treturn true\n", ""),
		row("arm-row-aligned", "where SP is aligned nothing is known", "(e.regs[regSP].kind == knownValue || e.regs[regFP].kind == knownValue)", "e.regs[regSP].kind == knownValue"),
		row("arm-row-lost", "a return address that is loaded on the way is in x30", "\t\treturn false\n\t}\n\tsp := e", "\t}\n\tsp := e"),
		row("arm-row-resolve", "glibc's own way of resolving is an epilog", "row.CFA.Reg == regSP && row.CFA.Off < 0 || ", ""),
		engineFault("unwind/arm64/quirks.go", "arm-row-forgets", "a frame that has called has its return address in x30", "row.CFA.Kind == cfi.RegisterOffset && inRegister(row)", "false", arm64Tests),
		engineFault("unwind/arm64/scan.go", "arm-outlined", "a part of a function that is called keeps registers", "w>>26 == 0x25 && outlined(", "w>>26 == 0x24 && outlined(", arm64Tests),
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
