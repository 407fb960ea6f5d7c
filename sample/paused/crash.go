package paused

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/objects"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/unwind"
)

// Exception is a managed exception. Cut means that the message is longer than maxMessage.
type Exception struct {
	Type    string `json:"type"`
	Message string `json:"message,omitempty"`
	Cut     bool   `json:"message_cut,omitempty"`
}

const (
	maxCauses  = 16
	maxMessage = 4096 // characters of UTF-16
)

// Exceptions returns the exception that a thread throws or handles, then the inner exceptions. unhandled
// means that the runtime found no handler. It is false if that is not certain. An exception that the program
// has handled before is not returned.
func (s *Process) Exceptions(st *Stack) (all []Exception, unhandled bool) {
	t := s.target
	object := t.Threads.Objects[st.TID]
	if object == 0 || t.Tables == nil || !t.Tables.Proven() || t.Names == nil {
		return nil, false
	}
	d, word := t.Tables.Descriptor(), t.Word
	types, err := objects.NewTypes(t.Mem, d, t.Names)
	tracker, ok1 := d.Offset("Thread", "ExceptionTracker")
	thrown, ok2 := d.Offset("ExceptionInfo", "ThrownObject")
	if err != nil || !ok1 || !ok2 {
		return nil, false
	}
	all = s.causes(types, word(word(word(object+uint64(tracker))+uint64(thrown))))
	first := slices.IndexFunc(st.Frames, func(f StackFrame) bool { return f.Kind == unwind.KindManaged })
	throws := first >= 0 && strings.HasPrefix(st.Frames[first].Name, "System.Runtime.EH.")
	if last, ok := d.Offset("Thread", "LastThrownObject"); ok && throws && all == nil {
		all = s.causes(types, word(word(object+uint64(last))))
	}
	return all, throws && all != nil
}

// FailFast returns the message that a thread has passed to Environment.FailFast, "" if it is not certain. The
// method passes the address of the message's first character to native code, so its frames have that address.
// They must have the address of no other string's first character. cut means that the message is longer.
func (s *Process) FailFast(st *Stack) (message string, cut bool) {
	t := s.target
	from, end := failFast(st.Frames)
	if end-from > maxFailFast || t.Tables == nil || !t.Tables.Proven() || t.Names == nil {
		return "", false
	}
	d := t.Tables.Descriptor()
	types, err := objects.NewTypes(t.Mem, d, t.Names)
	first, ok := d.Offset("String", "m_FirstChar")
	if err != nil || !ok {
		return "", false
	}
	var found uint64
	for ; from < end; from += 8 {
		at := t.Word(from) - uint64(first)
		if at&7 != 0 || at == found || !types.Of(t.Word(at)&^7).Is("System.String") {
			continue
		}
		if found != 0 {
			return "", false
		}
		found = at
	}
	return text(t.Mem, d, found)
}

// maxFailFast bounds the frames of Environment.FailFast, bytes.
const maxFailFast = 4096

// failFast returns the part of a stack that the methods of Environment.FailFast use, zeros if the stack has
// no such method.
func failFast(frames []StackFrame) (from, end uint64) {
	const method = "System.Environment.FailFast("
	for i := range frames[:max(len(frames)-1, 0)] {
		f := &frames[i]
		if f.Kind != unwind.KindManaged || !strings.HasPrefix(f.Name, method) {
			continue
		}
		if end = frames[i+1].SP; from == 0 {
			from = f.SP
		}
	}
	return from, end
}

// causes reads the exception at an address and its inner exceptions. It returns nil if no exception is there.
func (s *Process) causes(types *objects.Types, at uint64) (out []Exception) {
	d, word := s.target.Tables.Descriptor(), s.target.Word
	message, ok1 := d.Offset("Exception", "_message")
	inner, ok2 := d.Offset("Exception", "_innerException")
	if !ok1 || !ok2 {
		return nil
	}
	return chain(at, func(at uint64) (e Exception, next uint64, ok bool) {
		typ := types.Of(word(at) &^ 7)
		if !typ.Is("System.Exception") {
			return e, 0, false
		}
		e.Type = fullName(typ.Name, s.target.Names.TypeOf(typ.Table))
		e.Message, e.Cut = text(s.target.Mem, d, word(at+uint64(message)))
		return e, word(at + uint64(inner)), true
	})
}

// chain reads the exception at an address and then each inner exception, at most maxCauses. read returns the
// address of the inner one.
func chain(at uint64, read func(at uint64) (e Exception, inner uint64, ok bool)) (out []Exception) {
	for len(out) < maxCauses && at&7 == 0 {
		e, inner, ok := read(at)
		if !ok {
			break
		}
		out, at = append(out, e), inner
	}
	return out
}

// fullName adds a type's namespace to its short name. meta is its name in metadata. In a damaged core, the
// short name may be unknown: then fullName returns meta, which lacks the type arguments.
func fullName(meta, short string) string {
	if short == "" {
		return meta
	}
	outer, _, _ := strings.Cut(meta, "+")
	return outer[:strings.LastIndexByte(outer, '.')+1] + short
}

// text reads the beginning of a managed string, "" if it is null or unreadable.
func text(mem live.Memory, d *contract.Descriptor, at uint64) (text string, cut bool) {
	length, ok1 := d.Offset("String", "m_StringLength")
	first, ok2 := d.Offset("String", "m_FirstChar")
	n, ok3 := memory.Uint32(mem, at+uint64(length))
	if at == 0 || !ok1 || !ok2 || !ok3 {
		return "", false
	}
	b := make([]byte, 2*min(n, maxMessage))
	b = b[:mem.ReadSome(b, at+uint64(first))]
	var units []uint16
	for ; len(b) >= 2; b = b[2:] {
		units = append(units, binary.LittleEndian.Uint16(b))
	}
	return string(utf16.Decode(units)), uint64(len(units)) < uint64(n)
}
