package module

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func TestLoadELF(t *testing.T) {
	const libc = "/lib/x86_64-linux-gnu/libc.so.6"
	if _, err := os.Stat(libc); err != nil {
		t.Skip("SKIPPED-CHECK: no x86-64 libc on this host")
	}
	m := LoadELF(7, libc, 0x1000, 0x2000, 0x1000)
	if m.Err != nil || m.ID != 7 || m.Start != 0x1000 || m.End != 0x2000 || m.Bias != 0x1000 || m.Path != libc {
		t.Fatalf("%+v", m)
	}
	if m.CFI == nil || m.CFI.Len() < 1000 || m.CFI.Arch() != context.ArchAMD64 || m.BuildID == "" {
		t.Errorf("no frames or no build id: %q", m.BuildID)
	}
}

func TestLoadELFFails(t *testing.T) {
	dir := tempdir.New(t)
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("not an image"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, filepath.Join(dir, "none"), dir} {
		m := LoadELF(1, path, 16, 32, 0)
		if m.Err == nil || m.CFI != nil || m.ELF != nil || m.Start != 16 || m.End != 32 {
			t.Errorf("%s: %+v", path, m)
		}
	}
}
