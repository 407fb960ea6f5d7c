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

// leastEnded is the least number of samples of a run. The runtime grants few suspensions while its finalizer
// owns the lock of the threads.
const leastEnded = 10

// examples are the sample profilers, and the library of each.
var examples = map[string]string{"smallest_sampler.cpp": "libseedwalk.so", "own_protocol.cpp": "libseedwalk.so", "client.c": "libseedwalk_client.a"}

// The sample profilers neither hang a program nor stop sampling if ThreadDestroyed comes late, as it does for
// native threads while finalizers are slow.
func TestSamplerEndedThreads(t *testing.T) {
	dir := tempdir.New(t)
	for example, kind := range examples {
		t.Run(example, func(t *testing.T) {
			library, out := vendor(t, dir, filepath.Join("capi", "examples", example), kind), filepath.Join(dir, example)
			res := run(t, 2*time.Minute, clientEnv(t, library, out, "OWN_PROTOCOL_OUT="+out), app(t, "Ended", samplerLength("8"))...)
			if res.code != 42 || res.stdout+res.stderr != "" {
				t.Fatalf("the program ended with %d and said %q %q", res.code, res.stdout, res.stderr)
			}
			var samples int
			first, _, _ := strings.Cut(readFile(t, out), "\n")
			fmt.Sscanf(first, "samples %d", &samples)
			t.Log(first)
			if samples < leastEnded {
				t.Errorf("%d samples: sampling has stopped", samples)
			}
		})
	}
}

// The checking proxy finds no fault in the sample profilers.
func TestProxyOfSamplers(t *testing.T) {
	dir := tempdir.New(t)
	src, check := filepath.Join(root, "capi", "checked", "src"), filepath.Join(dir, "libseedwalkcheck.so")
	argv := []string{"gcc", "-O2", "-shared", "-fPIC", "-o", check, filepath.Join(src, "loader.c"), filepath.Join(src, "proxy.c"), filepath.Join(src, "rules.c"),
		filepath.Join(src, "threads.c"), "-ldl", "-lpthread"}
	if r := run(t, time.Minute, nil, argv...); r.code != 0 {
		t.Fatal(r.stderr)
	}
	for example, kind := range examples {
		t.Run(example, func(t *testing.T) {
			library := vendor(t, dir, filepath.Join("capi", "examples", example), kind)
			out, broken := filepath.Join(dir, example), filepath.Join(dir, example+".broken")
			res := run(t, 2*time.Minute, clientEnv(t, check, out, "OWN_PROTOCOL_OUT="+out, "SEEDWALK_CHECKED_LIBRARY="+library,
				"SEEDWALK_CHECKED_OUT="+broken), app(t, "Ended", samplerLength("4"))...)
			if b, err := os.ReadFile(broken); res.code != 42 || err != nil || len(b) > 0 {
				t.Errorf("the program ended with %d; the proxy: %v\n%s", res.code, err, b)
			}
		})
	}
}
