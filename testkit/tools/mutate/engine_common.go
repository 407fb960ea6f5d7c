package main

var (
	commonRowTests  = &Step{"./cfi", []string{"-run", "Common"}}
	commonRuleTests = &Step{"./unwind/amd64", []string{"-run", "^TestCommonRules$"}}
	aligningTests   = &Step{"./unwind/amd64", []string{"-run", "^(TestPEAligningCall|TestPEInterruptedByReturnHook)$"}}
)

// commonFaults are those of the short way to common rows of call frame information, and
// of calls that align a stack.
func commonFaults() []Fault {
	row := func(name, what, before, after string) Fault {
		return engineFault("cfi/common.go", name, what, before, after, commonRowTests)
	}
	rule := func(name, what, before, after string) Fault {
		return engineFault("unwind/amd64/step_cfi.go", name, what, before, after, commonRuleTests, x64Tests)
	}
	call := func(name, what, before, after string) Fault {
		return engineFault("unwind/amd64/pe_aligning.go", name, what, before, after, aligningTests)
	}
	return []Fault{
		row("common-signal", "a signal frame's row is a common one", "c.signal || ", ""),
		row("common-ra", "any return address column is common", "c.ra != AMD64RA || ", ""),
		row("common-code-align", "any code alignment is common", "c.codeAlign != 1 || ", ""),
		row("common-data-align", "any data alignment is common", "c.dataAlign != -8 || ", ""),
		row("common-initial", "what else a CIE says does not count", "want := byte(DW_CFA_nop)", "want := op"),
		row("common-arch", "ARM64 has common rows", " || t.arch != context.ArchAMD64", " || context.ArchAMD64 == context.ArchARM64"),
		row("common-wrap", "locations that wrap are common", " || f.lo >= 1<<63", ""),
		row("common-long", "programs of any length are common", "f.insEnd-f.insAt > maxCommonCode || ", ""),
		row("common-word-0", "a register in no word has no rule", "code[i]-1 > 14 {", "code[i] > 15 {"),
		row("common-word-16", "a word runs into the next register's", "code[i]-1 > 14 {", "code[i]-1 > 15 {"),
		row("common-register", "the return address's rule changes RAX's", "low > 15 || code", "low > 16 || code"),
		row("common-overwrite", "a register that is saved twice is in both words", "words = words&^(15<<(4*low)) |", "words = words |"),
		row("common-restore", "a register is never restored", "\t\t\twords &^= 15 << (4 * low)\n", ""),
		row("common-restore-state", "the CFA is not restored", "reg, off, words = k.Reg, k.Off, k.Words", "reg, words = k.Reg, k.Words"),
		row("common-early", "a row begins an instruction late", "at += low; at > into", "at += low; at >= into"),
		row("common-early-wide", "a row behind a wide step begins an instruction late", "at += delta; at > into", "at += delta; at >= into"),
		row("common-two-bytes", "an offset's second byte counts twice", "<<7", "<<8"),
		row("common-three-bytes", "an offset ends with its second byte", "if i == len(code) || code[i] >= 0x80 {\n\t\t\t\t\treturn false", "if i == len(code) {\n\t\t\t\t\treturn false"),
		row("common-args", "the size of arguments has one byte", " && rest[0] < 0x80:", ":"),
		rule("common-interrupted", "what interrupted code shows is not looked at", "\tif !a.Exact {\n\t\tif r, ok := u.resolveCommon", "\t{\n\t\tif r, ok := u.resolveCommon"),
		rule("common-volatile", "volatile registers need no rule", "row.Words&^slotWords != 0 || ", ""),
		rule("common-odd", "a CFA need not be a multiple of words", "row.Off&7 != 0 || ", ""),
		rule("common-slots", "R12 and those above have their neighbours' places", "w>>(4*dwarfR12)<<8", "w>>(4*dwarfR12)<<12"),
		rule("common-hook", "a hook's row is believed", "u.mayBeHookSlots(slots, int64(row.Off))", "false"),
		engineFault("unwind/amd64/hook.go", "common-hook-saves", "a hook says that it saves registers", "is != 0 && is != word", "is != word", commonRuleTests),
		engineFault("unwind/amd64/hook.go", "common-hook-size", "a hook has more room than it pushes", "return off >= 8*p.words", "return off > 8*p.words", commonRuleTests),

		engineFault("unwind/amd64/step_pe_module.go", "aligning-interrupted", "an interrupted function has been aligned by a call", "\tif !at.Exact {\n\t\tif entry, to, ok", "\t{\n\t\tif entry, to, ok", aligningTests),
		engineFault("unwind/amd64/step_pe_module.go", "aligning-not", "no call aligns a stack", "if entry, to, ok := aligning(t, uint32(rva.IP)); ok {", "if entry, to, ok := aligning(t, uint32(rva.IP)); ok && false {", aligningTests),
		call("aligning-jump", "a jump aligns a stack", " || code[0] != 0xe8 {", " {"),
		call("aligning-function", "a call of a function aligns a stack", "to > entry.Begin && ", ""),
		call("aligning-uncovered", "a call of code without unwind data aligns a stack", "return entry, to, ok && to", "return entry, to, to"),
		call("aligning-unbranched", "nothing need lead to the call", " && branches(t, to, call)", ""),
		call("aligning-branch", "a branch may lead anywhere", "&& to+uint32(int8(code[1])) == target {", "{"),
		call("aligning-any", "any instruction of two bytes is a branch", "code[0]&0xf0 == 0x70 && ", ""),
		call("aligning-far-branch", "a branch of six bytes may lead anywhere", " && to+binary.LittleEndian.Uint32(code[2:]) == target", ""),
		call("aligning-far-any", "any instruction of six bytes is a branch", " && code[1]&0xf0 == 0x80", ""),
		engineFault("unwind/amd64/step_pe_module.go", "throw-returns", "what a throw helper returns to was called", "return res.Machine || interrupted,", "return res.Machine,", aligningTests),
		engineFault("unwind/amd64/hook.go", "throw-landed", "somebody has replaced the return address of a throw helper", "l == nil || l.Interrupted || at", "l == nil || at", aligningTests),
		engineFault("unwind/amd64/step_pe_module.go", "aligning-begin", "the prolog is left where it begins", "u.stepCovered(m, entry, to, s", "u.stepCovered(m, entry, entry.Begin, s", aligningTests),
	}
}
