package nettrace

import (
	"fmt"
	"io"
	"strings"

	"github.com/seedwalk/seedwalk/internal/buf"
)

// Tags of FastSerialization, version 1.
const (
	tagNull         = 1
	tagPrivateBegin = 5
	tagEnd          = 6
)

const serialization = "!FastSerialization.1"

// Newest reader versions that blocks of the supported versions require.
const newestReader = 5

// maxTypeName is longer than any type name of the format.
const maxTypeName = 256

// framingV4 reads versions 3 to 5, whose objects begin with different tags.
type framingV4 struct{ begin byte }

func (r *Reader) startV4(n uint32, begin byte) error {
	at := r.src.off - 4
	if int(n) != len(serialization) {
		return &Error{Reason: NotNettrace, Offset: at,
			What: fmt.Sprintf("its header has a text of %d bytes, not %d", n, len(serialization))}
	}
	text := make([]byte, n)
	if _, err := r.src.full(text, "the trace's header"); err != nil {
		return err
	}
	if string(text) != serialization {
		return &Error{Reason: NotNettrace, Offset: at, What: fmt.Sprintf("its header says %q", text)}
	}
	r.frame = framingV4{begin}
	return nil
}

// object is the head of an object.
type object struct {
	name               string
	version, minReader uint32
	at                 int64
}

func (f framingV4) next(r *Reader) error {
	at := r.src.off
	tag, err := r.src.u8("a block")
	switch {
	case err != nil && err.Reason == Truncated:
		err.Reason, err.What = NoEnd,
			"the process may have ended without shutting its runtime down; the last events may be missing"
		return err
	case err != nil:
		return err
	case tag == tagNull:
		r.trailing()
		return io.EOF
	case tag != f.begin:
		return &Error{Reason: BadFraming, Offset: at, What: fmt.Sprintf("tag %d instead of an object", tag)}
	}
	o, err := r.objectHead(at, f.begin)
	if err != nil {
		return err
	}
	if o.minReader > newestReader {
		return &Error{Reason: TooNew, Offset: at,
			What: fmt.Sprintf("%s of version %d needs a reader of version %d",
				o.name, o.version, o.minReader)}
	}
	if o.name == "Trace" || o.name == netperfFile {
		err = r.traceV4(&o, f.begin)
	} else {
		err = r.blockV4(&o)
	}
	if err != nil {
		return err
	}
	return nil
}

// objectHead reads the type of an object: two tags, versions, name, a tag.
func (r *Reader) objectHead(at int64, begin byte) (object, *Error) {
	const what = "a block's type"
	if err := r.tag(begin, what); err != nil {
		return object{}, err
	}
	if err := r.tag(tagNull, what); err != nil {
		return object{}, err
	}
	var numbers [12]byte
	if _, err := r.src.full(numbers[:], what); err != nil {
		return object{}, err
	}
	b := buf.At(numbers[:], 0)
	o, n := object{version: b.U32(), minReader: b.U32(), at: at}, b.U32()
	if n == 0 || n > maxTypeName {
		return o, &Error{Reason: BadFraming, Offset: r.src.off - 4,
			What: fmt.Sprintf("a type's name of %d bytes", n)}
	}
	name := make([]byte, n)
	if _, err := r.src.full(name, what); err != nil {
		return o, err
	}
	o.name = string(name)
	return o, r.tag(tagEnd, what)
}

func (r *Reader) tag(want byte, what string) *Error {
	at := r.src.off
	got, err := r.src.u8(what)
	if err == nil && got != want {
		return &Error{Reason: BadFraming, Offset: at,
			What: fmt.Sprintf("tag %d instead of %d in %s", got, want, what)}
	}
	return err
}

// traceV4 reads the object that describes the trace. It has neither size nor padding.
func (r *Reader) traceV4(o *object, begin byte) *Error {
	if (begin == tagBegin) != (o.version < 4) {
		return &Error{Reason: BadTrace, Offset: o.at,
			What: fmt.Sprintf("version %d with tags of another", o.version)}
	}
	var raw [48]byte
	at, data := r.src.off, raw[:]
	if o.version < 3 {
		data = raw[:36]
	}
	if _, err := r.src.full(data, "the trace's description"); err != nil {
		return err
	}
	b := buf.At(data, 0)
	if o.version < 3 {
		b.U32() // a reference to the object's end, by a table at the file's end
	}
	t := Trace{Version: int(o.version), PointerSize: 8}
	t.Start = systemTime(&b)
	t.Ticks, t.Frequency = b.U64(), b.U64()
	if o.version >= 3 {
		t.PointerSize, t.ProcessID = int(b.U32()), int(b.U32())
		t.Processors, t.SamplingRate = int(b.U32()), int(b.U32())
	}
	if err := r.start(t, at); err != nil {
		return err
	}
	if o.version < 3 {
		r.frame = framingNetperf{}
		return nil
	}
	return r.tag(tagEnd, "the trace's description")
}

// start stores the description of a trace.
func (r *Reader) start(t Trace, at int64) *Error {
	switch {
	case r.started:
		return &Error{Reason: BadTrace, Offset: at, What: "a second one"}
	case t.PointerSize != 4 && t.PointerSize != 8:
		return &Error{Reason: BadTrace, Offset: at, What: fmt.Sprintf("pointers of %d bytes", t.PointerSize)}
	case t.Frequency == 0 || t.Frequency > 1<<62:
		return &Error{Reason: BadTrace, Offset: at,
			What: fmt.Sprintf("a clock of %d ticks a second", int64(t.Frequency))}
	}
	r.trace, r.started = t, true
	return nil
}

// blockV4 reads a sized object: its bytes begin at a multiple of four.
func (r *Reader) blockV4(o *object) *Error {
	if !r.started {
		return &Error{Reason: BadFraming, Offset: o.at, What: o.name + " before the trace's description"}
	}
	at := r.src.off
	size, err := r.src.u32("a block's size")
	if err != nil {
		return err
	}
	if size > MaxBlock {
		return &Error{Reason: BadSize, Offset: at, What: fmt.Sprintf("%d bytes of %s", size, o.name)}
	}
	if err := r.padding(); err != nil {
		return err
	}
	r.base = r.src.off
	r.data, r.cut = r.src.block(r.data, int(size), o.name)
	if r.cut == nil {
		r.cut = r.endOfBlock()
	}
	r.counts.Blocks++
	switch o.name {
	case "EventBlock":
		r.eventBlock()
	case "MetadataBlock":
		r.metadataV4()
	case "StackBlock":
		r.stackBlock()
	case "SPBlock":
		r.pointV4()
	default:
		r.fault(UnknownBlock, o.at, strings.ToValidUTF8(o.name, "?"))
	}
	return nil
}

// endOfBlock reads the tag after a block's bytes. A missing tag is reported
// after the block's events.
func (r *Reader) endOfBlock() *Error { return r.tag(tagEnd, "the end of a block") }

func (r *Reader) padding() *Error {
	for r.src.off%4 != 0 {
		at := r.src.off
		b, err := r.src.u8("a block's padding")
		if err != nil {
			return err
		}
		if b != 0 {
			r.fault(BadPadding, at, "")
		}
	}
	return nil
}
