package cpuring

// depth decides how much of a thread's stack the kernel copies. The whole stack is copied until many
// consecutive samples were shallow. So a thread of changing depth has few truncated samples: at most one in
// enoughShallow, and fewer over time.
type depth struct {
	small   bool // only Config.Stack bytes are copied
	shallow int  // consecutive shallow samples
	enough  int  // number of those needed before small; 0 = enoughShallow
}

// enoughShallow is the number of consecutive shallow samples needed at first; each truncated sample
// multiplies it by moreShallow.
const (
	enoughShallow = 64
	moreShallow   = 8
)

// sampled records how many bytes of its stack a sample needed. It reports whether the size of the copies
// changes. limit is Config.Stack; it leaves room for more calls.
func (d *depth) sampled(used uint64, cut bool, limit int) (changed bool) {
	if d.enough == 0 {
		d.enough = enoughShallow
	}
	prev := d.small
	switch {
	case cut:
		if d.small && d.enough < 1<<24 {
			d.enough *= moreShallow
		}
		d.small, d.shallow = false, 0
	case used > uint64(limit)*3/4:
		d.shallow = 0
	default:
		d.shallow++
		d.small = d.small || d.shallow >= d.enough
	}
	return d.small != prev
}

// depths holds the depths of threads that may be added again. A thread that gets the number of an ended one
// gets its depth too, and corrects it.
type depths map[uint32]depth

// mostDepths bounds depths. Beyond it, they all begin again.
const mostDepths = 4096

func (d *depths) keep(tid uint32, of depth) {
	if *d == nil || len(*d) >= mostDepths {
		*d = depths{}
	}
	(*d)[tid] = of
}

// take removes and returns the depth of a thread. If it is unknown, the stack counts as shallow: hits come so
// often that large copies would fill the ring.
func (d depths) take(tid uint32) depth {
	defer delete(d, tid)
	if of, ok := d[tid]; ok {
		return of
	}
	return depth{small: true}
}
