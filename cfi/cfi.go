// Package cfi reads DWARF call frame information of x86-64 and AArch64 images: .eh_frame, .eh_frame_hdr and
// .debug_frame.
//
// Sources: DWARF 5 sections 6.4 (call frame information), 2.5 and 7.7.1 (expressions) and 7.24 (encoding);
// Linux Standard Base Core 5.0, chapter 10.6 "Exception Frames" (.eh_frame, .eh_frame_hdr) and 10.5 (pointer
// encodings); System V psABI for x86-64, release 1.0 (register numbers, figure 3.36); "DWARF for the Arm
// 64-bit Architecture", 2025Q4 (register numbers, RA_SIGN_STATE).
//
// Glossary. CIE: common information entry, the shared part of many functions. FDE: frame description entry,
// the program of one function. Row: the rules that hold at one pc. CFA: canonical frame address, the stack
// pointer's value in the caller after the return. Column: the index of a register's rule in a Row.
//
// Strategy: Load reads every record once into a sorted index of FDEs. Open leaves that for later (first.go:
// until then look-ups use .eh_frame_hdr). In the index, .eh_frame_hdr only adds records that the linear
// reading did not reach, because real tables lack entries, and a miss there proves nothing. Row then
// interprets one FDE with storage of fixed size. Three paths execute programs. Machine.instruction executes
// every opcode. program.quick executes runs of the most common ones before it: a row takes a tenth to a fifth
// less time. CommonRow serves return addresses of x86-64: its row is a few words and takes less than half of
// the time. Tests compare the paths row by row.
//
// Known gaps: sections of 4 GiB and more; big-endian and 32-bit targets; SVE registers.
package cfi

import "github.com/seedwalk/seedwalk/context"

// Sections are the bytes of an image's call frame information and the image's
// own virtual addresses of them. An absent section is nil.
type Sections struct {
	Arch           context.Arch // architecture of the table's register numbers
	EHFrame        []byte
	EHFrameAddr    uint64
	EHFrameHdr     []byte
	EHFrameHdrAddr uint64
	DebugFrame     []byte
	DebugFrameAddr uint64 // usually 0: the section is not mapped
	TextAddr       uint64 // base of DW_EH_PE_textrel
	DataAddr       uint64 // base of DW_EH_PE_datarel: the global offset table
}

// DWARF register numbers.
const (
	AMD64RBX = 3
	AMD64RBP = 6
	AMD64RA  = 16
	ARM64LR  = 30
	ARM64SP  = 31
)

// Columns is the number of registers a Row has rules for.
const Columns = 67

// Column returns the index in Row.Regs of a DWARF register number, or -1 if
// rows do not keep it. x86-64 keeps 0-32 (general registers, return address,
// XMM0-15), AArch64 0-34 (x0-x30, sp, pc, ELR_mode, RA_SIGN_STATE) and 64-95
// (v0-v31, in columns 35-66).
func Column(a context.Arch, reg uint64) int {
	switch {
	case a == context.ArchAMD64 && reg <= 32, a == context.ArchARM64 && reg <= 34:
		return int(reg)
	case a == context.ArchARM64 && reg >= 64 && reg <= 95:
		return int(reg) - 64 + 35
	}
	return -1
}

// RegisterOf is the inverse of Column: the DWARF number of a column.
func RegisterOf(a context.Arch, column int) uint16 {
	if a == context.ArchARM64 && column >= 35 {
		return uint16(column + 64 - 35)
	}
	return uint16(column)
}

// CalleeSaved reports whether a function must preserve a DWARF register according to the architecture's ELF
// psABI. If a row has no rule for such a register, the caller's value is the current one. (rbx, rbp, r12-r15;
// x19-x29 and d8-d15.)
func CalleeSaved(a context.Arch, reg uint16) bool {
	if a == context.ArchAMD64 {
		return reg == AMD64RBX || reg == AMD64RBP || reg >= 12 && reg <= 15
	}
	return reg >= 19 && reg <= 29 || reg >= 72 && reg <= 79
}
