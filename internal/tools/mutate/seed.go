package main

const (
	seedFile     = "seed/seed.go"
	specialsFile = "seed/specials.go"
	seederFile   = "snapshot/seeder.go"
)

// seedFaults are those of the seed and of what hands it to the CLR.
func seedFaults() []Fault {
	of := func(file, name, what, before, after string) Fault {
		return Fault{Name: name, What: what, File: file, Old: before, New: after, By: []*Step{asked, random, inputs}}
	}
	in := func(name, what, before, after string) Fault { return of(seedFile, name, what, before, after) }
	x64 := func(name, what, before, after string) Fault {
		return of("seed/amd64.go", name, what, before, after)
	}
	a64 := func(name, what, before, after string) Fault {
		return of("seed/arm64.go", name, what, before, after)
	}
	walk := "u.Walk(regs, true, trust, mem, b, out)"
	return []Fault{
		x64("seed-adjusted", "the seed's ip is one less", "\to.Verdict = s.judge(", "\tif o.Frames > 0 {\n\t\tregs.RIP--\n\t}\n\to.Verdict = s.judge("),
		a64("seed-adjusted-arm64", "the seed's ip is one instruction less", "\to.Verdict = s.judge(", "\tif o.Frames > 0 {\n\t\tregs.PC -= 4\n\t}\n\to.Verdict = s.judge("),
		x64("seed-not-interrupted", "the interrupted ip is taken for a return address", walk, "u.Walk(regs, false, trust, mem, b, out)"),
		a64("seed-not-interrupted-arm64", "the interrupted ip is taken for a return address", walk, "u.Walk(regs, false, trust, mem, b, out)"),
		x64("seed-no-bounds", "the walk may leave the stack", walk, "u.Walk(regs, true, trust, mem, nil, out)"),
		x64("seed-wrong-sp", "the seed's SP is one word off", "\to.Verdict = s.judge(", "\tif o.Frames > 0 {\n\t\tregs.GPR[context.RSP] += 8\n\t}\n\to.Verdict = s.judge("),
		a64("seed-wrong-sp-arm64", "the seed's SP is two words off", "\to.Verdict = s.judge(", "\tif o.Frames > 0 {\n\t\tregs.Sp += 16\n\t}\n\to.Verdict = s.judge("),
		x64("seed-wrong-register", "a register nobody saved is not looked at", "1<<context.RBX | 1<<context.RBP | 0xf<<context.R12", "1<<context.RBP"),
		a64("seed-wrong-register-arm64", "registers nobody saved are not looked at", "0x7ff << 19", "1 << 29"),
		a64("seed-half-aligned-arm64", "ARM64 stack pointers may be aligned to eight", "spAlign: 16", "spAlign: 8"),
		x64("seed-doubt-forgotten", "the last step's doubt is not the seed's", "out[o.Frames-1].Trust.Then(u.StepTrust())", "trust"),
		a64("seed-doubt-forgotten-arm64", "the last step's doubt is not the seed's", "out[o.Frames-1].Trust.Then(u.StepTrust())", "trust"),
		in("seed-doubtful", "a seed below a guess is sure", " || o.Trust.Doubtful()", ""),
		in("seed-unknown-registers", "a seed whose registers are not known is sure", "end.missing != 0 || ", ""),
		in("seed-misaligned-top", "a misaligned context is walked and believed", "(top.sp&(a.spAlign-1))|(top.ip&(a.ipAlign-1)) != 0 || ", ""),
		in("seed-implausible", "a seed may point anywhere", "!a.plausible(end, b) || ", ""),
		in("seed-misaligned", "a seed's SP may have any alignment", "s.sp&(a.spAlign-1) == 0 && s.sp != 0", "s.sp != 0"),
		in("seed-misaligned-ip", "a seed's ip may stand amid an instruction", "s.ip&(a.ipAlign-1) == 0 && ", ""),
		in("seed-off-the-stack", "a seed may be on another stack", "return !foreign(s.sp, b) && ", "return "),
		in("seed-foreign-stack", "a context on another stack is walked", "b != nil && b.High != 0 && (sp < b.Low || sp >= b.High)", "false"),
		in("seed-bounds-low", "what is below the stack is on it", "sp < b.Low || ", ""),
		in("seed-bounds-off-by-one", "the stack's end is on it", "sp >= b.High", "sp > b.High"),
		in("seed-no-managed", "the stack's end is taken for the walk's failure", "\t\treturn NoManaged\n", "\t\treturn Truncated\n"),
		in("seed-truncated", "a walk that failed is taken for the stack's end", "\t\treturn Truncated\n", "\t\treturn NoManaged\n"),
		in("seed-needed", "managed code on top counts as found", "\t\treturn NotNeeded\n", "\t\treturn Found\n"),
		in("seed-stub-is-method", "a stub on top counts as a method", "o.Frames == 0 && s.isStub(end.ip)", "false"),
		in("seed-usable", "every verdict is usable", "return v == NotNeeded || v == Found", "return v != NoManaged"),
		of(specialsFile, "seed-redirect", "a redirect stub is walked", "s.Redirect.holds(ip) || ", ""),
		of(specialsFile, "seed-dispatcher", "a dispatcher is walked from its start", " || s.Dispatch.holds(ip)", ""),
		of(specialsFile, "seed-misread", "a special may be left as if it had been called", "!exact && s.entered(", "exact && s.entered("),
		of(seederFile, "seeder-no-bounds", "the seed does not know the stack", "\tw.bounds = unwind.Bounds{Low: c.Thread.StackLow, High: c.Thread.StackHigh}\n", ""),
		of(seederFile, "seeder-stale-stack", "the walk reads an earlier thread's stack", "\tw.mem.Reset(c.Stack.Addr, c.Stack.Data)\n", "\tif w.bounds.High == 0 {\n\t\tw.mem.Reset(c.Stack.Addr, c.Stack.Data)\n\t}\n"),
		of(seederFile, "seeder-in-place", "the captured registers become the seed's", "&c.Seed, &s.mem", "&c.Regs, &s.mem"),
		of(seederFile, "seeder-in-place-arm64", "the captured registers become the seed's", "&c.SeedARM64, &s.mem", "&c.ARM64, &s.mem"),
		of(seederFile, "seeder-no-specials", "the process's stubs are not told", "\ts.specials.SeekAMD64(", "\t(*seed.Specials)(nil).SeekAMD64("),
	}
}
