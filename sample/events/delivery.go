package events

// delivery learns how the runtime delivers events: the frames that stand on top of
// every event's stack, whatever the event is. The runtime has no symbols to ask and
// each build is another, but stacks of two kinds of event have these frames in common
// and no more. Above them one function per event calls them, which is not the
// program's either.
type delivery struct {
	first map[uint32][]uint64 // of each event: return addresses of its first stack, leaf first
	n     int                 // frames in common
}

// maxDelivery bounds what is compared: real runs are five deep.
const maxDelivery = 64

// learn takes a stack, and reports whether it has changed what is known.
func (d *delivery) learn(event uint32, ips []uint64) bool {
	if _, ok := d.first[event]; ok || len(ips) == 0 {
		return false
	}
	if d.first == nil {
		d.first = map[uint32][]uint64{}
	}
	mine := append([]uint64(nil), ips[:min(len(ips), maxDelivery)]...)
	before, n := d.known(), d.n
	for _, other := range d.first {
		if c := common(mine, other); !before && n == 0 || c < n {
			n = c
		}
	}
	d.first[event] = mine
	if d.known() {
		d.n = n
	}
	return d.known()
}

func (d *delivery) known() bool { return len(d.first) > 1 }

// cut is how many frames of a stack are of the delivery; 0 and false if it was
// delivered in another way.
func (d *delivery) cut(event uint32, ips []uint64) (int, bool) {
	for _, other := range d.first {
		if common(ips[:min(len(ips), d.n)], other) < d.n || d.n == 0 {
			return 0, false
		}
		break
	}
	return min(d.n+1, len(ips)), true
}

func common(a, b []uint64) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
