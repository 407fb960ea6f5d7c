package waits

import "fmt"

// maxNative bounds the native frames that are kept, in stacks.
const maxNative = 1 << 18

// Native is what was found on a thread's stack, from outside, that its wait's event does
// not have. Nothing of it is believed unless Entered and Join, and each pair of Same, are
// of one method: for a P/Invoke that was inlined the runtime's address is some bytes
// before the true return address. Names of precompiled methods come at the end of a
// session only, so that this is asked when frames are shown.
type Native struct {
	Leaves        []uint64 // above the event's own leaf
	Entered, Join uint64   // where they met managed code; the event's own leaf
	Blocks        []Block  // below it, by Before
	Same          [][2]uint64
}

// Block is frames that stand together between two addresses of an event.
type Block struct {
	Before int // index of the event's address that they stand above; as many as it has: at the root
	Frames []Unlisted
}

// Unlisted is a frame that an event does not have: a native one, or a stub. Name is what
// the runtime itself calls it, "" for native code.
type Unlisted struct {
	Addr uint64
	Name string
}

// AddNative keeps frames, equal ones once, for Wait.Native; 0 if there is no room. It is
// for use in OnWait only.
func (a *Analysis) AddNative(n *Native) int32 {
	if len(a.natives) >= maxNative || len(n.Leaves)+len(n.Blocks) == 0 {
		return 0
	}
	key := fmt.Sprint(*n)
	id, ok := a.nativeIDs[key]
	if !ok {
		a.natives = append(a.natives, *n)
		id = int32(len(a.natives))
		a.nativeIDs[key] = id
	}
	return id
}

// native is a stack's frames if the addresses where it was joined are of one method each.
func (a *Analysis) native(id int32, time uint64) *Native {
	if id <= 0 || int(id) > len(a.natives) {
		return nil
	}
	n := &a.natives[id-1]
	if n.Entered != n.Join && !a.Names.SameMethod(n.Entered, n.Join, time) {
		return nil
	}
	return n
}

// Leaves names the native frames above a wait's stack, leaf first; none if they
// were not found, or if nothing shows that they belong there.
func (a *Analysis) Leaves(id int32, time uint64) (out []Frame) {
	if n := a.native(id, time); n != nil {
		for _, addr := range n.Leaves {
			out = append(out, a.Names.Frame(addr, time))
		}
	}
	return out
}

// Whole is a wait's stack with the native frames that belong between its own, and at its
// root; frames itself if there are none, or if nothing shows that they belong there.
func (a *Analysis) Whole(id int32, frames []Frame, time uint64) (out []Frame) {
	n := a.native(id, time)
	if n == nil || len(n.Blocks) == 0 || n.Blocks[len(n.Blocks)-1].Before > len(frames) {
		return frames
	}
	for _, s := range n.Same {
		if !a.Names.SameMethod(s[0], s[1], time) {
			return frames
		}
	}
	at := 0
	for _, b := range n.Blocks {
		out = append(out, frames[at:b.Before]...)
		at = b.Before
		for _, u := range b.Frames {
			f := a.Names.Frame(u.Addr, time)
			if !f.Named && u.Name != "" {
				f.Name, f.Managed, f.Named = u.Name, true, true
			}
			out = append(out, f)
		}
	}
	return append(out, frames[at:]...)
}
