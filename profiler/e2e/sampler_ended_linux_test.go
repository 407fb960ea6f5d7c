package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// leastEnded is how many samples a run has at least. The runtime grants few suspensions while its
// finalizer owns the lock of the threads.
const leastEnded = 10

// The sample profilers neither hang a program nor stop sampling when ThreadDestroyed comes late,
// as it does for native threads while finalizers take their time.
func TestSamplerEndedThreads(t *testing.T) {
	dir := tempdir.New(t)
	for _, example := range []string{"smallest_sampler", "own_protocol"} {
		t.Run(example, func(t *testing.T) {
			library := vendor(t, dir, filepath.Join("capi", "examples", example+".cpp"), "libseedwalk.so")
			out := filepath.Join(dir, example)
			res := run(t, 2*time.Minute, profiled(library, "SAMPLER_OUT="+out, "OWN_PROTOCOL_OUT="+out), app(t, "Ended", samplerLength("8"))...)
			if res.code != 42 || res.stdout+res.stderr != "" {
				t.Fatalf("the program ended with %d and said %q %q", res.code, res.stdout, res.stderr)
			}
			b, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			var samples int
			fmt.Sscanf(string(b), "samples %d", &samples)
			first, _, _ := strings.Cut(string(b), "\n")
			t.Log(first)
			if samples < leastEnded {
				t.Errorf("%d samples: sampling has stopped", samples)
			}
		})
	}
}
