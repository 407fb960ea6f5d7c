package probe

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// built builds the probe with a compiler, which determines the architecture.
func built(t *testing.T, cc string) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("SKIPPED-CHECK: the probe is for Linux on x86-64")
	}
	needs.Command(t, cc)
	path := filepath.Join(t.TempDir(), LibraryName)
	cmd := exec.Command("src/build.sh", path)
	cmd.Env = append(os.Environ(), "CC="+cc)
	must.Run(t, cmd)
	return path
}

// One file works with every C library: it uses none of them and no thread-local storage.
func TestLibraryNeedsNothing(t *testing.T) {
	for cc, limit := range map[string]int64{"gcc": 28 << 10, armCC: 68 << 10} { // ARM64 pages may have 64 KiB
		t.Run(cc, func(t *testing.T) { needsNothing(t, built(t, cc), limit) })
	}
}

const armCC = "aarch64-linux-gnu-gcc"

func needsNothing(t *testing.T, path string, limit int64) {
	f, err := elf.Open(path)
	must.Do(t, err)
	defer f.Close()
	libs, _ := f.ImportedLibraries()
	expect.True(t, len(libs) == 0, "it needs %v", libs)
	symbols, err := f.DynamicSymbols()
	must.Do(t, err)
	exported := 0
	for _, s := range symbols {
		switch {
		case elf.ST_TYPE(s.Info) == elf.STT_SECTION:
		case s.Section != elf.SHN_UNDEF:
			exported++
		case elf.ST_BIND(s.Info) != elf.STB_WEAK:
			t.Errorf("it needs the symbol %s", s.Name)
		}
		expect.True(t, !s.HasVersion && s.Version == "", "%s has a version: %s", s.Name, s.Version)
	}
	for _, p := range f.Progs {
		expect.True(t, p.Type != elf.PT_TLS, "it has thread-local storage")
	}
	for _, name := range []string{".gnu.version_r", ".tbss", ".tdata"} {
		expect.True(t, f.Section(name) == nil, "it has a section %s", name)
	}
	flags, err := f.DynValue(elf.DT_FLAGS_1)
	expect.True(t, err == nil && len(flags) == 1 && flags[0]&uint64(elf.DF_1_NODELETE) != 0,
		"it may be unloaded: %v, %v", flags, err)
	info, err := os.Stat(path)
	expect.True(t, err == nil && exported == 2 && info.Size() <= limit,
		"%d symbols exported, %d bytes, %v", exported, info.Size(), err)
	t.Logf("%d bytes, %d symbols needed", info.Size(), len(symbols)-exported)
}

// No instruction accesses thread-local storage: %fs belongs to the C library. Only the word that holds its
// address is read.
func TestLibraryTouchesNoThreadStorage(t *testing.T) {
	path := built(t, "gcc")
	needs.Command(t, "objdump")
	out := must.Run(t, exec.Command("objdump", "-d", path))
	out = strings.ReplaceAll(out, "%fs:0x0,", "")
	expect.True(t, !strings.Contains(out, "%fs:") && !strings.Contains(out, "%gs:"),
		"it uses the segment registers of threads")
}

// harness loads the probe as the CLR does, without a CLR, and handles requests.
const harness = `
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), **factory, **object;
	int32_t (*get)(const void *, const void *, void **) = lib ? (int32_t (*)(const void *, const void *, void **))dlsym(lib, "DllGetClassObject") : 0;
	(void)argc;
	if (!get || get("", "", (void **)&factory))
		return 10;
	if (((int32_t (*)(void *, void *, const void *, void **))(*(void ***)factory)[3])(factory, 0, "", (void **)&object))
		return 11;
	int32_t hr = ((int32_t (*)(void *, void *))(*(void ***)object)[3])(object, 0);
	printf("%x\n", (uint32_t)hr);
	dlclose(lib);
	return 0;
}
`

// The probe loads under glibc, under musl, and on ARM64, cancels its activation, and leaves the process
// running.
func TestLibraryLoads(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "harness.c")
	must.Do(t, os.WriteFile(source, []byte(harness), 0o644))
	for _, cc := range []string{"gcc", "musl-gcc", armCC} {
		t.Run(cc, func(t *testing.T) {
			needs.Command(t, cc)
			compiler, run := "gcc", []string{}
			if cc == armCC {
				needs.Command(t, "qemu-aarch64")
				compiler, run = cc, []string{"qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"}
			}
			path := built(t, compiler)
			exe := filepath.Join(dir, "harness-"+cc)
			must.Run(t, exec.Command(cc, "-O1", "-o", exe, source, "-ldl"))
			run = append(run, exe, path)
			cmd := exec.Command(run[0], run[1:]...)
			cmd.Env = append(os.Environ(), "SEEDWALK_SOCKET="+filepath.Join(dir, "nobody"))
			out, err := cmd.CombinedOutput()
			expect.True(t, err == nil && string(out) == "80131375\n", "%q, %v", out, err)
		})
	}
}
