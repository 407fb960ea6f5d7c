package capture

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// A file comes back as it was written; cut anywhere, it is refused.
func TestFile(t *testing.T) {
	want := &File{Sets: [][]Image{{{Start: 0x1000, End: 0x2000, Bias: 0x1000, Path: "a", BuildID: "c0de"}}},
		Stacks: []Stack{{Limit: 3, Runs: []memory.Run{{Addr: 0x7000, Data: []byte("abcdefgh")}}}}}
	want.Stacks[0].Regs.RIP, want.Stacks[0].Regs.GPR[4], want.Stacks[0].Regs.Known = 0x1234, 0x7000, 1<<16-1
	path := filepath.Join(t.TempDir(), "walks")
	must.Do(t, want.Write(path))
	got, err := Read(path)
	must.True(t, err == nil && cmptest.Diff(want, got) == "", "%v\n got %+v\nwant %+v", err, got, want)
	b := must.Get(os.ReadFile(path))(t)
	for n := range b {
		must.Do(t, os.WriteFile(path, b[:n], 0o600))
		_, err := Read(path)
		must.True(t, err != nil, "a file cut at %d of %d was accepted", n, len(b))
	}
}
