package main

// elfFaults are those of package elf and what it stands on.
func elfFaults() []Fault {
	return []Fault{
		engineFault("internal/buf/buf.go", "buf-fail-keeps-bytes", "a failed reader still has bytes", "r.fault, r.Data = f, r.Data[:r.pos]", "r.fault = f", bufTests),
		engineFault("internal/buf/buf.go", "buf-at-outside", "a start outside is no failure", "return Reader{Data: data, pos: len(data), fault: FaultShort}", "return Reader{Data: data, pos: len(data)}", bufTests),
		engineFault("internal/buf/buf.go", "buf-u16-big-endian", "two bytes are read the wrong way round", "binary.LittleEndian.Uint16(r.Data[p:])", "binary.BigEndian.Uint16(r.Data[p:])", bufTests),
		engineFault("internal/buf/buf.go", "buf-sleb-sign", "a negative LEB128 is positive", "if b&0x40 != 0 && i < maxLEB-1 {", "if b&0x80 != 0 && i < maxLEB-1 {", bufTests),
		engineFault("internal/buf/buf.go", "buf-uleb-overflow", "a number of more than 64 bits is read", "if i == maxLEB-1 && b > 1 {", "if i == maxLEB-1 && b > 3 {", bufTests),
		engineFault("internal/buf/buf.go", "buf-leb-length", "eleven bytes are a number", "const maxLEB = 10", "const maxLEB = 11", bufTests),
		engineFault("internal/buf/buf.go", "buf-cstring-limit", "a string may be of any length", "&& i-r.pos <= limit; i++", "; i++", bufTests),
		engineFault("internal/buf/expand.go", "expand-any-ratio", "a section may expand to any ratio", "|| size > freeSize && size/MaxRatio > uint64(n)", "", bufTests),
		engineFault("internal/buf/expand.go", "expand-any-size", "a section may expand to any size", "if size > limit || ", "if ", bufTests),
		engineFault("internal/buf/expand.go", "expand-more", "a stream may have more than it states", "\tif err == nil {\n\t\terr = ended(z, size)\n\t}\n", "", bufTests),
		engineFault("internal/buf/expand.go", "expand-magic", "any section is one of GNU", "|| string(raw[:4]) != \"ZLIB\"", "", bufTests),
		engineFault("elf/symbol.go", "elf-hash-first", "a GNU hash table without symbols counts none", "if !r.OK() || last < first {\n\t\treturn first", "if !r.OK() || last < first {\n\t\treturn 0", elfTests),
		engineFault("elf/symbol.go", "elf-hash-chain", "the chain after the last bucket is not followed", "\t\tif r.U32()&1 != 0 {\n\t\t\tbreak\n\t\t}", "\t\tr.U32()\n\t\tbreak", elfTests),
		engineFault("elf/symbol.go", "elf-hash-bloom", "the filter of a GNU hash table is of words of 4 bytes", "r.Skip(4 + bloom*8)", "r.Skip(4 + bloom*4)", elfTests),
		engineFault("elf/symbol.go", "elf-names-any", "symbols may have any number of bytes of names", "\t\t\troom -= len(s.Name)\n", "", elfTests),
		engineFault("elf/symbol.go", "elf-symbol-type", "binding and type change places", "Type: info & 15, Bind: info >> 4", "Type: info >> 4, Bind: info & 15", elfTests),
		engineFault("elf/symbol.go", "elf-unrelocate", "a relocated pointer is not undone", "return addr - f.bias", "return addr", elfTests),
		engineFault("elf/headers.go", "elf-segment-wraps", "a segment may wrap", " || p.off+p.filesz < p.off", "", elfTests),
		engineFault("elf/headers.go", "elf-file-range", "a range past the file is given", "if off > n || size > n-off {", "if off > n || size > n {", elfTests),
		engineFault("elf/headers.go", "elf-file-part", "bytes past the file part are given", "end := min(s.Filesz, n-start)", "end := n - start", elfTests),
		engineFault("elf/headers.go", "elf-mapped-offset", "a mapped image is read by file offsets", "\t\tstart = s.Vaddr - f.first\n", "\t\tstart = s.Off\n", elfTests),
		engineFault("elf/headers.go", "elf-many-sections", "the count in section 0 is not read", "h.shnum = zero.size", "h.shnum = uint64(zero.link)", elfTests),
		engineFault("elf/cfi.go", "elf-ehframeptr-base", "eh_frame_ptr counts from the header", "\t\tv += addr + 4\n", "\t\tv += addr\n", elfTests),
		engineFault("elf/cfi.go", "elf-ehframeptr-sign", "eh_frame_ptr of sdata4 has no sign", "v = uint64(int64(int32(r.U32())))", "v = uint64(r.U32())", elfTests),
		engineFault("elf/note.go", "elf-note-align", "notes are not aligned", "r.Skip(-uint64(r.Pos()) & mask)\n\t\tdesc", "desc", elfTests),
		engineFault("elf/note.go", "elf-note-eight", "notes of 8 bytes alignment are read as of 4", "\t\tmask = 7\n", "\t\tmask = 3\n", elfTests),
		engineFault("elf/section.go", "elf-nobits", "a section without bytes has some", "if s.typ == shtNobits {", "if s.typ == shtNobits+100 {", elfTests),
		engineFault("elf/section.go", "elf-zstd-length", "a zstd stream may expand to less", "err == nil && uint64(len(out)) != size", "err == nil && uint64(len(out)) > size", elfTests),
		engineFault("elf/section.go", "elf-zdebug", ".zdebug_ stands for no .debug_", "== \".zdebug_\"+rest", "== \".zdebug.\"+rest", elfTests),
	}
}

// peFaults are those of package pe and what it stands on.
func peFaults() []Fault {
	return []Fault{
		engineFault("pe/amd64/codes.go", "x64-alloc-small", "ALLOC_SMALL is 8 bytes short", "8*uint32(c.Info) + 8", "8 * uint32(c.Info)", peX64Tests, x64Tests),
		engineFault("pe/amd64/codes.go", "x64-save-scale", "SAVE_NONVOL is scaled by 16", "\tcase UWOP_SAVE_NONVOL:\n\t\tscale = 8", "\tcase UWOP_SAVE_NONVOL:\n\t\tscale = 16", peX64Tests, x64Tests),
		engineFault("pe/amd64/codes.go", "x64-xmm-scale", "SAVE_XMM128 is scaled by 8", "\t\tscale = 16\n", "\t\tscale = 8\n", peX64Tests, x64Tests),
		engineFault("pe/amd64/codes.go", "x64-epilog-distance", "an epilog is at most 255 bytes from the end", "c.Operand = uint32(c.Info)<<8 | uint32(c.Offset)", "c.Operand = uint32(c.Offset)", peX64Tests, x64Tests),
		engineFault("pe/amd64/codes.go", "x64-far-slots", "far codes have two slots", "if c.Slots = 3; len(b) < 6 {", "if c.Slots = 2; len(b) < 6 {", peX64Tests, x64Tests),
		engineFault("pe/amd64/codes.go", "x64-machframe-info", "any machine frame is one", "\t\tif c.Info > 1 {\n\t\t\treturn c, BadOperation\n\t\t}\n\tdefault:\n\t\treturn i.longCode", "\tdefault:\n\t\treturn i.longCode", peX64Tests, x64Tests),
		engineFault("pe/amd64/info.go", "x64-tail-odd", "an odd number of codes is not padded", "2*((int(i.Count)+1)&^1)", "2*int(i.Count)", peX64Tests, x64Tests),
		engineFault("pe/amd64/info.go", "x64-version", "the version has four bits", "Version: b[0] & 7, Flags: b[0] >> 3", "Version: b[0] & 15, Flags: b[0] >> 3", peX64Tests, x64Tests),
		engineFault("pe/amd64/info.go", "x64-frame-offset", "the frame offset is not scaled", "FrameOffset: b[3] &^ 15", "FrameOffset: b[3] >> 4", peX64Tests, x64Tests),
		engineFault("pe/arm64/packed.go", "arm-packed-512", "an allocation of 512 bytes is a short one", "if n < 512 {", "if n <= 512 {", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/packed.go", "arm-packed-local", "a local area of 512 bytes is made apart", "if p.Chained() && size <= 512 {", "if p.Chained() && size < 512 {", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/packed.go", "arm-packed-home", "the first store of the home area is not counted", "\t\tstores--\n", "", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/packed.go", "arm-packed-room", "a frame chain needs no room", "p.FrameSize < p.saveSize()+16", "p.FrameSize < p.saveSize()", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/packed.go", "arm-packed-4080", "a large local area is made at once", "\t\t\tb.alloc(4080)\n\t\t\tsize -= 4080\n", "", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/packed.go", "arm-packed-regf", "RegF counts registers", "return 8 * (uint32(p.RegF) + 1)", "return 8 * uint32(p.RegF)", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/packed.go", "arm-packed-sign", "a signed return address is none", "\tif p.CR == crSigned {\n\t\tb.one(0xfc)\n\t}\n", "", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/packed.go", "arm-packed-epilog", "an epilog's first code is lost", "copy(buf[bufferHalf:], buf[b.epilog:])", "copy(buf[bufferHalf:], buf[b.epilog+1:])", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/xdata.go", "arm-end-c", "end_c does not end the counting", "case b == 0xe4 || b == 0xe5:", "case b == 0xe4:", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/xdata.go", "arm-epilog-return", "an epilog has no return", "return n + 1, fault", "return n, fault", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/xdata.go", "arm-length", "lengths are not scaled", "i.Length = w & 0x3ffff * 4", "i.Length = w & 0x3ffff", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/xdata.go", "arm-no-instruction", "codes without an instruction count", "case b < 0xe8 || b > 0xec:", "case b != 0xff:", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/codes.go", "arm-any-pre", "a pre-indexed save_any_reg has no extra unit", "\tif c.Pre {\n\t\tc.Off++\n\t}\n", "", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/codes.go", "arm-any-scale", "a pair of save_any_reg is scaled by 8", "if c.Pre || c.Reg2 != NoRegister || c.Quad {", "if c.Pre || c.Quad {", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/codes.go", "arm-save-next", "save_next may go past the last register", "int(c.Reg2)+2*n <= last", "int(c.Reg2)+2*(n-1) <= last", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/codes.go", "arm-fplr-x", "save_fplr_x is a unit short", "c.save(SaveFPLRX, 29, 30, 8*(z+1))", "c.save(SaveFPLRX, 29, 30, 8*z)", peARM64Tests, arm64Tests),
		engineFault("pe/arm64/codes.go", "arm-alloc-l", "alloc_l has two bytes", "16 * (uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]))", "16 * (uint32(b[2])<<8 | uint32(b[3]))", peARM64Tests, arm64Tests),
		engineFault("pe/exports.go", "pe-exports-any", "exports may have any number of bytes of names", "\t\tif room -= len(e.Name) + len(e.Forward); room < 0 {", "\t\tif room == 0 {", peTests),
	}
}
