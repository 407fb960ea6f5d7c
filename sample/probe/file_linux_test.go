package probe

import (
	"os"
	"testing"
	"unsafe"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// The architecture of a file is read once: the target can write it at any time.
func TestFileOfArch(t *testing.T) {
	for _, c := range []struct {
		name string
		arch uint32
		want context.Arch
	}{
		{"x86-64", uint32(context.ArchAMD64), context.ArchAMD64},
		{"ARM64", uint32(context.ArchARM64), context.ArchARM64},
		{"none", 0, context.NoArch},
		{"unknown", uint32(context.ArchARM64) + 1, context.NoArch},
		{"wide", 1<<8 | uint32(context.ArchAMD64), context.NoArch},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := os.Create(t.TempDir() + "/file")
			must.Do(t, err)
			defer f.Close()
			h := header{magic: Magic, version: Version, arch: c.arch}
			if _, err := f.Write(unsafe.Slice((*byte)(unsafe.Pointer(&h)), unsafe.Sizeof(h))); err != nil {
				t.Fatal(err)
			}
			must.Do(t, f.Truncate(FullSize))
			p, err := Open(int(f.Fd()), os.Getpid())
			if (err == nil) != (c.want != context.NoArch) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			defer p.Close()
			if p.h.arch = 3 - c.arch; p.Arch() != c.want || p.form != formats[c.want] {
				t.Errorf("%v, %v", p.Arch(), p.form)
			}
		})
	}
}
