package e2e

import "testing"

// Return addresses that the runtime has replaced by its own, to stop a thread when its
// method returns, are met in copied stacks and set right, by the bytes of the runtime's
// Thread that were copied with them.
func TestProbePatched(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		c := newChecker(t)
		c.want, c.first, c.last = 100, 61, 63
		var met, patched int64
		for runs := 0; runs < 8 && met == 0; runs++ {
			r := recordRaw(t, "--mode probe --rate 1000", on(t, runtime, "Truth", "5", "hijack")...)
			r.well(t, 0, "TRUTH DONE\n")
			met += r.Counters["returns"]
			patched += r.Counters["patched"]
			c.recorded(t, r)
		}
		c.verdict(t)
		t.Logf("%d replaced return addresses set right, in %d stacks that had one", met, patched)
		if met == 0 {
			t.Error("none was met")
		}
	})
}
