package bench

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/seedwalk/seedwalk/bench/peer"
	"github.com/seedwalk/seedwalk/stack/capture"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func run(name string, args ...string) error {
	if b, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, b)
	}
	return nil
}

func record(tb testing.TB, deep, path string, depth int) {
	tb.Helper()
	must.Do(tb, run(deep, path, fmt.Sprint(depth)))
}

// rawFiles lists the raw sample files to walk, or skips nothing and says so.
func rawFiles(b *testing.B) []string {
	files, err := peer.RawFiles(b.TempDir())
	if err != nil {
		b.Log("SKIPPED-CHECK: " + err.Error())
	}
	return files
}

// Both sides give every frame of stacks of known depth: the timed work is the
// whole walk.
func TestDeep(t *testing.T) {
	peers, deep := rivals(t)
	for _, depth := range []int{8, 32, 128} {
		path := t.TempDir() + "/deep"
		record(t, deep, path, depth)
		f := must.Get(capture.Read(path))(t)
		for i := range peers {
			if got := peers[i].agreed(t, f).Stacks[0].Limit; got != depth {
				t.Errorf("%s: %d frames of a stack of %d", peers[i].name, got, depth)
			}
		}
		replayed(t, f)
	}
}
