package peer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoSamples means that there are no raw samples and none can be recorded.
var ErrNoSamples = errors.New("peer: no raw samples (SEEDWALK_RAW_SAMPLES=FILE[:FILE], or make runtime build samples)")

// recordSeconds is how long the demonstration program is sampled.
const recordSeconds = "4"

// RawFiles returns the raw sample files of SEEDWALK_RAW_SAMPLES, separated by
// colons. Without it, it samples the demonstration program into dir, if that,
// the tool and a runtime are built.
func RawFiles(dir string) ([]string, error) {
	if list := os.Getenv("SEEDWALK_RAW_SAMPLES"); list != "" {
		return strings.Split(list, ":"), nil
	}
	src, err := Source("libunwind", "peer.c")
	if err != nil {
		return nil, err
	}
	root := filepath.Dir(filepath.Dir(filepath.Dir(src)))
	bin, program := filepath.Join(root, "out", "bin"), filepath.Join(root, "out", "samples", "Demo.exe")
	runtime, err := filepath.Glob(filepath.Join(root, ".cache", "dotnet-9.*", "package", "dist"))
	for _, need := range []string{filepath.Join(bin, "seedwalk"), filepath.Join(bin, "swhost"), program} {
		if _, statErr := os.Stat(need); statErr != nil || err != nil || len(runtime) == 0 {
			return nil, ErrNoSamples
		}
	}
	raw := filepath.Join(dir, "demo.raw")
	cmd := exec.Command(filepath.Join(bin, "seedwalk"), "record", "--rate", "200", "--raw", raw, "--output",
		filepath.Join(dir, "demo.folded"),
		"--", filepath.Join(bin, "swhost"), runtime[0], program, recordSeconds)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("peer: recording samples: %w\n%s", err, out)
	}
	return []string{raw}, nil
}
