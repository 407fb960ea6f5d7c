package arm64

import "encoding/binary"

// Info is the unwind information of one function or fragment, from a
// packed word or an .xdata record. Its slices alias the bytes it was decoded
// from (for a packed word the caller's buffer).
type Info struct {
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
	Packed    Packed
	scopes    []byte
}

// XdataHead is the most bytes of a record that XdataSize needs; a record
// with a single header word may have only 4.
const XdataHead = 8

// XdataSize returns the size of an .xdata record in bytes, without the
// handler's data. head is its first 8 bytes, or the 4 that are there. The size
// is below 400 KiB.
func XdataSize(head []byte) (int, Fault) {
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
	return n, Fault{}
}

// decodeXdataHeader returns the header's fields and its size.
func decodeXdataHeader(b []byte) (i Info, size int, fault Fault) {
	if len(b) < 4 {
		return i, 0, Fault{BadRecord, 0, uint32(len(b))}
	}
	w := binary.LittleEndian.Uint32(b)
	i.Length = w & 0x3ffff * 4
	i.Version = uint8(w >> 18 & 3)
	i.X, i.E = w>>20&1 != 0, w>>21&1 != 0
	i.Epilogs, i.CodeWords = w>>22&31, w>>27
	if i.Version != 0 {
		return i, 0, Fault{BadVersion, 0, uint32(i.Version)}
	}
	if i.Epilogs != 0 || i.CodeWords != 0 {
		return i, 4, Fault{}
	}
	if len(b) < 8 {
		return i, 0, Fault{BadRecord, 4, uint32(len(b))}
	}
	w = binary.LittleEndian.Uint32(b[4:])
	i.Extended, i.Epilogs, i.CodeWords = true, w&0xffff, w>>16&0xff
	return i, 8, Fault{}
}

// DecodeXdata decodes an .xdata record. b begins with the record and holds
// at least XdataSize bytes of it.
func DecodeXdata(b []byte) (Info, Fault) {
	i, at, fault := decodeXdataHeader(b)
	if !fault.OK() {
		return i, fault
	}
	if !i.E {
		end := at + 4*int(i.Epilogs)
		if end > len(b) {
			return i, Fault{BadRecord, uint32(at), i.Epilogs}
		}
		i.scopes, at = b[at:end:end], end
	}
	end := at + 4*int(i.CodeWords)
	if end > len(b) {
		return i, Fault{BadRecord, uint32(at), i.CodeWords}
	}
	i.Codes, at = b[at:end:end], end
	if i.X {
		if at+4 > len(b) {
			return i, Fault{BadRecord, uint32(at), 0}
		}
		i.Handler, i.Data = binary.LittleEndian.Uint32(b[at:]), uint32(at+4)
	}
	return i, Fault{}
}

// DecodePackedInfo decodes a packed word. The codes are written into buf.
func DecodePackedInfo(word uint32, buf *Buffer) (i Info, fault Fault) {
	fault = i.decodePacked(word, buf)
	return i, fault
}

// decodePacked is DecodePackedInfo in place: an Info that is copied right after it was
// written waits until its parts are in the cache.
func (i *Info) decodePacked(word uint32, buf *Buffer) Fault {
	p := &i.Packed
	*p = DecodePacked(word)
	i.Length, i.E, i.Fragment = p.Length, true, p.Flag == FlagFragment
	if fault := p.check(word); !fault.OK() {
		return fault
	}
	codes, epilog := p.Expand(buf)
	i.Codes, i.Epilogs = codes, uint32(epilog)
	return Fault{}
}

// Scope is one epilog of an .xdata record.
type Scope struct {
	Start    uint32 // offset of the epilog in the function, bytes
	Reserved uint8  // 4 bits, 0
	Index    uint32 // byte index of its first code
}

// Scopes returns the number of scopes: 0 with E.
func (i *Info) Scopes() int { return len(i.scopes) / 4 }

// Scope returns scope k, 0 <= k < Scopes.
func (i *Info) Scope(k int) Scope {
	w := binary.LittleEndian.Uint32(i.scopes[4*k:])
	return Scope{Start: w & 0x3ffff * 4, Reserved: uint8(w >> 18 & 15), Index: w >> 22}
}

// Where is the part of a function that an instruction is in.
type Where uint8

const (
	Prolog Where = iota
	Body
	Epilog
)

func (w Where) String() string {
	return [...]string{"prolog", "body", "epilog", "where?"}[min(w, 3)]
}

// Count returns the number of instructions that the codes from index to end or
// end_c represent. The codes of the last epilog may also run to the end of all
// codes, as real linkers write them and Windows reads them; a prolog's need an
// end. Count refuses a run of save_next past the last register, because its
// result would be wrong.
func (i *Info) Count(index uint32) (uint32, Fault) {
	n, run := uint32(0), 0
	for at := index; ; {
		if at >= uint32(len(i.Codes)) {
			if at == uint32(len(i.Codes)) && index > 0 && run == 0 {
				return n, Fault{}
			}
			return n, Fault{NoEnd, at, n}
		}
		b := i.Codes[at]
		if b < 0xe0 && run == 0 { // nearly all
			n, at = n+1, at+1
			if b >= 0xc0 {
				at++
			}
			continue
		}
		if b == saveNext {
			run++
		} else if run > 0 {
			if !savesRun(i.Codes[at:], run) {
				return n, Fault{BadRegisters, at, uint32(run)}
			}
			run = 0
		}
		switch {
		case b == 0xe4 || b == 0xe5:
			return n, Fault{}
		case b < 0xe8 || b > 0xec:
			n++
		}
		at += uint32(size(b))
	}
}

const saveNext = 0xe6

// savesRun reports whether the code at the start of b saves a pair that run more
// pairs can follow.
func savesRun(b []byte, run int) bool {
	c, reason := DecodeCode(b)
	return reason == OK && c.CanSaveNext(run)
}

// At returns the codes that undo what the function did before its instruction
// at offset bytes: the tail of Codes from the first one that applies.
func (i *Info) At(offset uint32) ([]byte, Where, Fault) {
	if offset >= i.Length {
		return nil, Body, Fault{Outside, 0, offset}
	}
	if i.Fragment {
		return i.Codes, Body, Fault{}
	}
	at := offset / 4
	prolog, fault := i.Count(0)
	if !fault.OK() {
		return nil, Body, fault
	}
	if at < prolog {
		return i.skip(0, prolog-at), Prolog, Fault{}
	}
	return i.epilogAt(at)
}

// epilogAt is At after the prolog; at counts instructions.
func (i *Info) epilogAt(at uint32) ([]byte, Where, Fault) {
	if i.E {
		n, fault := i.epilogCount(i.Epilogs)
		if fault.OK() && n > i.Length/4 {
			fault = Fault{BadEpilogOffset, i.Epilogs, n}
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
	return i.Codes, Body, Fault{}
}

// within returns the result of At given an epilog of n instructions from start;
// fault is the epilog's.
func (i *Info) within(at, start, n, index uint32, fault Fault) ([]byte, Where, Fault) {
	switch {
	case !fault.OK():
		return nil, Epilog, fault
	case at-start < n && at >= start:
		return i.skip(index, at-start), Epilog, Fault{}
	}
	return i.Codes, Body, Fault{}
}

// epilogCount returns the number of an epilog's instructions: those of its codes,
// and the return.
func (i *Info) epilogCount(index uint32) (uint32, Fault) {
	if index >= uint32(len(i.Codes)) {
		return 0, Fault{BadEpilogIndex, index, uint32(len(i.Codes))}
	}
	n, fault := i.Count(index)
	return n + 1, fault
}

// skip returns the codes from index on without the first n. A code without an
// instruction counts too: Windows skips codes, not instructions.
func (i *Info) skip(index, n uint32) []byte {
	at := index
	for ; n > 0 && at < uint32(len(i.Codes)); n-- {
		b := i.Codes[at]
		if b == 0xe4 || b == 0xe5 {
			break
		}
		at += uint32(size(b))
	}
	return i.Codes[min(at, uint32(len(i.Codes))):]
}
