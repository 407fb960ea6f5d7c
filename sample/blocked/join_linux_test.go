package blocked

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/unwind"
)

// walked parses frames from words: n native, m of a method, s a stub, d found by a guess; each with its
// address.
func walked(text string) (out []paused.StackFrame) {
	for word := range strings.FieldsSeq(text) {
		f := paused.StackFrame{Frame: merge.Frame{Trust: unwind.TrustContext}}
		fmt.Sscanf(word[1:], "%x", &f.IP)
		switch word[0] {
		case 'm':
			f.Function = 1
		case 's':
			f.Function, f.Kind, f.Name = 2, unwind.KindStub, "stub"
		case 'd':
			f.Trust = unwind.TrustFramePointer
		}
		f.Exact = len(out) == 0
		out = append(out, f)
	}
	return out
}

// text prints a join: leaves, blocks with their positions, pairs of a method.
func text(n *waits.Native) string {
	if n == nil {
		return "nothing"
	}
	s := fmt.Sprintf("%x|", n.Leaves)
	for _, b := range n.Blocks {
		s += fmt.Sprintf(" %d:", b.Before)
		for _, f := range b.Frames {
			s += fmt.Sprintf("%x%s,", f.Addr, f.Name)
		}
	}
	for _, p := range n.Same {
		s += fmt.Sprintf(" %x=%x", p[0], p[1])
	}
	return s
}

func TestJoin(t *testing.T) {
	full := make([]uint64, deepest)
	deep := "n1 "
	for i := range full {
		full[i] = uint64(0x1000 + i)
		deep += fmt.Sprintf("m%x ", full[i])
	}
	for _, c := range []struct {
		name, frames string
		event        []uint64
		want         string
	}{
		{"leaves and root", "n1 n2 m100 m200 n3 n4", []uint64{0x100, 0x200}, "[1 2]| 2:3,4,"},
		{"a block in the middle, its managed side named in the event", "n1 m100 s50 n2 n3 s60 m200 n4",
			[]uint64{0x100, 0x2, 0x200}, "[1]| 1:50stub, 2:3,60stub, 3:4,"},
		{"two blocks", "n1 m100 n2 m200 n3 m300", []uint64{0x100, 0x200, 0x300}, "[1]| 1:2, 2:3,"},
		{"an inlined P/Invoke in the middle", "n1 m100 n2 m220 m300",
			[]uint64{0x100, 0x210, 0x300}, "[1]| 1:2, 220=210"},
		{"too far for one", "n1 m100 n2 m290 m300", []uint64{0x100, 0x210, 0x300}, "nothing"},
		{"a method that the event has not", "n1 m100 m150 m200", []uint64{0x100, 0x200}, "nothing"},
		{"a method above the event's leaf", "n1 m50 n2 m100", []uint64{0x100}, "nothing"},
		{"a method below the event's root", "n1 m100 m200", []uint64{0x100}, "nothing"},
		{"an address that is not met", "n1 m100 n2", []uint64{0x100, 0x200}, "nothing"},
		{"a guess", "n1 m100 d2 m200", []uint64{0x100, 0x200}, "nothing"},
		{"the interrupted address is no return address", "m100 m200", []uint64{0x100, 0x200}, "nothing"},
		{"an event that is cut goes on", deep + "m9000 n2", full, "[1]| 100:9000,2,"},
	} {
		expect.Equal(t, text(join(walked(c.frames), c.event)), c.want, c.name)
	}
}
