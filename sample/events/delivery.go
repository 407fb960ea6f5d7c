package events

// delivery learns which frames the runtime adds on top of every event's stack. The runtime has no symbols for
// them and each build is different, but exactly these frames are common to stacks of two kinds of event. The
// function that calls them is specific to the event, and is not part of the program either.
type delivery struct {
	first map[uint32][]uint64 // by event: the return addresses of its first stack, leaf first
	n     int                 // frames in common
}

// maxDelivery bounds the comparison: real deliveries are five frames deep.
const maxDelivery = 64

// learn adds a stack, and reports whether the delivery is known.
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

// cut returns how many frames of a stack belong to the delivery, or false if the event was delivered in
// another way.
func (d *delivery) cut(ips []uint64) (int, bool) {
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
