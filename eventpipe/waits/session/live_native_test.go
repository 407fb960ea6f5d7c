//go:build linux

package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

// TestLiveNative: threads that wait have their native frames, joined at the
// event's own leaf, and those below it.
func TestLiveNative(t *testing.T) {
	for _, p := range programs {
		t.Run(p.runtime, func(t *testing.T) {
			s := atStart(t, p.start(t, everything))
			s.leaves(t)
			s.through(t)
		})
	}
}

func (s *seen) leaves(t *testing.T) {
	t.Helper()
	joined := 0
	for i := range s.a.Waits {
		w := &s.a.Waits[i]
		leaves := s.a.Leaves(w.Native, w.Start)
		if len(leaves) == 0 {
			continue
		}
		joined++
		expect.True(t, strings.Contains(leaves[0].Module, "libc"), "the leaf is %s", leaves[0].Name)
	}
	t.Logf("%d of %d waits; %+v", joined, len(s.a.Waits), s.native)
	// A loaded machine comes late to some waits, or meets a thread that is about to run.
	n := s.native
	expect.True(t, joined >= int(n.Tried-n.Ran-n.Late-n.Lost) && n.Tried >= 30 && n.Ran+n.Late <= 8 &&
		n.Lost <= 1, "only %d waits have native frames; %+v", joined, n)
	expect.True(t, n.Whole == n.Joined, "%d of %d are whole", n.Whole, n.Joined)
}

// through: managed code that waits, below it native code that called it, below that
// managed code again, and the thread's root: every frame at its place. Where the native
// ones return to the program itself has noted.
func (s *seen) through(t *testing.T) {
	t.Helper()
	var noted []uint64
	for line := range strings.Lines(s.out.String()) {
		var addr uint64
		if n, _ := fmt.Sscanf(line, "through %v", &addr); n == 1 {
			noted = append(noted, addr)
		}
	}
	for i := range s.a.Waits {
		w := &s.a.Waits[i]
		frames := s.a.Frames(w.Stack, w.Start)
		if !slices.ContainsFunc(frames, func(f waits.Frame) bool { return f.Name == "Waits.Callback" }) {
			continue
		}
		var list []string
		var addrs []uint64
		for _, f := range s.a.Whole(w.Native, frames, w.Start) {
			list, addrs = append(list, f.Name), append(addrs, f.Addr)
		}
		const native = "IL_STUB_ReversePInvoke deeper deeper deeper deeper waits_through"
		text := strings.ReplaceAll(strings.Join(list, " "), "dynamicClass.", "")
		at := slices.Index(addrs, noted[0])
		if !strings.Contains(text, native) || !strings.HasSuffix(text, "start_thread clone3") || at < 0 ||
			at+len(noted) > len(addrs) || !slices.Equal(addrs[at:at+len(noted)], noted) {
			t.Errorf("the callback:\n  %s\n%x, the program has noted %x",
				strings.Join(list, "\n  "), addrs, noted)
		}
		return
	}
	t.Error("there is no wait in a callback")
}
