package wire

import (
	"math/bits"
	"strconv"
	"strings"
)

// Keys of Stats messages that the tool knows. It shows other keys unchanged.
const (
	StatRetries     = "retries"        // SuspendRuntime calls repeated because a suspension was in progress
	StatLost        = "lost"           // samples dropped: the buffer was full
	StatDenied      = "threads_denied" // samples not taken: the system refuses to suspend the thread
	StatHeld        = "threads_held"   // suspensions of threads that were already suspended
	StatTicks       = "ticks"          // rounds of the sampler
	StatSuspensions = "suspensions"    // times the runtime was suspended
	StatSuspended   = "suspended_ns"   // Histogram: suspension of the runtime or of a thread, nanoseconds
	StatContext     = "context_ns"     // Histogram: share of it until context and stack were copied
	StatWalk        = "seed_ns"        // Histogram: share of it for the profiler's own walk
	StatSnapshot    = "snapshot_ns"    // Histogram: share of it for DoStackSnapshot
	StatEngine      = "probe_"         // + counter: of an engine outside the process
	StatTries       = "tries/"         // + verdict/result: suspensions of single threads by outcome
)

// subBits gives eight buckets to every power of two: a quantile read from a
// Histogram is at most an eighth too high.
const subBits = 3

// Histogram counts values in buckets whose width grows with the value. The
// zero value is empty. Add does not allocate; Add and Write are not safe for
// concurrent use.
type Histogram struct {
	counts [(64 - subBits + 1) << subBits]uint64
	max    uint64
	total  uint64
}

// Add counts one value.
func (h *Histogram) Add(v uint64) {
	h.counts[bucket(v)]++
	h.max = max(h.max, v)
	h.total++
}

// Count is the number of values added.
func (h *Histogram) Count() uint64 { return h.total }

// Max is the greatest value added, exactly.
func (h *Histogram) Max() uint64 { return h.max }

// Quantile returns an upper bound of the q-quantile, 0 <= q <= 1, never above
// Max; 0 of an empty histogram.
func (h *Histogram) Quantile(q float64) uint64 {
	rank, seen := uint64(q*float64(h.total)), uint64(0)
	for i, n := range h.counts {
		if seen += n; n > 0 && (seen > rank || seen == h.total) {
			return min(upper(i), h.max)
		}
	}
	return h.max
}

// Write appends one counter per bucket in use, "key<=UPPER", and "key.max".
func (h *Histogram) Write(w *Writer, key string) {
	for i, n := range h.counts {
		if n > 0 {
			w.Counter(key+"<="+strconv.FormatUint(upper(i), 10), n)
		}
	}
	w.Counter(key+".max", h.max)
}

// Set reads one Stats message that Write made for the histogram called key. It reports
// whether the message belongs to that histogram. A repeated bucket replaces its count.
func (h *Histogram) Set(key string, s *Stats) bool {
	rest, ok := strings.CutPrefix(s.Key, key)
	if !ok {
		return false
	}
	if rest == ".max" {
		h.max = s.Value
		return true
	}
	bound, ok := strings.CutPrefix(rest, "<=")
	if !ok {
		return false
	}
	v, err := strconv.ParseUint(bound, 10, 64)
	if err != nil {
		return false
	}
	c := &h.counts[bucket(v)]
	h.total += s.Value - *c
	*c = s.Value
	return true
}

// Merge adds the values of o.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.max = max(h.max, o.max)
}

// bucket: values below 8 have a bucket each; above, the three bits after the
// leading one choose among the eight of its power of two.
func bucket(v uint64) int {
	if v < 1<<subBits {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - subBits
	return (shift+1)<<subBits | int(v>>shift)&(1<<subBits-1)
}

// upper is the greatest value of a bucket.
func upper(i int) uint64 {
	if i < 1<<subBits {
		return uint64(i)
	}
	shift := i>>subBits - 1
	return (uint64(1<<subBits|i&(1<<subBits-1))+1)<<shift - 1
}
