package paused

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

func TestFullName(t *testing.T) {
	for _, c := range []struct{ meta, short, want string }{
		{"App.OrderFailed`1", "OrderFailed<int>", "App.OrderFailed<int>"},
		{"App.Outer`1+Inner", "Outer<int>.Inner", "App.Outer<int>.Inner"},
		{"Plain", "Plain", "Plain"},
		{"App.OrderFailed`1", "", "App.OrderFailed`1"}, // the core is damaged
	} {
		expect.Equal(t, fullName(c.meta, c.short), c.want, c.meta)
	}
}

// Tables that are not verified are not used.
func TestUnprovenExceptions(t *testing.T) {
	p := &Process{target: &target.Process{Tables: &contract.Tables{}}}
	setNew(&p.target.Names)
	p.target.Threads.Objects = map[uint32]uint64{7: 0x1000}
	all, unhandled := p.Exceptions(&Stack{TID: 7})
	expect.True(t, all == nil && !unhandled, "%v, unhandled %v", all, unhandled)
}

// setNew sets a pointer to a type that this package does not import.
func setNew[T any](p **T) { *p = new(T) }

// A chain of exceptions ends at a misaligned or unreadable one, or at the limit.
func TestChain(t *testing.T) {
	for _, c := range []struct {
		from, step, last uint64
		want             int
	}{
		{8, 8, 24, 3},
		{8, 0, 8, maxCauses}, // a circle
		{8, 12, 1000, 1},
		{4, 8, 1000, 0},
		{32, 8, 24, 0},
	} {
		all := chain(c.from, func(at uint64) (Exception, uint64, bool) {
			return Exception{}, at + c.step, at <= c.last
		})
		expect.Equal(t, len(all), c.want, "%+v", c)
	}
}

// start is memory that ends early. Its first byte is at page.
type start []byte

func (m start) ReadAt(p []byte, at uint64) bool { return m.ReadSome(p, at) == len(p) }
func (m start) ReadSome(p []byte, at uint64) int {
	return copy(p, m[min(at-page, uint64(len(m))):])
}

// A message that ends at unreadable memory, or is too long, is marked as cut.
func TestText(t *testing.T) {
	d := must.Get(contract.ParseDescriptor(
		[]byte(`{"types":{"String":{"m_StringLength":8,"m_FirstChar":12}}}`)))(t)
	long := append(make([]byte, 16), 0, 0, 0, 0, 0, 0, 0, 0, 1, 16, 0, 0) // 4,097 characters
	for _, c := range []struct {
		mem  start
		at   uint64
		want string
		cut  bool
	}{
		{append(make(start, 24), 2, 0, 0, 0, 'o', 0, 'k', 0), page + 16, "ok", false},
		{append(make(start, 24), 3, 0, 0, 0, 'o', 0, 'k', 0), page + 16, "ok", true},
		{append(make(start, 24), 2, 0, 0, 0, 'o', 0, 'k'), page + 16, "o", true},
		{append(make(start, 24), 2, 0), page + 16, "", false},
		{append(start(long), make([]byte, 2*4097)...), page + 16, string(make([]byte, maxMessage)), true},
		{make(start, 64), 0, "", false},
	} {
		got, cut := text(c.mem, d, c.at)
		expect.True(t, got == c.want && cut == c.cut, "%.20q, cut %v; want %.20q, %v", got, cut, c.want,
			c.cut)
	}
}

// The methods of Environment.FailFast are consecutive. What follows them on the stack is not theirs.
func TestFailFastFrames(t *testing.T) {
	frame := func(name string, sp uint64) StackFrame {
		f := StackFrame{Name: name}
		if f.SP, f.Kind = sp, unwind.KindNative; strings.HasPrefix(name, "System.") {
			f.Kind = unwind.KindManaged
		}
		return f
	}
	for _, c := range []struct {
		frames    []StackFrame
		from, end uint64
	}{
		{nil, 0, 0},
		{[]StackFrame{frame("raise", 8), frame("main", 16)}, 0, 0},
		{[]StackFrame{frame("raise", 8), frame("System.Environment.FailFast(string, Exception)", 16),
			frame("System.Environment.FailFast(string)", 32), frame("main", 64)}, 16, 64},
		{[]StackFrame{frame("System.Environment.FailFastly()", 8), frame("main", 16)}, 0, 0},
		{[]StackFrame{frame("System.Environment.FailFast(string)", 8)}, 0, 0}, // its end is unknown
	} {
		from, end := failFast(c.frames)
		expect.True(t, from == c.from && end == c.end, "%v: %d to %d", c.frames, from, end)
	}
}
