package nettrace

import (
	"bufio"
	"bytes"
	"io"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// Kind is the kind of item that Next found.
type Kind uint8

const (
	None      Kind = iota
	EventKind      // Event returns it
	PointKind      // Point returns it
)

// Limits of a reader.
const (
	MaxBlock    = 64 << 20 // bytes of a block
	maxStacks   = 64 << 20 // bytes of stacks between two sequence points
	maxStackIDs = 4 << 20
	maxMetadata = 1 << 16
	maxStrings  = 32 << 20 // bytes of metadata's names
	maxThreads  = 1 << 20
	maxFaults   = int(numReasons)
)

// framing reads the blocks of one version of the format.
type framing interface {
	// next reads one block. It returns io.EOF at the end mark.
	next(r *Reader) error
}

// Reader reads a trace. Create it with NewReader.
type Reader struct {
	src     source
	frame   framing
	trace   Trace
	started bool

	data   []byte // the current block
	base   int64  // of data in the trace
	cut    *Error // the current block is truncated: reported when it is read
	events eventBlock
	event  Event
	point  Point
	ready  bool // point is to be delivered

	metadata map[uint32]*Metadata
	recent   *Metadata // of the last event
	names    map[string]string
	strings  int
	stacks   stackTable
	threads  sequences
	table    map[uint64]threadInfo   // version 6
	counters map[threadIDs]idCounter // the same

	faults []Fault
	counts Counts
	end    error
}

// NewReader returns a Reader of r's bytes, which it reads as they come.
func NewReader(r io.Reader) *Reader {
	return &Reader{src: source{r: bufio.NewReaderSize(r, 1<<16)},
		metadata: map[uint32]*Metadata{}, names: map[string]string{},
		threads: sequences{last: map[uint64]*uint32{}}, table: map[uint64]threadInfo{},
		counters: map[threadIDs]idCounter{}}
}

// Next reads the next event or point. The error is io.EOF at the end of a complete trace,
// and otherwise an *Error. Reading ends after an error.
func (r *Reader) Next() (Kind, error) {
	for r.end == nil {
		if r.events.left() && r.nextEvent() {
			return EventKind, nil
		}
		if r.ready {
			r.ready = false
			return PointKind, nil
		}
		r.end = r.advance()
	}
	return None, r.end
}

// Event returns the event that Next found.
func (r *Reader) Event() *Event { return &r.event }

// Point returns the sequence point that Next found.
func (r *Reader) Point() *Point { return &r.point }

// Trace returns the description of the trace. It is nil until the description was read, which
// happens before the first event.
func (r *Reader) Trace() *Trace {
	if !r.started {
		return nil
	}
	return &r.trace
}

// Counts returns the counts so far.
func (r *Reader) Counts() Counts {
	c := r.counts
	c.Bytes = r.src.off
	return c
}

// Faults returns the skipped damage, one fault of each kind.
func (r *Reader) Faults() []Fault { return r.faults }

// Held returns the memory of the current block and of the stored stacks, in bytes.
func (r *Reader) Held() int {
	return cap(r.data) + cap(r.stacks.arena) + 8*cap(r.stacks.refs) + r.strings
}

func (r *Reader) fault(reason Reason, at int64, what string) {
	for i := range r.faults {
		if r.faults[i].Reason == reason {
			r.faults[i].Count++
			return
		}
	}
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, Fault{Error{Reason: reason, Offset: at, What: what}, 1})
	}
}

// advance reads the next block.
func (r *Reader) advance() error {
	if r.cut != nil {
		return r.cut
	}
	if r.frame == nil {
		return r.header()
	}
	return r.frame.next(r)
}

var (
	magic        = []byte("Nettrace")
	netperfMagic = []byte{20, 0, 0, 0, '!'} // version 3 and older have only the serialization's header
)

// header reads the first bytes, which contain the version.
func (r *Reader) header() error {
	head, err := r.src.r.Peek(len(magic))
	begin := byte(tagPrivateBegin)
	switch {
	case bytes.HasPrefix(head, netperfMagic):
		begin = tagBegin
	case !bytes.Equal(head, magic):
		return r.foreign(head, err)
	default:
		r.src.r.Discard(len(magic))
		r.src.off += int64(len(magic))
	}
	n, fail := r.src.u32("the trace's header")
	if fail != nil {
		return fail
	}
	if n == 0 {
		return r.startV6()
	}
	return r.startV4(n, begin)
}

// foreign describes a file that is not a trace.
func (r *Reader) foreign(head []byte, err error) error {
	switch {
	case err != nil && err != io.EOF:
		return r.src.fail(err, "the trace's header")
	case len(head) == 0:
		return &Error{Reason: Empty}
	case bytes.HasPrefix(magic, head), bytes.HasPrefix(netperfMagic, head):
		return &Error{Reason: Truncated, Offset: int64(len(head)), What: "the trace's header"}
	}
	e := &Error{Reason: NotNettrace}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		e.What = "it is packed with gzip; unpack it first"
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		e.What = "it is a zip archive; unpack it first"
	case bytes.HasPrefix(head, []byte("ecartteN")), bytes.HasPrefix(head, []byte("tteNecar")):
		e.What = "its bytes are swapped; the format has one byte order only"
	}
	return e
}

// trailing looks for bytes after the end.
func (r *Reader) trailing() {
	head, _ := r.src.r.Peek(len(magic))
	switch {
	case bytes.Equal(head, magic):
		r.fault(Trailing, r.src.off, "another trace begins there; split the file")
	case len(head) > 0:
		r.fault(Trailing, r.src.off, "")
	}
}

// text interns a string. It returns "" beyond the limit.
func (r *Reader) text(b []byte) string {
	if s, ok := r.names[string(b)]; ok {
		return s
	}
	if r.strings += len(b); r.strings > maxStrings {
		return ""
	}
	s := string(b)
	r.names[s] = s
	return s
}

// u32 reads a number of at most 32 bits in LEB128.
func u32(b *buf.Reader) uint32 {
	v := b.ULEB()
	if v > 1<<32-1 {
		b.Fail(buf.FaultLEB)
		return 0
	}
	return uint32(v)
}
