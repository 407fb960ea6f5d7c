package image

import (
	"bytes"
	"encoding/binary"
)

// The exception directory of an ARM64 image. Source: Microsoft, "ARM64 exception handling".
// The format has several encodings for the same facts: a word or a record, one epilog at the
// end or a scope, separate codes or codes shared with the prolog, save_next, a long header.
// The functions use them in turn, so that each encoding occurs.

const (
	codeEnd      = 0xe4
	codeEndC     = 0xe5
	codeSaveNext = 0xe6
	codeNop      = 0xe3

	maxXdata = (1<<18 - 1) * 4 // bytes of code that a record can describe
	maxCodes = 255 * 4         // bytes of codes
)

// turnsARM64 selects which of several ways to take.
type turnsARM64 struct{ noShare, scope, next, long, open bool }

func turnsOf(i int) turnsARM64 {
	return turnsARM64{noShare: i%2 == 1, scope: i/2%2 == 1, next: i%3 == 1, long: i%7 == 5, open: i%5 == 3}
}

// pdataARM64 writes the directory of im's functions, sorted as they are. Records
// go through xdata, which answers with their RVA.
func pdataARM64(im *Image, xdata func(b []byte) (rva uint32)) ([]byte, error) {
	var b []byte
	for i := range im.Funcs {
		f := &im.Funcs[i]
		if f.NoInfo {
			continue
		}
		if f.Entry != Called {
			return nil, errFunc(f, "ARM64 unwind data of a function that is not called")
		}
		packed, ok := packARM64(f)
		for _, p := range partsOf(f) {
			word, say := p.packed(packed)
			if !ok || !say {
				rec, err := p.record(f, turnsOf(i))
				if err != nil {
					return nil, err
				}
				word = xdata(rec)
			}
			b = binary.LittleEndian.AppendUint32(b, f.RVA+p.begin)
			b = binary.LittleEndian.AppendUint32(b, word)
		}
	}
	return b, nil
}

// partARM64 is a range of a function with an entry of its own.
type partARM64 struct {
	begin, end uint32
	fragment   bool   // the prolog ran before it
	own        []Op   // its own prolog
	parents    [][]Op // those that ran before, the last one first
	epilog     []Op
}

// partsOf cuts a function where its unwind data is cut: a chained one into its
// begin, its later part without the epilog, if there is any, and the epilog.
func partsOf(f *Func) []partARM64 {
	s := sectionsOf(f)
	if f.Chained == 0 {
		return []partARM64{{end: f.Size, own: s.prolog, epilog: s.epilog}}
	}
	parts := []partARM64{{end: f.Chained, own: s.prolog}}
	end := f.Size
	if len(s.epilog) > 0 {
		end = s.epilog[0].Off
	}
	last := partARM64{begin: end, end: f.Size, fragment: true, parents: [][]Op{s.prolog}, epilog: s.epilog}
	if end > f.Chained {
		parts = append(parts, partARM64{begin: f.Chained, end: end, fragment: true,
			own: s.late, parents: last.parents})
	}
	if len(s.late) > 0 {
		last.parents = [][]Op{s.late, s.prolog}
	}
	if last.begin < last.end {
		parts = append(parts, last)
	}
	return parts
}

// packed completes a function's word for the part; false where a word cannot.
func (p *partARM64) packed(word uint32) (uint32, bool) {
	n := (p.end - p.begin) / 4
	word |= n << 2
	switch {
	case n > 1<<11-1:
		return 0, false
	case !p.fragment:
		return word | packedWhole, len(p.epilog) > 0
	}
	return word | packedFragment, len(p.own) == 0 && len(p.epilog) == 0
}

// record writes the part's .xdata record.
func (p *partARM64) record(f *Func, t turnsARM64) ([]byte, error) {
	codes, err := p.prologCodes(t)
	if err != nil {
		return nil, errFunc(f, "%v", err)
	}
	index := 0
	if len(p.epilog) > 0 {
		epilog, err := undoCodes(p.epilog[:len(p.epilog)-1], t.next)
		if err != nil {
			return nil, errFunc(f, "%v", err)
		}
		codes, index = addEpilog(codes, epilog, t)
	}
	b := bytes.Join(codes, nil)
	for len(b)%4 != 0 {
		b = append(b, codeNop)
	}
	if len(b) > maxCodes || p.end-p.begin > maxXdata {
		return nil, errFunc(f, "%d bytes of unwind codes for %d of code", len(b), p.end-p.begin)
	}
	return p.header(b, index, t), nil
}

// prologCodes are the codes of the part's prolog and of those before it, last
// instruction first.
func (p *partARM64) prologCodes(t turnsARM64) ([][]byte, error) {
	codes, err := reversed(p.own, t.next)
	if err != nil {
		return nil, err
	}
	if p.fragment {
		codes = append(codes, []byte{codeEndC})
	}
	for _, ops := range p.parents {
		c, err := reversed(ops, t.next)
		if err != nil {
			return nil, err
		}
		codes = append(codes, c...)
	}
	return append(codes, []byte{codeEnd}), nil
}

// addEpilog appends an epilog's codes, unless the prolog's end with them, and
// returns the index of its first byte. The last codes of a record that end where
// it ends need no end.
func addEpilog(codes, epilog [][]byte, t turnsARM64) ([][]byte, int) {
	closed := append(epilog[:len(epilog):len(epilog)], []byte{codeEnd})
	if n := len(codes) - len(closed); n >= 0 && !t.noShare &&
		bytes.Equal(bytes.Join(codes[n:], nil), bytes.Join(closed, nil)) {
		return codes, len(bytes.Join(codes[:n], nil))
	}
	index := len(bytes.Join(codes, nil))
	if open := append(codes[:len(codes):len(codes)], epilog...); t.open && len(epilog) > 0 &&
		len(bytes.Join(open, nil))%4 == 0 {
		return open, index
	}
	return append(codes, closed...), index
}

// header puts header and scope before the codes.
func (p *partARM64) header(codes []byte, index int, t turnsARM64) []byte {
	word, words := (p.end-p.begin)/4, uint32(len(codes)/4)
	count, scope := uint32(0), uint32(0)
	hasScope := false
	switch {
	case len(p.epilog) == 0:
	case t.scope && index < 1<<10:
		count, hasScope = 1, true
		scope = (p.epilog[0].Off-p.begin)/4 | uint32(index)<<22
	default:
		word |= 1 << 21
		count = uint32(index)
	}
	var b []byte
	if t.long || count > 31 || words > 31 {
		b = binary.LittleEndian.AppendUint32(b, word)
		b = binary.LittleEndian.AppendUint32(b, count|words<<16)
	} else {
		b = binary.LittleEndian.AppendUint32(b, word|count<<22|words<<27)
	}
	if hasScope {
		b = binary.LittleEndian.AppendUint32(b, scope)
	}
	return append(b, codes...)
}
