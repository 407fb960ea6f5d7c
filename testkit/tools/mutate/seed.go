package main

const (
	seedFile     = "stack/seed/seed.go"
	specialsFile = "clr/managed/specials.go"
	seederFile   = "stack/snapshot/seeder.go"
)

// seedFaults are those of the seed and of what hands it to the CLR.
func seedFaults() []Fault {
	in := faultsOf(seedFile, asked, random, inputs)
	find := faultsOf("stack/seed/find.go", asked, random, inputs)
	special := faultsOf(specialsFile, asked, random, inputs)
	seeder := faultsOf(seederFile, snapshotTests, asked, random, inputs)
	known := faultsOf("context/registers.go", asked, random, inputs)
	walk, judged := "r := w.Walk(s, mem, b, out)", "\to.Verdict = judge("
	adjust := func(arch, change string) string {
		return "\tif o.Frames > 0 && s.Regs.Arch == context." + arch + " {\n\t\t" + change +
			"\n\t}\n" + judged
	}
	return []Fault{
		find("seed-adjusted", "the seed's ip is one less", judged, adjust("ArchAMD64", "s.Regs.AMD64.RIP--")),
		find("seed-adjusted-arm64", "the seed's ip is one instruction less", judged,
			adjust("ArchARM64", "s.Regs.ARM64.PC -= 4")),
		find("seed-not-interrupted", "the interrupted ip is taken for a return address",
			walk, "s.Exact = false\n\t"+walk),
		find("seed-no-bounds", "the walk may leave the stack", walk, "r := w.Walk(s, mem, nil, out)"),
		find("seed-wrong-sp", "the seed's SP is one word off", judged,
			adjust("ArchAMD64", "s.Regs.AMD64.GPR[context.RSP] += 8")),
		find("seed-wrong-sp-arm64", "the seed's SP is two words off", judged,
			adjust("ArchARM64", "s.Regs.ARM64.Sp += 16")),
		known("seed-wrong-register", "a register that no frame saved is not checked",
			"1<<RBX | 1<<RBP | 0xf<<R12", "1<<RBP"),
		known("seed-wrong-register-arm64",
			"registers that no frame saved are not checked", "0x7ff << 19", "1 << 29"),
		find("seed-half-aligned-arm64",
			"ARM64 stack pointers may be aligned to eight", "spAlign: 16", "spAlign: 8"),
		find("seed-doubt-forgotten", "the last step's doubt is not the seed's", judged,
			"\ts.Trust = unwind.TrustContext\n"+judged),
		in("seed-doubtful", "a seed below a guess is trusted", " || s.Trust.Doubtful()", ""),
		in("seed-unknown-registers", "a seed whose registers are not known is usable",
			"case end.missing != 0:", "case false:"),
		in("seed-misaligned-top", "a misaligned context is walked and believed", "(top.sp&(a.spAlign-1))|(top.ip&(a.ipAlign-1)) != 0 || ", ""),
		in("seed-implausible", "a seed may point anywhere", "!a.plausible(end, b) || ", ""),
		in("seed-misaligned", "a seed's SP may have any alignment",
			"s.sp&(a.spAlign-1) == 0 && s.sp != 0", "s.sp != 0"),
		in("seed-misaligned-ip", "a seed's ip may stand amid an instruction",
			"s.ip&(a.ipAlign-1) == 0 && ", ""),
		in("seed-off-the-stack", "a seed may be on another stack", "return !foreign(s.sp, b) && ", "return "),
		in("seed-foreign-stack", "a context on another stack is walked",
			"b != nil && b.High != 0 && (sp < b.Low || sp >= b.High)", "false"),
		in("seed-bounds-low", "what is below the stack is on it", "sp < b.Low || ", ""),
		in("seed-bounds-off-by-one", "the stack's end is on it", "sp >= b.High", "sp > b.High"),
		in("seed-no-managed", "the stack's end is taken for the walk's failure",
			"\t\treturn NoManaged\n", "\t\treturn Truncated\n"),
		in("seed-truncated", "a walk that failed is taken for the stack's end",
			"\t\treturn Truncated\n", "\t\treturn NoManaged\n"),
		in("seed-needed", "managed code on top counts as found",
			"\t\treturn NotNeeded\n", "\t\treturn Found\n"),
		in("seed-stub-is-method", "a stub on top counts as a method",
			"o.Frames == 0 && p.IsStub(end.ip)", "false"),
		in("seed-usable", "every verdict is usable",
			"return v == NotNeeded || v == Found", "return v != NoManaged"),
		special("seed-redirect", "a redirect stub is walked", "s.Redirect.holds(ip) || ", ""),
		special("seed-dispatcher", "a dispatcher is walked from its start", " || s.Dispatch.holds(ip)", ""),
		special("seed-misread", "a special may be left as if it had been called",
			"!exact && s.Entered(", "exact && s.Entered("),
		seeder("seeder-no-bounds", "the seed does not know the stack",
			"\ts.bounds = unwind.Bounds{Low: c.Thread.StackLow, High: c.Thread.StackHigh}\n", ""),
		seeder("seeder-stale-stack", "the walk reads an earlier thread's stack",
			"\ts.mem.Reset(c.Stack.Addr, c.Stack.Data)\n",
			"\tif s.bounds.High == 0 {\n\t\ts.mem.Reset(c.Stack.Addr, c.Stack.Data)\n\t}\n"),
		seeder("seeder-in-place", "the captured registers become the seed's", "unwind.Interrupted(&c.Seed)",
			"unwind.Interrupted(&c.Regs)"),
		seeder("seeder-no-specials", "the process's stubs are not told",
			"seed.Find(s.specials, ", "seed.Find(nil, "),
	}
}
