package main

var (
	commonRowTests  = &Step{"./cfi", []string{"-run", "Common"}}
	commonRuleTests = &Step{"./unwind/amd64", []string{"-run", "^TestCommonRules$"}}
	aligningTests   = &Step{"./unwind/amd64", []string{"-run", "^(TestPEAligningCall|TestPEInterruptedByReturnHook)$"}}
)

// commonFaults are those of the short way to common rows of call frame information, and
// of calls that align a stack.
func commonFaults() []Fault {
	row := faultsOf("cfi/common.go", commonRowTests)
	rule := faultsOf("unwind/amd64/step_cfi.go", commonRuleTests, x64Tests)
	call := faultsOf("unwind/amd64/pe_aligning.go", aligningTests)
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

var mergeTests = &Step{"./stack/merge", nil}

// unseenFaults were written as a list before anybody looked which tests catch them.
func unseenFaults() []Fault { return append(unseenRows(), unseenCode()...) }

// unseenRows are those of the readers of images and of call frame information.
func unseenRows() []Fault {
	return []Fault{
		engineFault("cfi/common.go", "rows-signal", "a signal's frame has common rows", "c.signal || c.ra != AMD64RA", "c.ra != AMD64RA", cfiTests),
		engineFault("cfi/common.go", "rows-initial", "what else the CIE says does not count", "if op != want {", "if op != want && i < len(commonInitial) {", cfiTests),
		engineFault("cfi/common.go", "rows-wraps", "a common row may lie where locations wrap", "!c.common || f.lo >= 1<<63 {", "!c.common {", cfiTests),
		engineFault("cfi/common.go", "rows-column", "a common row saves the return address elsewhere", "low > 15 || code[i]-1 > 14 {", "low > 16 || code[i]-1 > 14 {", cfiTests),
		engineFault("cfi/common.go", "rows-remember", "a remembered row has no register of its own", "reg, off, words = k.Reg, k.Off, k.Words", "off, words = k.Off, k.Words", cfiTests),
		engineFault("cfi/common.go", "rows-leb", "an offset of two bytes has eight bits in the first", "off = off&0x7f | uint64(code[i])<<7", "off = off&0x7f | uint64(code[i])<<8", cfiTests),
		engineFault("cfi/common.go", "rows-leb-long", "an offset of three bytes is cut", "\t\t\t\tif i == len(code) || code[i] >= 0x80 {\n\t\t\t\t\treturn false", "\t\t\t\tif i == len(code) {\n\t\t\t\t\treturn false", cfiTests),
		engineFault("cfi/common.go", "rows-edge", "a row holds at its end too", "if at += low; at > into {", "if at += low; at > into+1 {", cfiTests),
		engineFault("cfi/common.go", "rows-advance2", "advance_loc2 has one byte", "uint64(binary.LittleEndian.Uint16(rest)), 2", "uint64(rest[0]), 2", cfiTests),
		engineFault("cfi/common.go", "rows-args", "args_size has one byte", "len(rest) >= 1 && rest[0] < 0x80:", "len(rest) >= 1:", cfiTests),
		engineFault("cfi/find.go", "find-segment-end", "a segment holds the byte behind it", "pc >= t.segs[lo-1].hi {", "pc > t.segs[lo-1].hi {", cfiTests),
		engineFault("cfi/find.go", "find-together", "of FDEs that start together the last rules", "for k := next - 1; k >= i; k-- {", "for k := i; k < next; k++ {", cfiTests),
		engineFault("cfi/find.go", "find-behind", "an FDE does not go on behind one within it", "\t\t\tat = min(hi, limit)\n", "\t\t\tat = limit\n", cfiTests),
		engineFault("cfi/machine.go", "machine-remembered", "a state that a CIE remembers is another FDE's", "if m.depth == 0 { // a CIE", "if true { // a CIE", cfiTests),
		engineFault("cfi/machine.go", "machine-failed", "rules of a CIE that failed are kept", "\tm.last = nil // if the program fails, the kept rules are no CIE's\n", "", cfiTests),
		engineFault("cfi/machine.go", "machine-go-rows", "rows that are visited have Go's registers", "\trow.Hi = hi\n\tif p.c.byGo(p.arch) {", "\trow.Hi = hi\n\tif false {", cfiTests),
		engineFault("cfi/machine.go", "machine-cie-moves", "a CIE may advance", "return BadOpcode // initial rules have no location", "return None", cfiTests),
		engineFault("cfi/machine.go", "machine-no-cfa", "a row needs no CFA", "if row.CFA.Kind == Unspecified && why == None {", "if false {", cfiTests),
		engineFault("cfi/machine.go", "machine-empty", "empty rows are visited", "if p.visit != nil && to > p.loc {", "if p.visit != nil {", cfiTests),
		engineFault("cfi/opcode.go", "op-number", "a register of more than 16 bits is another", "if reg > 0xffff {\n\t\treturn 0xffff", "if reg > 0x1ffff {\n\t\treturn 0xffff", cfiTests),
		engineFault("cfi/opcode.go", "op-register", "a register does not replace an expression", "\t\trow.CFA.offset(RegisterOffset, row.CFA.Off)\n", "", cfiTests),
		engineFault("cfi/opcode.go", "op-unspecified", "a part of no CFA may change", "if row.CFA.Kind == Unspecified {\n\t\treturn BadOpcode", "if false {\n\t\treturn BadOpcode", cfiTests),
		engineFault("cfi/opcode.go", "op-sign-elsewhere", "x86-64 has signed return addresses", "if p.arch != context.ArchARM64 {\n\t\t\treturn BadOpcode", "if p.arch == context.NoArch {\n\t\t\treturn BadOpcode", cfiTests),
		engineFault("cfi/opcode.go", "op-saved", "room of a restored state is not given back", "\tm.nsaved = s.first\n", "", cfiTests),
		engineFault("cfi/record.go", "rec-eh", "gcc 2's word is of four bytes", "r.Skip(8) // an address", "r.Skip(4) // an address", cfiTests),
		engineFault("cfi/record.go", "rec-segment", "an FDE has no segment", "\tr.Skip(uint64(c.segSize))\n", "", cfiTests),
		engineFault("cfi/record.go", "rec-wide-id", "an id of eight bytes has four", "\t\tc.idSize = 8\n", "\t\tc.idSize = 4\n", cfiTests),
		engineFault("cfi/record.go", "rec-terminator", "a zero ends .debug_frame", "rec.ended = !s.debug", "rec.ended = true", cfiTests),
		engineFault("cfi/record.go", "rec-letter", "letters behind G are not read", "case 'G': //", "case 'g': //", cfiTests),
		engineFault("cfi/record.go", "rec-unknown", "an unknown letter needs no length", "if !known && !c.hasAug {", "if !known && c.version == 0 {", cfiTests),
		engineFault("cfi/record.go", "rec-ra", "a return address register of more than 16 bits is another", "if ra > 0xffff {", "if ra > 0xfffff {", cfiTests),
		engineFault("cfi/first.go", "first-twins-order", "of FDEs that start together the header's last rules", "(!ok || off < first) {", "!ok {", cfiTests),
		engineFault("cfi/first.go", "first-bad-cie", "a CIE that cannot be read is used", "\tif f.of == t && f.cie.off == off {\n\t\treturn f.cie.why == None", "\tif f.of == t && f.cie.off == off {\n\t\treturn true", cfiTests),
		engineFault("cfi/first.go", "first-middle", "the header leads into records that were read", "if off >= readTo && f.at(t, off)", "if off >= 0*readTo && f.at(t, off)", cfiTests),
		engineFault("cfi/expr.go", "expr-nine", "a word has nine bytes", "size < 1 || size > 8 {", "size < 1 || size > 9 {", cfiTests),
		engineFault("cfi/expr.go", "expr-branch", "bra branches on zero", "op == DW_OP_bra && m.pop() == 0", "op == DW_OP_bra && m.pop() != 0", cfiTests),
		engineFault("cfi/expr.go", "expr-unknown", "an unknown register has a value", "env.Known>>reg&1 == 0 {", "env.Known == 0 {", cfiTests),
		engineFault("cfi/expr.go", "expr-bias", "an address is the image's own", "m.r.U64() + env.Bias", "m.r.U64()", cfiTests),
		engineFault("cfi/header.go", "header-twice", "an FDE that the header lists twice is there twice", "\tl.skipped[off] = true // once is enough\n", "", cfiTests),
		engineFault("cfi/header.go", "header-start", "a header's wrong start is not counted", "} else if f.lo != e.lo {", "} else if f.hi < e.lo {", cfiTests),
		engineFault("cfi/load.go", "load-cie", "each FDE has its neighbour's CIE", "if l.last.ok && l.last.key == key {", "if l.last.ok {", cfiTests),
		engineFault("elf/headers.go", "elf-many-programs", "the count of programs in section 0 is not read", "h.phnum == 0xffff && !f.mapped", "h.phnum == 0xfffe && !f.mapped", elfTests),
		engineFault("elf/headers.go", "elf-far-names", "the section of names in section 0 is not read", "if h.shstrndx == 0xffff {", "if h.shstrndx == 0xfffe {", elfTests),
		engineFault("elf/note.go", "elf-id-last", "the last build id counts", "f.buildID == \"\" && typ == noteBuildID", "typ == noteBuildID", elfTests),
		engineFault("elf/note.go", "elf-id-long", "a build id may be of any length", " && len(desc) <= maxBuildID:", ":", elfTests),
		engineFault("elf/note.go", "elf-notes-ever", "notes are read without end", " && f.notes < maxNoteCount;", ";", elfTests),
		engineFault("elf/note.go", "elf-go-name", "any note of that type is Go's", "typ == noteGoBuild && string(name) == \"Go\\x00\\x00\":", "typ == noteGoBuild && len(name) == 4:", elfTests),
		engineFault("elf/section.go", "elf-charge-again", "a section is charged each time", "\tif f.charged[s] {\n\t\treturn nil\n\t}\n", "", elfTests),
		engineFault("elf/section.go", "elf-charge-alone", "each section has the whole budget", "if size > most-f.expanded {", "if size > most {", elfTests),
		engineFault("elf/symbol.go", "elf-names-end", "names reach to the segment's end", "if d.strsz < uint64(len(names)) {", "if d.strsz == 0 {", elfTests),
		engineFault("elf/symbol.go", "elf-no-hash", "a hash table that is not named lies at 0", "b, ok := f.from(f.unrelocate(d.hash)); ok && d.hash != 0 {", "b, ok := f.from(f.unrelocate(d.hash)); ok {", elfTests),
		engineFault("elf/elf.go", "elf-bias", "the bias is the base", "f.bias = base - f.first", "f.bias = base", elfTests),
		engineFault("elf/elf.go", "elf-first-address", "the header lies where the first segment does", "return f.segments[0].Vaddr - f.segments[0].Off", "return f.segments[0].Vaddr", elfTests),
		engineFault("elf/cfi.go", "elf-debug-file", "separate debug information has a header of its own", "return f.sections[i].typ == shtNobits", "return false", elfTests),
		engineFault("elf/relative.go", "elf-relr-outside", "a word outside the file ends the relocations", "return !ok || yield(addr", "return ok && yield(addr", elfTests),
		engineFault("elf/cfi.go", "elf-datarel", "eh_frame_ptr of datarel counts from itself", "\tcase 0x30:\n\t\tv += addr\n", "\tcase 0x30:\n\t\tv += addr + 4\n", elfTests),
		engineFault("pe/exports.go", "pe-forward-edge", "what lies behind the directory is a forwarder", "if rva-d.rva >= d.size {", "if rva-d.rva > d.size {", peTests),
		engineFault("pe/exports.go", "pe-ordinal-base", "ordinals count from 0", "e.Ordinal = base + at", "e.Ordinal = base*0 + at", peTests),
		engineFault("pe/imports.go", "pe-thunk-first", "an image without original thunks imports nothing", "\t\tif thunks == 0 {\n\t\t\tthunks = u32(b[importThunks:])\n\t\t}\n", "", peTests),
		engineFault("pe/imports.go", "pe-thunk-narrow", "a narrow image imports nothing by number", "uint64(w&ordinalFlag32)<<32, 4, ok", "uint64(w & ordinalFlag32), 4, ok", peTests),
		engineFault("pe/imports.go", "pe-hint", "a hint is part of the name", "uint32(v)+hintSize, maxName", "uint32(v), maxName", peTests),
		engineFault("pe/imports.go", "pe-import-names", "names of imports have no bound", "\t\t\troom.text -= len(name)\n", "", peTests),
		engineFault("pe/imports.go", "pe-import-dlls", "names of DLLs have no bound", "\t\troom.text -= len(im.DLL)\n", "", peTests),
		engineFault("pe/header.go", "pe-virtual-size", "bytes behind a section's pages are mapped", "if s.VirtualSize != 0 {\n\t\t\tn = min(n", "if false {\n\t\t\tn = min(n", peTests),
		engineFault("pe/version.go", "pe-version-type", "any resource is a version", "if !types || u32(b) == resourceVersion {", "if true || u32(b) == resourceVersion {", peTests),
		engineFault("pe/version.go", "pe-version-depth", "a version may lie at any depth", "!ok || entry&resourceTree == 0 != (level == resourceLevels-1) {", "!ok {", peTests),
		engineFault("pe/debug.go", "pe-debug-file", "a debug record is in memory only", "if rva != 0 {\n\t\treturn f.Tail(rva, n)", "if true {\n\t\treturn f.Tail(rva, n)", peTests),
		engineFault("pe/debug.go", "pe-debug-kind", "any CodeView record is RSDS", "len(b) < 24 || u32(b) != rsds {", "len(b) < 24 {", peTests),
		engineFault("pe/debug.go", "pe-zdebug", "Go's compressed section ends where its virtual size does", "s.VirtualSize != 0 && s.Name != \".zdebug_frame\" {", "s.VirtualSize != 0 {", peTests),
	}
}

// unseenCode are those of steps, of code that is followed, and of the merge.
func unseenCode() []Fault {
	return []Fault{
		engineFault("unwind/amd64/probe.go", "probe-equal", "below is below or equal", "taken = c.left < c.right", "taken = c.left <= c.right", x64Tests),
		engineFault("unwind/amd64/probe.go", "probe-sign", "less is below", "taken = int64(c.left) < int64(c.right)", "taken = c.left < c.right && c.left != 1", x64Tests),
		engineFault("unwind/amd64/probe.go", "probe-not", "a negated condition is the condition", "return taken != (condition&1 != 0), true", "return taken, true", x64Tests),
		engineFault("unwind/amd64/probe.go", "probe-order", "a comparison's operands change places", "if in.Op == 0x3b {", "if in.Op == 0x39 {", x64Tests),
		engineFault("unwind/amd64/emulate.go", "emulate-and", "and is or", "\t\tr.v &= v.v\n", "\t\tr.v |= v.v\n", x64Tests),
		engineFault("unwind/amd64/emulate.go", "emulate-half", "a store of 32 bits saves a register", "\t\tif !wide {\n", "\t\tif false {\n", x64Tests),
		engineFault("unwind/amd64/emulate.go", "emulate-mov-sign", "a mov of 32 bits extends the sign", "value64{uint64(uint32(in.Imm)), knownValue}", "value64{uint64(in.Imm), knownValue}", x64Tests),
		engineFault("unwind/amd64/emulate.go", "emulate-index", "an index does not count", "in.Base == x86.NoReg || in.Index != x86.NoReg {", "in.Base == x86.NoReg {", x64Tests),
		engineFault("unwind/amd64/emulate.go", "emulate-again", "a second store to a place is lost", "\t\t\te.stores[i].v = v\n", "", x64Tests),
		engineFault("unwind/amd64/follow.go", "follow-other-run", "what an earlier run has seen is not followed again", "key := f.run<<40 | ip&(1<<40-1)", "key := ip & (1<<40 - 1)", x64Tests),
		engineFault("unwind/amd64/follow.go", "follow-address", "an address that the code computes is not known", "if in.PCRel && in.Op == 0x8d && in.Table == 0 {", "if in.PCRel && in.Op == 0x8d && in.Table == 9 {", x64Tests),
		engineFault("unwind/amd64/follow.go", "follow-unaligned", "a function that calls may leave an unaligned stack", "!s.Exact && !entered && to.GPR[context.RSP]&15 != 0 || ", "", x64Tests),
		engineFault("unwind/amd64/follow.go", "follow-back", "a function's beginning is within 16 bytes", "maxBack = 1 << 10", "maxBack = 1 << 4", x64Tests),
		engineFault("unwind/x86/linkage.go", "plt-push", "a push counts behind its last byte only", "form.push != 0 && at >= form.push {", "form.push != 0 && at > form.push {", x64Tests),
		engineFault("unwind/amd64/side.go", "side-module", "two modules share a row", "s.hi == o.hi && s.module == o.module &&", "s.hi == o.hi &&", x64Tests),
		engineFault("unwind/amd64/side.go", "side-corrected", "addresses share what was corrected for one", "like(s.cfa, o.cfa) && like(s.ra, o.ra) && ", "", x64Tests),
		engineFault("unwind/amd64/emulate.go", "emulate-pop-rm", "a pop into a register by r/m keeps it", "\t\te.set(in.RM, v)\n\t} else", "\t} else", x64Tests),
		engineFault("unwind/amd64/emulate.go", "emulate-pop-mem", "a pop into memory stores nothing", "} else if ok {\n\t\te.save(at, v)\n", "} else if ok {\n\t\t_ = at\n", x64Tests),
		engineFault("unwind/amd64/step_cfi.go", "side-val-offset", "val_offset is offset", "return e.CFA + uint64(r.Off), true", "return e.Mem.Word(e.CFA + uint64(r.Off))", x64Tests),
		engineFault("unwind/amd64/step_cfi.go", "plt-offset", "the index is pushed a byte later", "if addr&15 >= 11 {", "if addr&15 > 11 {", x64Tests),
		engineFault("unwind/amd64/rule.go", "pack-signal", "a signal's frame was called", "row.FDE.Signal || row.FDE.RA != dwarfRA {", "row.FDE.RA != dwarfRA {", x64Tests),
		engineFault("unwind/amd64/step.go", "step-left", "a frame that was reached on another stack did not leave it", "\t\tleft = 1\n\t}\n\tstop := stepWords", "\t}\n\tstop := stepWords", x64Tests),
		engineFault("stack/merge/merge.go", "merge-other-arch", "registers of another architecture are merged", "if g == GapNone && m.in.Regs.Arch != m.regs.Arch {", "if g == GapNone && m.in.Regs.Arch == context.NoArch {", mergeTests),
		engineFault("stack/merge/merge.go", "merge-guess-past", "frames that rest on a wrong guess stay", "i >= 0 && m.guess >= 0 && m.sp() > m.in.Frames[i].SP {", "i >= 0 && m.guess >= 0 && m.sp() > m.in.Frames[i].SP && false {", mergeTests),
		engineFault("stack/merge/merge.go", "merge-grown-below", "a frame that has grown may begin below the walk", "if f.SP < m.sp() || f.SP > f.FP {", "if f.SP > f.FP {", mergeTests),
		engineFault("unwind/amd64/step_pe.go", "pe-pushed", "what was pushed behind the frame register is found from RSP", "\tif s.pushed != 0 {", "\tif s.pushed == 1 {", x64Tests),
		engineFault("unwind/amd64/step_pe.go", "pe-pushed-all", "pushes that have not run count", "case ran && c.Op <=", "case (ran || true) && c.Op <=", x64Tests),
		engineFault("unwind/arm64/synchronous.go", "epilog-zeroed-long", "registers to zero behind an epilog make it too long", "if zeroing(w) && zeroes(m, pc) {", "if false {", arm64Tests),
		engineFault("unwind/arm64/quirks.go", "call-thunk-end", "a thunk for calls needs no barrier", "[3]uint32{0xd61f0200, 0xd5033f9f, 0xd5033fdf}", "[1]uint32{0xd61f0200}", arm64Tests),
		engineFault("unwind/arm64/leaf.go", "pe-zeroed-kept", "a register that callers keep may be zeroed behind an epilog", "w&31 < 19 ||", "w&31 < 29 ||", arm64Tests),
		engineFault("stack/merge/merge.go", "merge-hidden-kept", "hidden frames that are removed still count", "\t\t\tm.res.Hidden--\n", "\t\t\t_ = k\n", mergeTests),
		engineFault("stack/merge/merge.go", "merge-stub-size", "a stub without a frame may have pushed any number of words", "if high > low+maxStub {", "if high < low {", mergeTests),
		engineFault("stack/merge/fill.go", "fill-any-ip", "a distance stands for code at other addresses", "known.ip == f.IP && known.size == to.SP-f.SP", "known.size == to.SP-f.SP", mergeTests),
		engineFault("stack/merge/fill.go", "fill-recursion", "a marker is reached at its ip alone", "m.ip() == to.IP && m.sp() == to.SP {", "m.ip() == to.IP {", mergeTests),
		engineFault("stack/merge/fill.go", "fill-doubt", "what a doubtful walk found is shown", "return !m.at.Trust.Doubtful()\n}", "return true\n}", mergeTests),
	}
}
