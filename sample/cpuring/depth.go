package cpuring

// depth decides how much the kernel copies of a thread's stack. The whole stack is copied until
// many samples in a row were shallow, so a thread of changing depth has few cut samples: at most
// one in enoughShallow, and ever fewer.
type depth struct {
	small   bool // only Config.Stack bytes are copied
	shallow int  // samples in a row that needed little
	enough  int  // of those, until small; 0 = enoughShallow
}

// enoughShallow is how many shallow samples in a row it takes at first, and moreShallow how many
// times more after each sample that was cut.
const (
	enoughShallow = 64
	moreShallow   = 8
)

// sampled takes note of a sample that used so many bytes of its stack. It reports whether the
// size of the copies changes. limit is Config.Stack: it leaves room for more calls.
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
