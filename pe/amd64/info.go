package amd64

// Flags of an UNWIND_INFO.
const (
	UNW_FLAG_EHANDLER  = 1
	UNW_FLAG_UHANDLER  = 2
	UNW_FLAG_CHAININFO = 4
)

// Info is one decoded UNWIND_INFO. Its codes are decoded one by one as
// they are needed.
type Info struct {
	RVA         uint32 // of this structure
	Version     uint8  // 1 or 2
	Flags       uint8  // UNW_FLAG_...
	Prolog      uint8  // size of the prolog, bytes
	Count       uint8  // unwind code slots of two bytes
	FrameReg    uint8  // frame register, 0 = none
	FrameOffset uint8  // its distance from the stack pointer at SET_FPREG, bytes
	Unix        bool   // of an image the CLR made for Unix: has SET_FPREG_LARGE
	Codes       []byte // 2*Count bytes
	Handler     uint32 // RVA of the exception handler, 0 = none
	HandlerData uint32 // RVA of the handler's data, 0 = none
	Parent      RuntimeFunction
}

// Chained reports whether Parent is set.
func (i *Info) Chained() bool { return i.Flags&UNW_FLAG_CHAININFO != 0 }

const (
	infoHead = 4
	infoMax  = infoHead + 2*256 + EntrySize
)

// Info decodes the UNWIND_INFO at rva. It allocates nothing.
func (t *Table) Info(rva uint32) (i Info, fault Fault) {
	fault = t.ReadInfo(rva, &i)
	return i, fault
}

// ReadInfo decodes the UNWIND_INFO at rva into i. It allocates nothing.
func (t *Table) ReadInfo(rva uint32, i *Info) Fault {
	fault := i.decode(t.Tail(rva, infoMax), t.unix)
	i.RVA = rva
	if i.Flags&(UNW_FLAG_EHANDLER|UNW_FLAG_UHANDLER) != 0 && !i.Chained() {
		i.HandlerData = rva + uint32(i.tail()) + 4
	}
	return fault
}

// Decode decodes the UNWIND_INFO that b begins with, except RVA and HandlerData.
// unix means that the image is one the CLR made for Unix. Codes are a part of b.
func Decode(b []byte, unix bool) (i Info, fault Fault) {
	fault = i.decode(b, unix)
	return i, fault
}

// decode is Decode into i. If i were returned, it would be copied right after its fields are written, and the
// copy would wait for these writes.
func (i *Info) decode(b []byte, unix bool) Fault {
	*i = Info{Unix: unix}
	if len(b) < infoHead {
		return Fault{Short, 0, uint32(len(b))}
	}
	i.Version, i.Flags, i.Prolog, i.Count = b[0]&7, b[0]>>3, b[1], b[2]
	i.FrameReg, i.FrameOffset = b[3]&15, b[3]&^15
	switch i.Version {
	case 1, 2:
	case 3:
		return Fault{Version3, 0, 3}
	default:
		return Fault{BadVersion, 0, uint32(i.Version)}
	}
	end := infoHead + 2*int(i.Count)
	if len(b) < end {
		return Fault{Short, 2, uint32(i.Count)}
	}
	i.Codes = b[infoHead:end:end]
	return i.readTail(b)
}

// tail is the offset of what follows the codes, which are padded to an even
// number.
func (i *Info) tail() int { return infoHead + 2*((int(i.Count)+1)&^1) }

// readTail reads the parent or the handler.
func (i *Info) readTail(b []byte) Fault {
	at := i.tail()
	switch {
	case i.Chained():
		if len(b) < at+EntrySize {
			return Fault{Short, uint32(at), uint32(len(b))}
		}
		i.Parent = readFunction(b[at:])
	case i.Flags&(UNW_FLAG_EHANDLER|UNW_FLAG_UHANDLER) != 0:
		if len(b) < at+4 {
			return Fault{Short, uint32(at), uint32(len(b))}
		}
		i.Handler = u32(b[at:])
	}
	return Fault{}
}

// Primary follows chained information to the function's first part.
func (t *Table) Primary(fn RuntimeFunction) (RuntimeFunction, Reason) {
	for range maxLinks + 1 {
		i, fault := t.Info(fn.Unwind)
		if !fault.OK() {
			return fn, fault.Reason
		}
		if !i.Chained() {
			return fn, OK
		}
		var reason Reason
		if fn, reason = t.Resolve(i.Parent); reason != OK {
			return fn, reason
		}
	}
	return fn, ChainDepth
}

// Starts reports whether a function begins at rva. A later fragment may begin
// after a call, so only a function's first fragment counts.
func (t *Table) Starts(rva uint32) bool {
	fn, ok := t.Lookup(rva)
	if !ok || fn.Begin != rva {
		return false
	}
	first, why := t.Primary(fn)
	return why == OK && first.Begin == rva
}

// InfoSize is the size in bytes of an UNWIND_INFO without a handler's data. head
// is its first 4 bytes.
func InfoSize(head []byte) int {
	i := Info{Flags: head[0] >> 3, Count: head[2]}
	switch {
	case i.Chained():
		return i.tail() + EntrySize
	case i.Flags&(UNW_FLAG_EHANDLER|UNW_FLAG_UHANDLER) != 0:
		return i.tail() + 4
	}
	return i.tail()
}
