package pe

// Flags of an UNWIND_INFO.
const (
	UNW_FLAG_EHANDLER  = 1
	UNW_FLAG_UHANDLER  = 2
	UNW_FLAG_CHAININFO = 4
)

// AMD64Info is one decoded UNWIND_INFO. Its codes are decoded one by one as
// they are needed.
type AMD64Info struct {
	RVA         uint32 // where it lies
	Version     uint8  // 1 or 2
	Flags       uint8  // UNW_FLAG_...
	Prolog      uint8  // size of the prolog, bytes
	Count       uint8  // unwind code slots of two bytes
	FrameReg    uint8  // frame register, 0 = none
	FrameOffset uint8  // its distance from the stack pointer at SET_FPREG, bytes
	Unix        bool   // of an image the CLR made for Unix: has SET_FPREG_LARGE
	Codes       []byte // 2*Count bytes
	Handler     uint32 // RVA of the exception handler, 0 = none
	HandlerData uint32 // RVA of what is the handler's
	Parent      RuntimeFunction
}

// Chained reports whether Parent is set.
func (i *AMD64Info) Chained() bool { return i.Flags&UNW_FLAG_CHAININFO != 0 }

const (
	infoHead = 4
	infoMax  = infoHead + 2*256 + AMD64EntrySize
)

// AMD64Fault is a reason with the place of the value that is refused. Reason OK
// means no fault. It is returned by value, since an error interface would
// allocate on the walk's path.
type AMD64Fault struct {
	Reason Reason
	Offset uint32 // bytes from the UNWIND_INFO's begin
	Value  uint32 // the value found there
}

// OK reports whether there is no fault.
func (f AMD64Fault) OK() bool { return f.Reason == OK }

// AMD64Info decodes the UNWIND_INFO at rva. It allocates nothing.
func (f *File) AMD64Info(rva uint32) (AMD64Info, AMD64Fault) {
	i, fault := DecodeAMD64(f.Tail(rva, infoMax), f.unix)
	i.RVA = rva
	if i.Flags&(UNW_FLAG_EHANDLER|UNW_FLAG_UHANDLER) != 0 && !i.Chained() {
		i.HandlerData = rva + uint32(i.tail()) + 4
	}
	return i, fault
}

// DecodeAMD64 decodes the UNWIND_INFO that b begins with. unix tells whether
// the image is one the CLR made for Unix. Codes are a part of b.
func DecodeAMD64(b []byte, unix bool) (i AMD64Info, fault AMD64Fault) {
	if len(b) < infoHead {
		return i, AMD64Fault{Short, 0, uint32(len(b))}
	}
	i = AMD64Info{Version: b[0] & 7, Flags: b[0] >> 3, Prolog: b[1], Count: b[2], FrameReg: b[3] & 15, FrameOffset: b[3] &^ 15, Unix: unix}
	switch i.Version {
	case 1, 2:
	case 3:
		return i, AMD64Fault{Version3, 0, 3}
	default:
		return i, AMD64Fault{BadVersion, 0, uint32(i.Version)}
	}
	end := infoHead + 2*int(i.Count)
	if len(b) < end {
		return i, AMD64Fault{Short, 2, uint32(i.Count)}
	}
	i.Codes = b[infoHead:end:end]
	return i, i.readTail(b)
}

// tail is the offset of what follows the codes, which are padded to an even
// number.
func (i *AMD64Info) tail() int { return infoHead + 2*((int(i.Count)+1)&^1) }

// readTail reads the parent or the handler.
func (i *AMD64Info) readTail(b []byte) AMD64Fault {
	at := i.tail()
	switch {
	case i.Chained():
		if len(b) < at+AMD64EntrySize {
			return AMD64Fault{Short, uint32(at), uint32(len(b))}
		}
		i.Parent = readFunction(b[at:])
	case i.Flags&(UNW_FLAG_EHANDLER|UNW_FLAG_UHANDLER) != 0:
		if len(b) < at+4 {
			return AMD64Fault{Short, uint32(at), uint32(len(b))}
		}
		i.Handler = u32(b[at:])
	}
	return AMD64Fault{}
}

// PrimaryAMD64 follows chained information to the function's first part.
func (f *File) PrimaryAMD64(fn RuntimeFunction) (RuntimeFunction, Reason) {
	for range maxLinks + 1 {
		i, fault := f.AMD64Info(fn.Unwind)
		if !fault.OK() {
			return fn, fault.Reason
		}
		if !i.Chained() {
			return fn, OK
		}
		var reason Reason
		if fn, reason = f.ResolveAMD64(i.Parent); reason != OK {
			return fn, reason
		}
	}
	return fn, ChainDepth
}
