package arm64

// Packed is a packed .pdata word, field by field.
type Packed struct {
	Flag      uint8  // 1: a whole function, 2: a fragment without prolog and epilog
	RegF      uint8  // n > 0: d8 to d8+n are saved
	RegI      uint8  // x19 to x19+n-1 are saved
	H         bool   // x0-x7 are homed above the saved registers
	CR        uint8  // 0: lr not saved, 1: lr saved, 2: frame chain and signed lr, 3: frame chain
	Length    uint32 // bytes
	FrameSize uint32 // bytes
}

// Packed flags and CR values.
const (
	FlagXdata    = 0
	FlagPacked   = 1
	FlagFragment = 2

	crSavedLR = 1
	crSigned  = 2
	crChained = 3
)

// DecodePacked splits a packed word into its fields.
func DecodePacked(w uint32) Packed {
	return Packed{
		Flag:      uint8(w & 3),
		Length:    w >> 2 & 0x7ff * 4,
		RegF:      uint8(w >> 13 & 7),
		RegI:      uint8(w >> 16 & 15),
		H:         w>>20&1 != 0,
		CR:        uint8(w >> 21 & 3),
		FrameSize: w >> 23 * 16,
	}
}

// Chained reports whether the prolog sets up x29.
func (p *Packed) Chained() bool { return p.CR >= crSigned }

// intSize returns the bytes of the saved x registers, with lr if CR is 1.
func (p *Packed) intSize() uint32 {
	n := uint32(p.RegI)
	if p.CR == crSavedLR {
		n++
	}
	return 8 * n
}

// fpSize returns the bytes of the saved d registers.
func (p *Packed) fpSize() uint32 {
	if p.RegF == 0 {
		return 0
	}
	return 8 * (uint32(p.RegF) + 1)
}

// saveSize returns the bytes of the whole save area, homes included.
func (p *Packed) saveSize() uint32 {
	n := p.intSize() + p.fpSize()
	if p.H {
		n += 64
	}
	return (n + 15) &^ 15
}

// check reports values that no prolog can have.
func (p *Packed) check(word uint32) Fault {
	fault := func(r Reason, v uint32) Fault { return Fault{Reason: r, Value: v} }
	switch {
	case p.Flag != FlagPacked && p.Flag != FlagFragment:
		return fault(BadFlag, word)
	case p.RegI > 10:
		return fault(BadRegI, uint32(p.RegI))
	case p.FrameSize < p.saveSize():
		return fault(BadFrameSize, p.FrameSize)
	case p.Chained() && p.FrameSize < p.saveSize()+16:
		return fault(BadFrameSize, p.FrameSize)
	}
	return Fault{}
}

// packedProlog writes the codes of a canonical prolog and of its epilog. Codes are added in the order of the
// prolog's instructions, but stored in the order of undoing. So each list grows downward: the prolog's from
// the middle of the buffer, the epilog's from its end. A list has at most 29 bytes: 11 for x registers, 8 for
// vector registers, 4 homes, 4 for the local area, an end, and a signature. A frame record takes two bytes,
// but then the x registers take two fewer.
type packedProlog struct {
	buf            *Buffer
	prolog, epilog int // index of the first byte of each list so far
}

const bufferHalf = len(Buffer{}) / 2

// one adds a code of one byte to both lists.
func (b *packedProlog) one(x uint32) {
	b.onlyInProlog(x)
	b.epilog--
	b.buf[b.epilog&(len(b.buf)-1)] = byte(x)
}

// two adds a code of two bytes to both lists, the second byte first.
func (b *packedProlog) two(x uint32) {
	b.one(x & 0xff)
	b.one(x >> 8)
}

// onlyInProlog adds a code of one byte to the prolog's list.
func (b *packedProlog) onlyInProlog(x uint32) {
	b.prolog--
	b.buf[b.prolog&(len(b.buf)-1)] = byte(x)
}

// alloc adds the allocation of n bytes: a multiple of 16, below 32 KiB.
func (b *packedProlog) alloc(n uint32) {
	if n < 512 {
		b.one(n / 16)
	} else {
		b.two(0xc000 | n/16)
	}
}

// Expand writes the codes of the canonical prolog and epilog into buf: the prolog's, an end, the epilog's, an
// end. It returns these codes, and the index of the epilog's first code in them.
func (p *Packed) Expand(buf *Buffer) (codes []byte, epilog int) {
	b := packedProlog{buf, bufferHalf, len(buf)}
	b.one(0xe4)
	if p.CR == crSigned {
		b.one(0xfc)
	}
	p.saveInts(&b)
	p.saveVectors(&b)
	if p.H {
		p.home(&b)
	}
	p.local(&b)
	n := copy(buf[bufferHalf:], buf[b.epilog:])
	return buf[b.prolog : bufferHalf+n], bufferHalf - b.prolog
}

// saveInts adds the saves of x19 and up, and of lr. The first save also allocates the whole save area.
func (p *Packed) saveInts(b *packedProlog) {
	n, lr, size := uint32(p.RegI), p.CR == crSavedLR, p.saveSize()
	switch {
	case n == 0 && lr:
		b.two(0xd400 | 11<<5 | (size/8 - 1))
		return
	case n == 0:
		return
	case n == 1 && lr:
		b.alloc(size)
		b.two(0xd600)
		return
	case n == 1:
		b.two(0xd400 | (size/8 - 1))
		return
	}
	b.one(0x20 | size/8)
	for i := uint32(2); i < n; i += 2 {
		switch {
		case i+1 < n:
			b.two(0xc800 | i<<6 | i)
		case lr:
			b.two(0xd600 | i/2<<6 | i)
		default:
			b.two(0xd000 | i<<6 | i)
		}
	}
	if lr && n%2 == 0 {
		b.two(0xd000 | 11<<6 | n)
	}
}

// saveVectors adds the saves of d8 and up, at addresses above the x registers. If there are no x registers,
// the first save also allocates the save area.
func (p *Packed) saveVectors(b *packedProlog) {
	n, at := p.fpSize()/8, p.intSize()/8
	for i := uint32(0); i < n; i += 2 {
		switch {
		case i == 0 && at == 0:
			b.two(0xda00 | (p.saveSize()/8 - 1))
		case i+1 < n:
			b.two(0xd800 | i<<6 | (at + i))
		default:
			b.two(0xdc00 | i<<6 | (at + i))
		}
	}
}

// home adds the four stores of x0-x7, which the epilog does not undo. If nothing
// else was saved, the first store also allocates the save area.
func (p *Packed) home(b *packedProlog) {
	stores := 4
	if p.intSize()+p.fpSize() == 0 {
		b.alloc(p.saveSize())
		stores--
	}
	for ; stores > 0; stores-- {
		b.onlyInProlog(0xe3)
	}
}

// local adds the allocation of the local area, and the frame record at its lower end.
func (p *Packed) local(b *packedProlog) {
	size := p.FrameSize - p.saveSize()
	if p.Chained() && size <= 512 {
		b.one(0x80 | (size/8 - 1))
	} else {
		if size > 4080 {
			b.alloc(4080)
			size -= 4080
		}
		if size > 0 {
			b.alloc(size)
		}
		if p.Chained() {
			b.one(0x40)
		}
	}
	if p.Chained() {
		b.onlyInProlog(0xe1)
	}
}
