package emulator

import (
	"debug/elf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"os"
	"path/filepath"
	"testing"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		exe  string
		want elf.Machine
	}{
		{"/usr/bin/qemu-aarch64", elf.EM_AARCH64},
		{"/usr/bin/qemu-x86_64-static", elf.EM_X86_64},
		{"/usr/bin/qemu-arm", elf.EM_ARM},
		{"/usr/bin/qemu-system-aarch64", elf.EM_NONE},
		{"/usr/bin/qemu-img", elf.EM_NONE},
		{"/opt/qemu-aarch64/app", elf.EM_NONE},
		{"/usr/bin/dotnet", elf.EM_NONE},
		{"", elf.EM_NONE}, // gone, or not ours
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
