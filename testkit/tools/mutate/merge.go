package main

import "slices"

// inMerge makes a fault in one of the merge's files. At least one of these must catch it: the
// simulated worlds, random merges, or merges of any input.
func inMerge(file string) func(name, what, before, after string) Fault {
	return func(name, what, before, after string) Fault {
		return Fault{Name: name, What: what, File: "stack/merge/" + file, Old: before, New: after,
			By: []*Step{asked, random, inputs}}
	}
}

// mergeFaults are the faults of stack/merge.
func mergeFaults() []Fault { return slices.Concat(mergedFaults(), besideFaults(), tableFaults()) }

// mergedFaults are those of how frames of the CLR and of the walk become one stack.
func mergedFaults() []Fault {
	in, out := inMerge("merge.go"), inMerge("write.go")
	const same = "fid == f.Function && (f.SP == m.sp() || f.FP == m.fp() && f.FP != 0 && m.grown(i))"
	return []Fault{
		in("merge-by-ip", "a frame is matched by its ip alone", same, "fid == f.Function && f.IP == m.ip()"),
		in("merge-by-method", "a frame is matched by its method alone", same, "fid == f.Function"),
		in("merge-by-sp", "a frame is matched by its SP alone", same, "f.SP == m.sp()"),
		in("merge-by-fp", "a frame is matched by its frame pointer alone", same,
			"f.FP == m.fp() && f.FP != 0"),
		in("merge-by-fp-alone", "a frame is matched by method and frame pointer alone", same,
			"fid == f.Function && f.FP == m.fp()"),
		in("merge-stub-match", "on ARM64 a stub is taken for its caller",
			"f.SP == m.sp() && !(m.arch.callPushes == 0 && m.at.Exact)", "f.SP == m.sp()"),
		out("merge-dropped-native", "the last unmanaged frame of a block is dropped",
			"for i := range m.buf[:n] {", "for i := range m.buf[:max(0, n-1)] {"),
		out("merge-native-twice", "the first unmanaged frame of a block is there twice",
			"\tfor i := range m.buf[:n] {",
			"\tif n > 0 && m.room() {\n\t\t*m.add() = Frame{IP: m.buf[0].IP, SP: m.buf[0].SP, Kind: m.buf[0].Kind, Trust: m.buf[0].Trust}\n\t}\n\tfor i := range m.buf[:n] {"),
		in("merge-dropped-managed", "the first of the CLR's frames is dropped", "\t\there = m.tables",
			"\t\tif m.res.Managed == 1 {\n\t\t\tm.res.N--\n\t\t}\n\t\there = m.tables"),
		in("merge-wrong-frame", "a frame has its neighbour's ip", "g.FP, g.Function, g.Module = f.IP,",
			"g.FP, g.Function, g.Module = frames[max(0, i-1)].IP,").also("g.IP, g.FP, g.Exact = m.ip(), m.fp(), m.at.Exact", "g.FP, g.Exact = m.fp(), m.at.Exact"),
		in("merge-wrong-function", "a managed frame has no method",
			"= f.IP, f.SP, f.FP, f.Function, -1", "= f.IP, f.SP, f.FP, 0, -1"),
		in("merge-wrong-sp", "on ARM64 a guessed SP replaces the CLR's",
			"if !m.arch.frameRecord || !m.at.Trust.Doubtful() {", "if true {"),
		in("merge-marker-skipped", "the walk goes on from the marker after the next",
			"\tm.next = i + 1\n", "\tm.next = i + 2\n"),
		in("merge-marker-again", "the frames after a marker are taken twice", "\tm.next = i + 1\n",
			"\tm.next = max(i, 1) - 1\n"),
		in("merge-marker-unread", "the walk goes on from where it stood", "\tm.stand(&frames[i])\n",
			"\tm.at.Exact, m.at.Trust = false, unwind.TrustCLR\n"),
		in("merge-marker-exact", "a marker's ip is taken for an interrupted one",
			"\tm.at.Exact, m.at.Trust = false, unwind.TrustCLR\n",
			"\tm.at.Exact, m.at.Trust = true, unwind.TrustCLR\n"),
		out("merge-gap-lost", "a gap is not written",
			"*m.add() = Frame{Kind: unwind.KindGap, Gap: g, Module: -1, SP: m.sp()}", "_ = n"),
		out("merge-gap-twice", "a gap is written twice", " && (n == 0 || m.out[n-1].Kind != unwind.KindGap)",
			"").also("\tif m.res.Gap == GapNone {\n\t\tm.res.Gap = g\n\t}\n",
			"\tif m.res.Gap == GapNone {\n\t\tm.res.Gap = g\n\t\tm.gap(g)\n\t}\n"),
		out("merge-gap-unsaid", "a stack with a gap is said to be complete", "\t\tm.res.Gap = g\n", ""),
		out("merge-last-gap", "the last gap is said to be the first",
			"\tif m.res.Gap == GapNone {\n", "\tif g != GapNone {\n"),
		in("merge-lost-managed", "what the CLR reported below the walk's end is dropped",
			"return m.nextManaged() >= 0 && m.lost(GapLostManaged)", "return false"),
		in("merge-no-resync", "the stack ends at the first gap", "return i >= 0 && m.report(i, false)",
			"return i < -1 && m.report(i, false)"),
		in("merge-mismatch", "a walk that passed a frame goes on",
			"m.sp() > m.in.Frames[i].SP && m.sp() > m.in.Frames[i].FP", "false"),
		in("merge-refused", "a refusal leaves no gap", "m.tables == nil && known && m.refused()", "false"),
		inMerge("managed.go")("merge-cut", "a report that ends early leaves no gap",
			"\tif m.tables == nil {\n\t\tm.gap(GapCLRCut)\n", "\tif m.tables == nil {\n"),
		in("merge-capture-status", "a capture that failed is merged", "g := gapOfCapture(m.in.Status)\n",
			"g := GapNone\n\tif k := gapOfCapture(m.in.Status); k == GapGone {\n\t\tg = k\n\t}\n"),
		out("merge-no-room", "a stack is written beyond its room", "m.res.N < len(m.out)-1", "true"),
		out("merge-no-room-for-gap", "no room is kept for the gap",
			"m.res.N < len(m.out)-1", "m.res.N < len(m.out)"),
		out("merge-full-unsaid", "unmanaged frames without room leave no gap",
			"\t\t\tm.gap(GapLimit)\n\t\t\treturn\n", "\t\t\treturn\n"),
		in("merge-no-entry", "code at its first instruction is stepped over by a guess",
			"m.at.Exact && m.sp()+m.arch.callPushes == f.SP && m.fp() == f.FP", "m.arch.callPushes > 8"),
		in("merge-no-frameless", "a stub without a frame is stepped over by a guess",
			"f.FP == m.fp() && f.FP != 0 && m.sp() <= f.SP", "false"),
		in("merge-frameless-hides-native",
			"a stub without a frame hides the native functions that have called it",
			" && !m.codeBetween(m.sp(), f.SP-m.arch.callPushes)", ""),
		in("merge-hijack", "a replaced return address is walked", "m.hijacked(&m.in.Frames[i])", "false"),
		in("merge-hidden-unseen", "a hidden frame is not written", "\tm.res.Hidden++\n}", "\tm.res.N--\n}"),
		in("merge-verdict", "the verdict is lost", "\tm.res.Verdict = m.top.Verdict\n", ""),
		in("merge-other-stack", "the stack of an earlier capture is read",
			"\tm.mem.Reset(c.Stack.Addr, c.Stack.Data)\n",
			"\tif m.bounds.High == 0 {\n\t\tm.mem.Reset(c.Stack.Addr, c.Stack.Data)\n\t}\n"),
		in("merge-allocates", "a merge allocates", "\tm.at = unwind.State{Regs: &m.regs}\n",
			"\tm.at = unwind.State{Regs: &m.regs}\n\tlast = make([]Frame, len(out)+1)\n").also("// Merger merges", "var last []Frame\n\n// Merger merges"),
		in("merge-leaf-seedless", "the leaf walk does not know the process's stubs",
			"seed.Find(m.specials, ", "seed.Find(nil, "),
		in("merge-leaf-stale", "the leaf walk begins where the last merge ended",
			"\tm.regs.Copy(&m.in.Regs)\n", ""),
	}
}

// besideFaults are those of architectures, of failed captures, of guessed steps.
func besideFaults() []Fault {
	arch, gap, managed := inMerge("arch.go"), inMerge("gap.go"), inMerge("managed.go")
	return []Fault{
		arch("merge-entry-arm64", "on ARM64 a call pushes", "{frameRecord: true}",
			"{callPushes: 8, frameRecord: true}"),
		gap("gap-truncated", "the Truncated flag is ignored",
			"\t\tif truncated {\n\t\t\treturn GapTruncated\n\t\t}\n", ""),
		gap("gap-no-answer", "a thread that did not answer is gone",
			"\treturn GapNoAnswer\n", "\treturn GapGone\n"),
		gap("gap-foreign", "a foreign stack is no gap", "\t\treturn GapForeignStack\n\tcase o.Verdict",
			"\t\treturn GapNone\n\tcase o.Verdict"),
		managed("merge-step-exact", "a guessed step's ip is taken for an interrupted one",
			"return m.w.Step(&m.at, &m.mem, &m.guesses, &m.buf[0])",
			"stop := m.w.Step(&m.at, &m.mem, &m.guesses, &m.buf[0])\n\tm.at.Exact = true\n\treturn stop"),
		managed("merge-step-trusted", "a guessed step is trusted",
			"return m.w.Step(&m.at, &m.mem, &m.guesses, &m.buf[0])",
			"stop := m.w.Step(&m.at, &m.mem, &m.guesses, &m.buf[0])\n\tm.at.Trust = unwind.TrustUnwindInfo\n\treturn stop"),
	}
}

// tableFaults are those of steps by the runtime's own tables.
func tableFaults() []Fault {
	tables := func(file, name, what, before, after string) Fault {
		f := inMerge(file)(name, what, before, after)
		f.By = []*Step{more}
		return f
	}
	// alone makes a fault that merge's own tests catch.
	alone := faultsOf("stack/merge/managed.go", &Step{"./stack/merge", nil})
	return []Fault{
		tables("managed.go", "tables-nowhere", "a step by the tables does not move the merge",
			"\tm.regs.Copy(&m.to)\n", ""),
		alone("merge-entries-stale", "the entries of the first table are used for each table",
			"\tif e.table != t {", "\tif e.table == nil {"),
		alone("merge-cut-given-up", "a report that ends early is not completed by the tables",
			"\tif !m.stepByTables() {\n", "\tif true {\n"),
		alone("merge-cut-exact", "behind such a report the walk stands at an interrupted instruction",
			"\t\tm.at.Exact = false\n\t}\n", "\t\tm.at.Exact = true\n\t}\n"),
		alone("merge-cut-later", "where the tables end too, nothing says that the report did",
			"\t\t\tm.gap(GapCLRCut)\n", ""),
		tables("managed.go", "tables-hijack-kept", "a hijacked return address is taken for the true one",
			"if m.entries.has(m.w.Table(), m.to.IP()) {", "if false {"),
		tables("managed.go", "tables-not-asked", "managed frames are stepped over by a guess, tables or not",
			"\tif m.tables != nil {\n", "\tif false {\n"),
		tables("managed.go", "tables-exact", "a caller found by the tables counts as interrupted",
			"m.at.Exact, m.at.Trust = m.ahead.Exact, m.ahead.Trust",
			"m.at.Exact, m.at.Trust = true, m.ahead.Trust"),
		tables("fill.go", "fill-nothing", "what the CLR leaves out between two frames is not looked for",
			"if known.ip == f.IP && known.size == to.SP-f.SP {", "if true {"),
		tables("fill.go", "fill-by-ip", "one frame without a hidden one stands for all at its ip",
			"known.ip == f.IP && known.size == to.SP-f.SP", "known.ip == f.IP"),
	}
}
