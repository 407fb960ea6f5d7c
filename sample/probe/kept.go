package probe

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/seedwalk/seedwalk/context"
)

// Kept is a file of copies that the client library wrote because it had no helper. It has the layout of the
// shared file without the room for reads. Nothing in it is trusted.
type Kept struct {
	reader
	PID     uint32 // as the process saw itself
	Arch    context.Arch
	Stack   uint64 // where the first thread's stack begins, 0 if unknown
	Opened  uint64 // when the process made the file, by its monotonic clock, nanoseconds
	Dropped uint64 // copies for which the file had no room
	Damage  []Damage
}

// Offsets in a file of copies of what identifies the process.
const (
	KeptPID    = unsafe.Offsetof(header{}.pid)
	KeptOpened = unsafe.Offsetof(header{}.heartbeat)
	KeptStack  = unsafe.Offsetof(header{}.mainStack)
	KeptArch   = unsafe.Offsetof(header{}.arch)
)

// entryFrame is what the probe adds to the beginning of the stack: the entry point's frame is there.
const entryFrame = 64

// Damage is a part of a file of copies that cannot be read.
type Damage struct {
	Offset uint64 // in the file
	What   string
	Remedy string
}

func (d *Damage) Error() string { return fmt.Sprintf("offset %d: %s; %s", d.Offset, d.What, d.Remedy) }

// Remedies of damaged files of copies.
const (
	otherVersion = "use the seedwalk that belongs to the client library"
	otherFile    = "name the file in the option keep of the client library"
	cutFile      = "copy the file again, as a whole"
	badFile      = "the other copies are whole"
	unfinished   = "the thread was copying, or the process was killed meanwhile; read the file again"
)

// ReadKept reads a file of copies. It fails if the header is unusable, with a *Damage.
func ReadKept(b []byte) (*Kept, error) {
	if len(b) < HeaderSize {
		return nil, &Damage{uint64(len(b)), fmt.Sprintf("the file ends within its header of %d bytes",
			HeaderSize), cutFile}
	}
	// What the file lacks is 0. The head of a record that starts at the end of the ring has room, too.
	data := make([]byte, FileSize+recordHead)
	copy(data, b)
	k := &Kept{}
	k.h = (*header)(unsafe.Pointer(&data[0]))
	switch h := k.h; {
	case h.magic != Magic:
		return nil, &Damage{0, "this is not a file of copies", otherFile}
	case h.version != Version:
		return nil, &Damage{uint64(unsafe.Offsetof(h.version)),
			fmt.Sprintf("the file has version %d, not %d", h.version, Version), otherVersion}
	case len(b) > FileSize:
		return nil, &Damage{FileSize, fmt.Sprintf("the file has more than %d bytes", FileSize), otherFile}
	}
	k.Arch = context.Arch(min(k.h.arch, 255))
	if k.form = formats[k.Arch]; k.form.regs == 0 {
		return nil, &Damage{uint64(unsafe.Offsetof(k.h.arch)),
			fmt.Sprintf("the architecture %d is not known", k.h.arch), otherVersion}
	}
	k.PID, k.Opened, k.Stack = k.h.pid, k.h.heartbeat, k.h.mainStack-min(k.h.mainStack, entryFrame)
	k.Dropped, k.ring = k.h.missed, data[beforeRing:FileSize]
	k.bound(uint64(len(b)))
	return k, nil
}

// bound sets the head to the end of the records that the file of this size has.
func (k *Kept) bound(size uint64) {
	if head := k.h.head; head > RingSize || head%align != 0 {
		k.damaged(uint64(unsafe.Offsetof(k.h.head)),
			fmt.Sprintf("the end of the copies is at %d, which is impossible", head), badFile)
		k.h.head = RingSize
	}
	if size < FileSize {
		k.damaged(size, fmt.Sprintf("the file is cut off: it had %d bytes", FileSize), cutFile)
		k.h.head = min(k.h.head, (max(size, beforeRing)-beforeRing)/align*align)
	}
}

func (k *Kept) damaged(offset uint64, what, remedy string) {
	k.Damage = append(k.Damage, Damage{offset, what, remedy})
}

// Read calls f for every whole copy, in the order of the file. It adds the others to Damage.
func (k *Kept) Read(f func(*Record)) {
	end := k.end()
	for at := uint64(0); at < k.h.head; {
		size, committed, ok := k.check(at, k.h.head)
		switch bad := k.Bad; {
		case !ok:
			next := k.next(at)
			if at < end {
				k.damaged(beforeRing+at, fmt.Sprintf("%d bytes hold no copy", min(next, end)-at), badFile)
			}
			at = next
			continue
		case !committed:
			k.damaged(beforeRing+at, "a copy is not finished", unfinished)
		default:
			if k.take(at, size, f); k.Bad != bad {
				k.damaged(beforeRing+at, "the sizes of a copy exceed its record", badFile)
			}
		}
		at += size
	}
}

// next returns the position of the first possible record after at, or the head.
func (k *Kept) next(at uint64) uint64 {
	for at += align; at < k.h.head; at += align {
		if r := (*record)(unsafe.Pointer(&k.ring[at])); r.claim == at|2 && r.commit == at|1 {
			break
		}
	}
	return at
}

// end returns the position behind the last byte of the ring that is not 0.
func (k *Kept) end() uint64 {
	for at := k.h.head; at >= 8; at -= 8 {
		if binary.NativeEndian.Uint64(k.ring[at-8:]) != 0 {
			return at
		}
	}
	return 0
}
