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
