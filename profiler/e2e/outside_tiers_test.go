package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/stack/raw"
)

// tiers counts samples in code that is replaced while it runs. They are compared with the runtime's own map
// of all compiled code.
type tiers struct {
	osr      int // stacks with a frame that was replaced on the stack
	top      int // interrupted in that frame
	mixed    int // stacks with one method in two of its bodies
	below    int // stacks that continue on the thread's own stack, below an alternate one
	replaced int // methods seen in more than one body, in one run
}

// mapEnv makes the runtime write its map to dir.
func mapEnv(t *testing.T, dir string) {
	t.Helper()
	t.Setenv("DOTNET_PerfMapEnabled", "3")
	t.Setenv("DOTNET_PerfMapJitDumpPath", dir)
}

// takeMap reads the map of the only process that has written one, and removes it.
func takeMap(t *testing.T, dir, assembly string) perfMap {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(dir, "perf-*.map"))
	if len(found) != 1 {
		t.Fatalf("the runtime wrote %d maps of its methods", len(found))
	}
	defer os.Remove(found[0])
	return readPerfMap(t, found[0], assembly)
}

// add counts the samples of one run.
func (c *tiers) add(m perfMap, samples []*raw.Sample) {
	bodies := map[clr.FunctionID]map[uint64]bool{}
	for _, s := range samples {
		here := map[clr.FunctionID]uint64{}
		osr, top, mixed := false, false, false
		for i := range s.Frames {
			f := &s.Frames[i]
			b := m.find(f.IP)
			if f.Function == 0 || b == nil {
				continue
			}
			if bodies[f.Function] == nil {
				bodies[f.Function] = map[uint64]bool{}
			}
			bodies[f.Function][b.start] = true
			if strings.HasSuffix(b.tier, "OSR") {
				osr, top = true, top || i == 0
			}
			mixed = mixed || here[f.Function] != 0 && here[f.Function] != b.start
			here[f.Function] = b.start
		}
		if osr {
			c.osr++
		}
		if top {
			c.top++
		}
		if mixed {
			c.mixed++
		}
		if len(s.Capture.Below.Data) > 0 {
			c.below++
		}
	}
	for _, b := range bodies {
		if len(b) > 1 {
			c.replaced++
		}
	}
}

// all reports whether every kind that must occur has occurred.
func (c *tiers) all() bool { return c.top > 0 && c.replaced > 0 && c.below > 0 }

func (c *tiers) verdict(t *testing.T) {
	t.Helper()
	t.Logf("%d stacks with a frame replaced on the stack, %d of them interrupted in it, %d with one method in two of its bodies, %d methods seen in several bodies, %d stacks below an alternate one",
		c.osr, c.top, c.mixed, c.replaced, c.below)
	if !c.all() {
		t.Error("not every kind was met")
	}
}
