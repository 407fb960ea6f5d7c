package main

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
