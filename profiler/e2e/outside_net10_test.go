package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/unwind"
)

// A single-file program on .NET 10, whose runtime describes its structures: whole stacks, and each method has
// a name.
func TestProbeNet10(t *testing.T) {
	c := newChecker(t)
	azmcp := need(t, ".cache", "dotnet-10.0.9", "package", "dist", "azmcp")
	r := recordRaw(t, "--mode probe --rate 250", "/bin/sh", "-c", `sleep 8 | exec "$0" server start`, azmcp)
	t.Log("\n" + r.stderr)
	lost, managed, doubtful := 0, 0, 0
	for _, s := range r.samples {
		if s.Result.Gap != merge.GapNone {
			if lost++; lost < 4 {
				t.Logf("%v:\n%s", s.Result.Gap, c.dump(s))
			}
		}
		if len(s.Frames) > 0 && s.Frames[0].Function != 0 {
			managed++
		}
		if slices.ContainsFunc(s.Frames, func(f merge.Frame) bool { return f.Kind != unwind.KindGap && f.Trust.Doubtful() }) {
			doubtful++
		}
	}
	unnamed := 0
	for _, name := range r.names {
		if strings.HasPrefix(name, "method 0x") {
			unnamed++
		}
	}
	t.Logf("%d samples, %d not whole, %d with a doubtful frame, %d with managed code on top, %d methods, %d without a name", len(r.samples), lost, doubtful, managed, len(r.names), unnamed)
	if doubtful*200 > len(r.samples) {
		t.Errorf("%d of %d stacks have a doubtful frame", doubtful, len(r.samples))
	}
	if len(r.samples) < 100 || lost*200 > len(r.samples) || unnamed*100 > len(r.names) || len(r.names) < 100 {
		t.Errorf("%d of %d stacks are not whole, %d of %d methods have no name", lost, len(r.samples), unnamed, len(r.names))
	}
}
