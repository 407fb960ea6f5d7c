package e2e

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// placeSamples is how many samples of known places TestPlaces must compare. A run takes three milliseconds
// for each.
const placeSamples = 1000

// A place is a call of Burn<S1>, Burn<S2>, ... in Places.cs.
var placeName = regexp.MustCompile(`^Places\.Burn<(S\d)>`)

// Lines of compiled and precompiled methods (synchronous, asynchronous, in handlers; in all tiers) are those
// that the program knows, or those of the runtime's own stack trace at the same place.
func TestPlaces(t *testing.T) {
	host, exe := need(t, "out", "bin", "swhost"), need(t, "out", "samples", "Places.exe")
	dir := tempdir.New(t)
	library := withLines(t, dir, host, exe, "System.Linq")
	for _, c := range []struct {
		name, tiers string
		precompiled bool
	}{{"tiers", "1", false}, {"precompiled", "0", true}} {
		t.Run(c.name, func(t *testing.T) {
			r := recordBy(t, []string{"env", "DOTNET_TieredCompilation=" + c.tiers}, "--rate 999",
				host, library, exe, strconv.Itoa(3*placeSamples))
			must.True(t, r.code == 0 && strings.HasSuffix(r.stdout, "PLACES DONE\n"),
				"%d\n%s%s", r.code, r.stdout, r.stderr)
			var known [][]string
			for line := range strings.Lines(r.stdout) {
				if said, ok := strings.CutPrefix(line, "LINES "); ok {
					known = append(known, strings.Fields(said))
				}
			}
			seen := judgePlaces(t, r.jsonProfile, known)
			t.Logf("samples by place: %v; %d known places and callers", seen, len(known))
			all := int64(0)
			for i := range 9 {
				n := seen["S"+strconv.Itoa(i+1)]
				all += n
				expect.True(t, n != 0, "no sample of place %d", i+1)
			}
			// In optimized code some calls are in what the JIT compiler calls an epilog: they have no line.
			if all < placeSamples || seen["all lines"] < all/3 ||
				c.precompiled && seen[libraryFile] < placeSamples/5 {
				t.Errorf("%d samples, %d of them through the library", all, seen[libraryFile])
			}
		})
	}
}

// libraryFile is the file of all methods of the library.
const libraryFile = "All.cs"

// withLines makes a copy of the runtime's folder in which one precompiled library has lines.
func withLines(t *testing.T, dir, host, exe, name string) string {
	t.Helper()
	folder := filepath.Join(dir, "runtime")
	linked(t, folder, runtime9(t))
	dll := filepath.Join(folder, name+".dll")
	copied(t, dll, dll)
	run(t, time.Minute, nil, host, folder, exe, "pdb", dll, filepath.Join(folder, name+".pdb")).ok(t)
	return folder
}

// judgePlaces compares the lines of the callers of each place with the known ones, and counts the samples of
// each place. A caller in an epilog, as the JIT compiler calls it, has no line.
func judgePlaces(t *testing.T, p *jsonProfile, known [][]string) map[string]int64 {
	seen := map[string]int64{}
	for _, s := range p.Stacks {
		var said []string // the place, and the lines of its callers
		through := false
		for _, i := range s.Frames {
			f := &p.Frames[i]
			if m := placeName.FindStringSubmatch(f.Name); m != nil && said == nil {
				said = []string{m[1]}
			} else if said != nil && f.Line > 0 {
				said = append(said, strconv.Itoa(f.Line))
				file := filepath.Base(f.File)
				if through = through || file == libraryFile; file != libraryFile && file != "Places.cs" {
					t.Errorf("%s is in %q", f.Name, f.File)
				}
			}
		}
		if said == nil {
			continue
		}
		seen[said[0]] += s.Count
		if through {
			seen[libraryFile] += s.Count
		}
		if slices.ContainsFunc(known, func(k []string) bool { return slices.Equal(k, said) }) {
			seen["all lines"] += s.Count
		} else if !slices.ContainsFunc(known, func(k []string) bool { return within(said, k) }) {
			seen["wrong"] += s.Count
			t.Errorf("%d samples at the unknown place %v", s.Count, said)
		}
	}
	return seen
}

// within reports whether known has all lines of said, in this order. After a handler, known may end.
func within(said, known []string) bool {
	if said[0] != known[0] {
		return false
	}
	if len(known) == 2 { // a handler, or the first method of a thread
		return len(said) > 1 && said[1] == known[1]
	}
	for _, k := range known {
		if len(said) > 0 && said[0] == k {
			said = said[1:]
		}
	}
	return len(said) == 0
}
