package main

// leafFaults are of functions of ARM64 Windows that have no unwind data, and of rows that are
// not told of what an epilog has popped.
func leafFaults() []Fault {
	leaf := func(name, what, old, new string) Fault {
		return engineFault("unwind/arm64/leaf.go", name, what, old, new, arm64Tests)
	}
	return []Fault{
		engineFault("unwind/arm64/rule.go", "arm-popped", "what lies below SP is a saved register", "r.base == regSP && off < 0 || ", "", arm64Tests),
		engineFault("unwind/arm64/step_cfi.go", "arm-popped-row", "what lies below SP is a saved register where rows are interpreted", "\t\tpopped(row)\n", "", arm64Tests),
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
