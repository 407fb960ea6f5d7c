package x86

// A pltForm is one layout of a procedure linkage table entry.
type pltForm struct {
	code []byte // 0 matches any byte
	push int    // offset from which one more word is on the stack; 0 = never
	base int    // words below the return address at the entry's first byte
}

// pltForms are those of GNU ld and lld for x86-64, lazy and with IBT.
var pltForms = [...]pltForm{
	{code: []byte{0xff, 0x25, 0, 0, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0}, push: 11},
	{code: []byte{0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0}, push: 6, base: 1},
	{code: []byte{0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0, 0x66, 0x90}, push: 9},
	{code: []byte{0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90}, push: 9},
	{code: []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0, 0, 0, 0, 0x66, 0x0f, 0x1f, 0x44, 0, 0}},
	{code: []byte{0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0, 0, 0, 0, 0x0f, 0x1f, 0x44, 0, 0}},
	{code: []byte{0xff, 0x25, 0, 0, 0, 0, 0x66, 0x90}}, // .plt.got: 8-byte entries
}

// LinkageDepth returns how many words a procedure linkage table's code has pushed after the return address
// when it is at ip. ok is false if ip is not in such code. bytes reads n bytes of code at an address, or
// fewer.
func LinkageDepth(bytes func(addr uint64, n int) []byte, ip uint64) (words int, ok bool) {
	for i := range pltForms {
		form := &pltForms[i]
		at := int(ip) & (len(form.code) - 1)
		if form.matches(bytes(ip-uint64(at), len(form.code))) {
			if words = form.base; form.push != 0 && at >= form.push {
				words++
			}
			return words, true
		}
	}
	return 0, false
}

func (p *pltForm) matches(b []byte) bool {
	for i, c := range b {
		if p.code[i] != 0 && c != p.code[i] {
			return false
		}
	}
	return len(b) == len(p.code)
}
