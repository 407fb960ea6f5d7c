package procstat

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestFields(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 195813 20 21"
	for stat, want := range map[string]uint64{"464 (dotnet)" + rest: 195813,
		"464 (a) b (c) 1 2)" + rest: 195813, "464 (dotnet) S 1": 0, "": 0} {
		s := Parse([]byte(stat))
		expect.Equal(t, s.Number(Start), want, stat)
		expect.Equal(t, s.Field(Start) == "", want == 0, stat)
		expect.Equal(t, s.Ended(), stat == "", stat)
	}
	expect.Equal(t, Parse([]byte("464 (dotnet) Z 1")).Ended(), true, "a zombie has ended")
}

// ReadFile reads files as os.ReadFile does, whatever their length.
func TestReadFile(t *testing.T) {
	for _, size := range []int{0, 1, 1023, 1024, 5000} {
		path := filepath.Join(t.TempDir(), "file")
		want := bytes.Repeat([]byte("abc"), size)[:size]
		must.Do(t, os.WriteFile(path, want, 0o600))
		got := must.Get(ReadFile(path))(t)
		expect.True(t, bytes.Equal(got, want), "%d of %d bytes", len(got), size)
	}
	_, err := ReadFile(t.TempDir() + "/none")
	expect.True(t, os.IsNotExist(err), "a missing file: %v", err)
}
