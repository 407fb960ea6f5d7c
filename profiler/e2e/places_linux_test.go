package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// placeSamples is how many samples of known places TestPlaces must judge.
const placeSamples = 2000

// A place is a call of Burn<S1>, Burn<S2>, ... in Places.cs.
var placeName = regexp.MustCompile(`^Places\.Burn<(S\d)>`)

// linedProfile is a JSON profile with lines.
type linedProfile struct {
	Frames []struct {
		Name, File string
		Line       int
	}
	Stacks []struct {
		Count  int
		Frames []int
	}
}

// Lines of compiled methods, synchronous, asynchronous, and in handlers, in all tiers, are those that
// the program knows, or that the runtime's own stack traces have at the same place.
func TestPlaces(t *testing.T) {
	host, runtime, exe := need(t, "out", "bin", "swhost"), runtime9(t), need(t, "out", "samples", "Places.exe")
	out := filepath.Join(tempdir.New(t), "out.json")
	r := run(t, 5*time.Minute, nil, tool(t), "record", "--rate", "999", "--output", out, "--", host, runtime, exe, strconv.Itoa(placeSamples+1000))
	if r.code != 0 || !strings.HasSuffix(r.stdout, "PLACES DONE\n") {
		t.Fatalf("%d\n%s%s", r.code, r.stdout, r.stderr)
	}
	known := map[string]bool{}
	for line := range strings.Lines(r.stdout) {
		if said, ok := strings.CutPrefix(line, "LINES "); ok {
			known[strings.TrimSpace(said)] = true
		}
	}
	seen := judgePlaces(t, readLined(t, out), known)
	t.Logf("samples by place: %v; %d known places and callers", seen, len(known))
	all := 0
	for i := range 9 {
		n := seen["S"+strconv.Itoa(i+1)]
		if all += n; n == 0 {
			t.Errorf("no sample of place %d", i+1)
		}
	}
	if all < placeSamples {
		t.Errorf("%d samples", all)
	}
}

func readLined(t *testing.T, path string) (p linedProfile) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// judgePlaces compares the lines of the callers of each place with those that are known. It counts the
// samples of each place.
func judgePlaces(t *testing.T, p linedProfile, known map[string]bool) map[string]int {
	seen := map[string]int{}
	wrong := 0
	for _, s := range p.Stacks {
		said := ""
		right := false
		place := ""
		for _, i := range s.Frames {
			f := &p.Frames[i]
			if m := placeName.FindStringSubmatch(f.Name); m != nil && place == "" {
				place, said = m[1], m[1]
				continue
			}
			if place == "" || f.Line == 0 {
				continue
			}
			if filepath.Base(f.File) != "Places.cs" {
				t.Errorf("%s is in %q", f.Name, f.File)
			}
			said += " " + strconv.Itoa(f.Line)
			right = right || known[said] // a handler's callers are beyond the runtime's trace
		}
		if place == "" {
			continue
		}
		seen[place] += s.Count
		if !right {
			wrong += s.Count
			t.Errorf("%d samples at %s, which nobody knows", s.Count, said)
		}
	}
	t.Logf("wrong: %d", wrong)
	return seen
}
