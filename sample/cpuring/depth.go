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
	was := d.small
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
	return d.small != was
}
