package pe

import "encoding/binary"

// ARM64Info is the unwind information of one function or fragment, from a
// packed word or an .xdata record. Its slices alias the bytes it was decoded
// from (for a packed word the caller's buffer).
type ARM64Info struct {
	Length    uint32 // of the function, bytes
	Version   uint8
	X         bool   // has an exception handler
	E         bool   // one epilog, at the function's end, whose first code is Epilogs
	Extended  bool   // the header has a second word
	Fragment  bool   // packed flag 2: the prolog ran elsewhere, there is no epilog
	Epilogs   uint32 // number of scopes; with E the index of the epilog's first code
	CodeWords uint32
	Codes     []byte
	Handler   uint32 // RVA if X
	Data      uint32 // offset in the record of the handler's data if X
	Packed    ARM64Packed
	scopes    []byte
}

// ARM64XdataHead is how many bytes of a record ARM64XdataSize wants to see; a
// record of a single header word has 4.
const ARM64XdataHead = 8

// ARM64XdataSize returns the size of an .xdata record in bytes, without the
// handler's data. head is its first 8 bytes, or the 4 that are there. The size
// is below 400 KiB.
func ARM64XdataSize(head []byte) (int, ARM64Fault) {
	i, at, fault := decodeXdataHeader(head)
	if !fault.OK() {
		return 0, fault
	}
	n := at + 4*int(i.CodeWords)
	if !i.E {
		n += 4 * int(i.Epilogs)
	}
	if i.X {
		n += 4
	}
	return n, ARM64Fault{}
}

// decodeXdataHeader returns the header's fields and its size.
func decodeXdataHeader(b []byte) (i ARM64Info, size int, fault ARM64Fault) {
	if len(b) < 4 {
		return i, 0, ARM64Fault{ARM64BadRecord, 0, uint32(len(b))}
	}
	w := binary.LittleEndian.Uint32(b)
	i.Length = w & 0x3ffff * 4
	i.Version = uint8(w >> 18 & 3)
	i.X, i.E = w>>20&1 != 0, w>>21&1 != 0
	i.Epilogs, i.CodeWords = w>>22&31, w>>27
	if i.Version != 0 {
		return i, 0, ARM64Fault{ARM64BadVersion, 0, uint32(i.Version)}
	}
	if i.Epilogs != 0 || i.CodeWords != 0 {
		return i, 4, ARM64Fault{}
	}
	if len(b) < 8 {
		return i, 0, ARM64Fault{ARM64BadRecord, 4, uint32(len(b))}
	}
	w = binary.LittleEndian.Uint32(b[4:])
	i.Extended, i.Epilogs, i.CodeWords = true, w&0xffff, w>>16&0xff
	return i, 8, ARM64Fault{}
}

// DecodeARM64Xdata decodes an .xdata record. b begins with the record and holds
// at least ARM64XdataSize bytes of it.
func DecodeARM64Xdata(b []byte) (ARM64Info, ARM64Fault) {
	i, at, fault := decodeXdataHeader(b)
	if !fault.OK() {
		return i, fault
	}
	if !i.E {
		end := at + 4*int(i.Epilogs)
		if end > len(b) {
			return i, ARM64Fault{ARM64BadRecord, uint32(at), i.Epilogs}
		}
		i.scopes, at = b[at:end:end], end
	}
	end := at + 4*int(i.CodeWords)
	if end > len(b) {
		return i, ARM64Fault{ARM64BadRecord, uint32(at), i.CodeWords}
	}
	i.Codes, at = b[at:end:end], end
	if i.X {
		if at+4 > len(b) {
			return i, ARM64Fault{ARM64BadRecord, uint32(at), 0}
		}
		i.Handler, i.Data = binary.LittleEndian.Uint32(b[at:]), uint32(at+4)
	}
	return i, ARM64Fault{}
}

// DecodeARM64PackedInfo decodes a packed word. The codes are written into buf.
func DecodeARM64PackedInfo(word uint32, buf *ARM64Buffer) (ARM64Info, ARM64Fault) {
	p := DecodeARM64Packed(word)
	i := ARM64Info{Length: p.Length, Packed: p, E: true, Fragment: p.Flag == ARM64FlagFragment}
	if fault := p.check(word); !fault.OK() {
		return i, fault
	}
	codes, epilog := p.Expand(buf)
	i.Codes, i.Epilogs = codes, uint32(epilog)
	return i, ARM64Fault{}
}

// ARM64Scope is one epilog of an .xdata record.
type ARM64Scope struct {
	Start    uint32 // offset of the epilog in the function, bytes
	Reserved uint8  // 4 bits, 0
	Index    uint32 // byte index of its first code
}

// Scopes returns the number of scopes: 0 with E.
func (i *ARM64Info) Scopes() int { return len(i.scopes) / 4 }

// Scope returns scope k, 0 <= k < Scopes.
func (i *ARM64Info) Scope(k int) ARM64Scope {
	w := binary.LittleEndian.Uint32(i.scopes[4*k:])
	return ARM64Scope{Start: w & 0x3ffff * 4, Reserved: uint8(w >> 18 & 15), Index: w >> 22}
}

// ARM64Where says in which part of a function an instruction is.
type ARM64Where uint8

const (
	ARM64Prolog ARM64Where = iota
	ARM64Body
	ARM64Epilog
)

func (w ARM64Where) String() string {
	return [...]string{"prolog", "body", "epilog", "where?"}[min(w, 3)]
}

// Count returns the number of instructions that the codes from index on stand
// for, up to end or end_c. The codes of the last epilog may also run to the end
// of all codes, as real linkers write them and Windows reads them; a prolog's
// need an end. It refuses a run of save_next that goes past the last register
// even if a part of it would not: then the count is a lie.
func (i *ARM64Info) Count(index uint32) (uint32, ARM64Fault) {
	n, run := uint32(0), 0
	for at := index; ; {
		if at == uint32(len(i.Codes)) && index > 0 && run == 0 {
			return n, ARM64Fault{}
		}
		if at >= uint32(len(i.Codes)) {
			return n, ARM64Fault{ARM64NoEnd, at, n}
		}
		b := i.Codes[at]
		if b == arm64SaveNext {
			run++
		} else if run > 0 {
			if !savesRun(i.Codes[at:], run) {
				return n, ARM64Fault{ARM64BadRegisters, at, uint32(run)}
			}
			run = 0
		}
		switch {
		case b == 0xe4 || b == 0xe5:
			return n, ARM64Fault{}
		case b < 0xe8 || b > 0xec:
			n++
		}
		at += uint32(arm64Size(b))
	}
}

const arm64SaveNext = 0xe6

// savesRun reports whether the code at the begin of b saves a pair after which
// run more pairs can follow.
func savesRun(b []byte, run int) bool {
	c, reason := DecodeARM64Code(b)
	return reason == ARM64OK && c.CanSaveNext(run)
}

// At returns the codes that undo what the function did before its instruction
// at offset bytes ran: the part of Codes from the first that applies on.
func (i *ARM64Info) At(offset uint32) ([]byte, ARM64Where, ARM64Fault) {
	if offset >= i.Length {
		return nil, ARM64Body, ARM64Fault{ARM64Outside, 0, offset}
	}
	if i.Fragment {
		return i.Codes, ARM64Body, ARM64Fault{}
	}
	at := offset / 4
	prolog, fault := i.Count(0)
	if !fault.OK() {
		return nil, ARM64Body, fault
	}
	if at < prolog {
		return i.skip(0, prolog-at), ARM64Prolog, ARM64Fault{}
	}
	return i.epilogAt(at)
}

// epilogAt is At behind the prolog; at counts instructions.
func (i *ARM64Info) epilogAt(at uint32) ([]byte, ARM64Where, ARM64Fault) {
	if i.E {
		n, fault := i.epilogCount(i.Epilogs)
		if fault.OK() && n > i.Length/4 {
			fault = ARM64Fault{ARM64BadEpilogOffset, i.Epilogs, n}
		}
		return i.within(at, i.Length/4-n, n, i.Epilogs, fault)
	}
	for k := range i.Scopes() {
		s := i.Scope(k)
		if at < s.Start/4 {
			continue
		}
		n, fault := i.epilogCount(s.Index)
		if !fault.OK() || at-s.Start/4 < n {
			return i.within(at, s.Start/4, n, s.Index, fault)
		}
	}
	return i.Codes, ARM64Body, ARM64Fault{}
}

// within answers for an epilog of n instructions from start on.
func (i *ARM64Info) within(at, start, n, index uint32, fault ARM64Fault) ([]byte, ARM64Where, ARM64Fault) {
	switch {
	case !fault.OK():
		return nil, ARM64Epilog, fault
	case at-start < n && at >= start:
		return i.skip(index, at-start), ARM64Epilog, ARM64Fault{}
	}
	return i.Codes, ARM64Body, ARM64Fault{}
}

// epilogCount is the number of an epilog's instructions: its codes' and the
// return.
func (i *ARM64Info) epilogCount(index uint32) (uint32, ARM64Fault) {
	if index >= uint32(len(i.Codes)) {
		return 0, ARM64Fault{ARM64BadEpilogIndex, index, uint32(len(i.Codes))}
	}
	n, fault := i.Count(index)
	return n + 1, fault
}

// skip returns the codes from index on without the first n. A code that stands
// for no instruction counts here as one: Windows skips codes, not instructions.
func (i *ARM64Info) skip(index, n uint32) []byte {
	at := index
	for ; n > 0 && at < uint32(len(i.Codes)); n-- {
		b := i.Codes[at]
		if b == 0xe4 || b == 0xe5 {
			break
		}
		at += uint32(arm64Size(b))
	}
	return i.Codes[min(at, uint32(len(i.Codes))):]
}
