package waits

import "fmt"

// maxNative bounds the number of stacks with native frames.
const maxNative = 1 << 18

// Native holds frames that were read from a thread's stack from outside and that the wait's event lacks. They
// are valid only if Entered and Join, and each pair of Same, are in one method: for an inlined P/Invoke, the
// runtime's address is a few bytes before the true return address. Precompiled methods get their names at the
// end of a session, so this is checked when frames are shown.
type Native struct {
	Leaves        []uint64 // above the event's own leaf
	Entered, Join uint64   // address where they reach managed code; the event's own leaf
	Blocks        []Block  // frames below the leaf, sorted by Before
	Same          [][2]uint64
}

// Block is a run of frames between two addresses of an event.
type Block struct {
	// index of the event's address that they are above; equal to the number of addresses at the root
	Before int
	Frames []Unlisted
}

// Unlisted is a frame that an event lacks: a native frame or a stub. Name is the runtime's
// own name, "" for native code.
type Unlisted struct {
	Addr uint64
	Name string
}

// AddNative stores frames and returns their index for Wait.Native. Equal frames are stored
// once. It returns 0 if there are no frames or no room. Call it in OnWait only.
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

// native returns a wait's native frames, nil if there are none or if Entered and Join are in different
// methods. It does not check Same.
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

// Leaves names the native frames above a wait's stack, leaf first. It returns none if they
// are unknown or cannot be verified.
func (a *Analysis) Leaves(id int32, time uint64) (out []Frame) {
	if n := a.native(id, time); n != nil {
		for _, addr := range n.Leaves {
			out = append(out, a.Names.Frame(addr, time))
		}
	}
	return out
}

// Whole inserts the native frames between a wait's own frames, and at its root. It returns
// frames unchanged if there are none or if they cannot be verified.
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
