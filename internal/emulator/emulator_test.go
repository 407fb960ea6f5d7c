package emulator

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		exe, want string
	}{
		{"/usr/bin/qemu-aarch64", "arm64"},
		{"/usr/bin/qemu-x86_64-static", "amd64"},
		{"/usr/bin/qemu-arm", "arm"},
		{"/usr/bin/qemu-system-aarch64", ""},
		{"/usr/bin/qemu-img", ""},
		{"/opt/qemu-aarch64/app", ""},
		{"/usr/bin/dotnet", ""},
		{"", ""}, // gone, or not ours
	} {
		t.Run(c.exe, func(t *testing.T) {
			dir := t.TempDir()
			if c.exe != "" {
				if err := os.Symlink(c.exe, filepath.Join(dir, "exe")); err != nil {
					t.Skipf("SKIPPED-CHECK: no symbolic links here: %v", err)
				}
			}
			expect.Equal(t, Of(dir), c.want)
		})
	}
}
