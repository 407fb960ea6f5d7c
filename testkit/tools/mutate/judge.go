package main

// judge is the tests of the simulator's judge.
var judge = &Step{"./sim", []string{"-run", "^TestJudge"}}

func inJudge(file string) func(name, what, before, after string) Fault {
	return func(name, what, before, after string) Fault {
		return Fault{Name: "judge-" + name, What: what, File: "sim/" + file, Old: before, New: after, By: []*Step{judge}}
	}
}

// judgeFaults are those of the judge of merged stacks and seeds. A judge with one of
// them accepts a wrong stack or refuses a true one.
func judgeFaults() []Fault {
	in, label := inJudge("check.go"), inJudge("label.go")
	return []Fault{
		// The comparison.
		in("no-counts", "the result is not held against its frames", "if err := miscounted(out, res); err != nil {", "if err := miscounted(out, res); false {"),
		in("no-order", "guesses may go past the CLR's frames", "if err := outOfOrder(out); err != nil {", "if err := outOfOrder(out); false {"),
		in("no-verdict", "a merge's verdict is not judged", "if err := h.misjudged(truth, res.Verdict); err != nil {", "if err := h.misjudged(truth, res.Verdict); false {"),
		in("no-frames", "frames are not compared", "for i := range out {\n\t\tif why", "for i := range out[:0] {\n\t\tif why"),
		in("no-leaf", "the leaf is not compared", "for i := range out {\n\t\tif why", "for i := range out {\n\t\tif i == 0 {\n\t\t\tcontinue\n\t\t}\n\t\tif why"),
		in("no-end", "a stack may end anywhere", "return c.unreported, c.end()", "return c.unreported, nil"),
		in("first-only", "only the first frame is compared", "return c.unreported, fmt.Errorf(\"frame %d: %s\", i, why)\n\t\t}\n", "return c.unreported, fmt.Errorf(\"frame %d: %s\", i, why)\n\t\t}\n\t\tbreak\n"),
		in("gap-forgets", "behind a gap a frame may stand anywhere", "\tif f.Kind == unwind.KindGap {\n\t\tc.loose = true", "\tif f.Kind == unwind.KindGap {\n\t\tc.next, c.loose = 0, true"),
		in("gap-strict", "nothing may be missing behind a gap", "\tif f.Kind == unwind.KindGap {\n\t\tc.loose = true", "\tif f.Kind == unwind.KindGap {\n\t\tc.loose = false"),
		in("gap-for-good", "behind a gap frames may be missing to the end", "c.next, c.loose, c.unreported = i+1, false, c.unreported+skipped", "c.next, c.unreported = i+1, c.unreported+skipped"),
		in("begins-loose", "frames may be missing above the first", "c := comparison{h: h, truth: truth}", "c := comparison{h: h, truth: truth, loose: true}"),
		in("again", "a frame may be there twice", "c.next, c.loose, c.unreported = i+1, false", "c.next, c.loose, c.unreported = i, false"),
		in("skips", "a frame of the truth is passed over", "c.next, c.loose, c.unreported = i+1, false", "c.next, c.loose, c.unreported = i+2, false"),
		in("from-the-top", "a frame is looked for from the leaf on", "for i := c.next; i < len(c.truth); i++ {", "for i := 0; i < len(c.truth); i++ {"),
		in("no-labels", "labels are not compared", "return c.h.mislabeled(c.truth, i, f)", "return \"\""),
		in("leaf-labels", "labels are compared with the frame above", "return c.h.mislabeled(c.truth, i, f)", "return c.h.mislabeled(c.truth, max(0, i-1), f)"),
		in("loose-always", "frames may be missing everywhere", "} else if !c.loose {", "} else if false {"),
		in("loose-never", "frames are missing nowhere", "} else if !c.loose {", "} else {"),
		in("sure-free", "a sure frame need not be in the truth", "\tif !f.Trust.Doubtful() {\n\t\treturn", "\tif false {\n\t\treturn"),
		in("doubt-strict", "a doubtful frame must be in the truth", "\tif !f.Trust.Doubtful() {\n\t\treturn", "\tif true {\n\t\treturn"),
		in("doubt-tight", "nothing may be missing behind a wrong guess", "\tc.loose = true\n\treturn \"\"\n}\n\n// end", "\treturn \"\"\n}\n\n// end"),
		in("end-loose", "the end may be missing behind any frame", "if c.loose {", "if c.loose || c.next > 0 {"),
		in("end-strict", "the end may not be missing behind a gap", "if c.loose {", "if false {"),
		in("end-one", "the root may be missing", "if c.next == len(c.truth) {", "if c.next >= len(c.truth)-1 {"),

		// Seeds.
		in("seed-verdict", "a seed's verdict is not judged", "if err := h.misjudged(truth, v); err != nil || v != seed.Found {", "if err := h.misjudged(truth, v); v != seed.Found {\n\t\terr = nil"),
		in("seed-ip", "a seed's ip is not judged", "if st.PC != want.PC {", "if false {"),
		in("seed-registers", "a seed's registers are not judged", "if st.R[r] != want.R[r] {", "if false {"),
		in("seed-vectors", "a seed's vector registers are not judged", "if h.vectorPreserved(r) && st.V[r] != want.V[r] {", "if false {"),
		in("seed-none", "the verdict that no frame is managed is not judged", "case v == seed.NoManaged && top < len(truth):", "case false:"),
		in("seed-needless", "the verdict that the top is managed is not judged", "case v == seed.NotNeeded && top != 0:", "case false:"),
		in("seed-nowhere", "a seed may be found where nothing is managed", "case v == seed.Found && top == len(truth):", "case false:"),
		in("seed-arm-sp", "on ARM64 a seed's SP is not judged", "25, 26, 27, 28, 29, 31}", "25, 26, 27, 28, 29}"),
		in("seed-arm-last", "on ARM64 x28 is not judged", "25, 26, 27, 28, 29, 31}", "25, 26, 27, 29, 31}"),
		in("seed-pe-last", "on Windows r15 is not judged", "return []image.Reg{3, 4, 5, 6, 7, 12, 13, 14, 15}", "return []image.Reg{3, 4, 5, 6, 7, 12, 13, 14}"),
		in("seed-elf-last", "on Linux r15 is not judged", "return []image.Reg{3, 4, 5, 12, 13, 14, 15}", "return []image.Reg{3, 4, 5, 12, 13, 14}"),
		in("seed-arm-vectors", "on ARM64 vector registers are not judged", "return r >= 8 && r < 16", "return false"),
		in("seed-pe-vectors", "on Windows vector registers are not judged", "return h.w.Format() == image.PE && r >= 6 && r < 16", "return false"),

		// Counts.
		label("gap-reason", "a gap needs no reason", "case f.Gap == merge.GapNone:", "case false:"),
		label("gap-twice", "a gap may follow a gap", "case i > 0 && out[i-1].Kind == unwind.KindGap:", "case false:"),
		label("last-gap", "the last gap counts", "case first == merge.GapNone:", "default:"),
		label("number", "the number of frames is not judged", "case res.N != len(out):", "case res.N > len(out):"),
		label("number-more", "too many frames may be counted", "case res.N != len(out):", "case res.N < len(out):"),
		label("gap-said", "the result's gap is not judged", "case res.Gap != first:", "case false:"),
		label("gap-unsaid", "a stack with a gap may be said to be complete", "case res.Gap != first:", "case res.Gap != first && res.Gap != merge.GapNone:"),
		label("hidden", "hidden frames are not counted", "case res.Hidden != managed-res.Managed:", "case false:"),
		label("hidden-stubs", "stubs are not counted", "if f.Kind == unwind.KindManaged || f.Kind == unwind.KindStub {", "if f.Kind == unwind.KindManaged {"),
		label("doubtful", "doubtful frames are not counted", "case res.Doubtful != doubtful:", "case false:"),
		label("doubtful-fewer", "too few doubtful frames may be counted", "case res.Doubtful != doubtful:", "case res.Doubtful > doubtful:"),
		label("confirmed", "the CLR confirms nothing", "\t\t\tguess = -1 // confirmed\n", "\t\t\t// confirmed\n"),

		// Order and place.
		label("order-equal", "a guess may be at the CLR's frame", "f.SP < behind:", "f.SP+8 < behind:"),
		label("order-sure", "only sure frames are held against the order", "\t\tcase f.Trust.Doubtful():\n\t\t\tif f.SP > behind", "\t\tcase !f.Trust.Doubtful():\n\t\t\tif f.SP > behind"),
		label("place-ip", "an ip is not compared", "if f.IP == t.State.PC && f.SP == sp &&", "if f.SP == sp &&"),
		label("place-sp", "an sp is not compared", "if f.IP == t.State.PC && f.SP == sp &&", "if f.IP == t.State.PC &&"),
		label("place-fp", "an fp is not compared", "(f.FP == fp || f.Trust.Doubtful() && !method)", "(true || method)"),
		label("place-fp-method", "a method's fp is not compared", "(f.FP == fp || f.Trust.Doubtful() && !method)", "(f.FP == fp || method)"),
		label("place-fp-doubt", "a doubtful frame's fp is compared", "(f.FP == fp || f.Trust.Doubtful() && !method)", "(f.FP == fp || false && method)"),

		// Labels.
		label("function", "methods are not compared", "case f.Function != id:", "case false:"),
		label("function-none", "a method may have no id", "case f.Function != id:", "case f.Function != id && f.Function != 0:"),
		label("function-any", "what is no method may have an id", "case f.Function != id:", "case f.Function != id && id != 0:"),
		label("kind", "kinds are not compared", "case f.Kind != kind:", "case false:"),
		label("kind-native", "an unmanaged frame may be of any kind", "case f.Kind != kind:", "case f.Kind != kind && kind != unwind.KindNative:"),
		label("kind-stub", "a stub may be of any kind", "case f.Kind != kind:", "case f.Kind != kind && kind != unwind.KindStub:"),
		label("kind-signal", "a signal's frame may be of any kind", "case f.Kind != kind:", "case f.Kind != kind && kind != unwind.KindSignal:"),
		label("module", "modules are not compared", "case f.Module != module:", "case false:"),
		label("module-none", "a frame may be in no module", "case f.Module != module:", "case f.Module != module && f.Module >= 0:"),
		label("module-any", "the CLR's code may be in a module", "case f.Module != module:", "case f.Module != module && module >= 0:"),
		label("exact-more", "a caller may be said to be interrupted", "case f.Exact && !t.Exact:", "case false:"),
		label("exact-less", "what was interrupted may be said to have called", "case t.Exact && !f.Exact && !unmarked:", "case false && unmarked:"),
		label("exact-leaf-only", "only the leaf is held to be interrupted", "case t.Exact && !f.Exact && !unmarked:", "case t.Exact && !f.Exact && !unmarked && i == 0:"),
		label("exact-strict", "the CLR's frames must be marked too", "case t.Exact && !f.Exact && !unmarked:", "case t.Exact && !f.Exact && (true || unmarked):"),
		label("frame-gap", "a frame may have the reason of a gap", "case f.Gap != merge.GapNone:\n\t\treturn fmt.Sprintf(\"%s has", "case false:\n\t\treturn fmt.Sprintf(\"%s has"),
		label("trust", "trust is not judged", "case !h.reaches(truth, i, f.Trust):", "case false:"),
		label("trust-none", "a frame needs no trust", "\tcase unwind.TrustNone:\n\t\treturn false", "\tcase unwind.TrustNone:\n\t\treturn true"),
		label("trust-context", "any frame may be from the context", "if i == 0 || by == unwind.TrustContext {", "if i == 0 {"),
		label("trust-leaf", "the leaf may be found by anything", "if i == 0 || by == unwind.TrustContext {", "if by == unwind.TrustContext {"),
		label("trust-clr", "the CLR may report anything", "return code != vm.Dynamic", "return code >= 0"),
		label("trust-cfi", "a PE image may have CFI", "return h.w.Format() == image.ELF", "return true"),
		label("trust-pe", "an ELF image may have PE's unwind data", "return h.w.Format() == image.PE || ", "return true || "),
	}
}
