package probe

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// committed lists the probes in the repository with their compilers.
var committed = map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}

// refresh is the command that fixes a failure of these tests.
const refresh = "run make probe, and commit probe/lib"

// builtRecord reads how a committed probe was built.
func builtRecord(t *testing.T, arch string) map[string]string {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join("lib", arch, "built")))(t)
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		out[key] = value
	}
	return out
}

// sourcesSum computes the checksum of the sources as scripts/probes.sh does.
func sourcesSum(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"*.c", "*.h", "build.sh"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		must.True(t, err == nil && len(found) != 0, "%s: %v, %v", pattern, found, err)
		names = append(names, found...)
	}
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(filepath.Base(a),
			filepath.Base(b))
	})
	all := sha256.New()
	for _, name := range names {
		b := must.Get(os.ReadFile(name))(t)
		fmt.Fprintf(all, "%x  %s\n", sha256.Sum256(b), filepath.Base(name))
	}
	return fmt.Sprintf("%x", all.Sum(nil))
}

// A change in probe/src must include rebuilt probes. This test needs no compiler.
func TestCommittedProbeBelongsToSources(t *testing.T) {
	sources := sourcesSum(t, "src")
	for arch := range committed {
		built := builtRecord(t, arch)
		expect.Equal(t, built["sources"], sources,
			"lib/%s was built from other sources than probe/src: %s", arch, refresh)
		object := must.Get(os.ReadFile(filepath.Join("lib", arch, LibraryName)))(t)
		expect.Equal(t, fmt.Sprintf("%x", sha256.Sum256(object)), built["object"],
			"lib/%s/%s is not the probe that lib/%s/built describes: %s", arch, LibraryName, arch, refresh)
		if arch == runtime.GOARCH && !bytes.Equal(Library(), object) {
			t.Error("this program carries another probe than the committed one")
		}
	}
}

// The same sources, built in another folder by the same compiler, give the committed probe byte for byte.
func TestCommittedProbeIsReproducible(t *testing.T) {
	for arch, cc := range committed {
		t.Run(arch, func(t *testing.T) {
			if arch == runtime.GOARCH {
				cc = "gcc"
			}
			reproduce(t, arch, cc)
		})
	}
}

func reproduce(t *testing.T, arch, cc string) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED-CHECK: the probe is built on Linux")
	}
	built, compiler, linker := builtRecord(t, arch), versionOf(t, cc), linkerOf(t, cc)
	if was, is := built["compiler"]+", "+built["linker"], compiler+", "+linker; was != is {
		t.Skipf("SKIPPED-CHECK: the committed probe for %s was built by %s; here is %s", arch, was, is)
	}
	elsewhere := filepath.Join(t.TempDir(), "another", "folder")
	must.Do(t, os.CopyFS(elsewhere, os.DirFS("src")))
	fresh := filepath.Join(elsewhere, "fresh.so")
	cmd := exec.Command("bash", filepath.Join(elsewhere, "build.sh"), fresh)
	cmd.Env = append(os.Environ(), "CC="+cc)
	must.Run(t, cmd)
	want, err1 := os.ReadFile(filepath.Join("lib", arch, LibraryName))
	got, err2 := os.ReadFile(fresh)
	expect.True(t, err1 == nil && err2 == nil && bytes.Equal(got, want),
		"%v, %v: a fresh build has %d bytes, the committed probe %d, and they differ: %s", err1, err2,
		len(got), len(want), refresh)
}

// versionOf returns a compiler's version without its name, which differs between machines.
func versionOf(t *testing.T, cc string) string {
	t.Helper()
	_, version, _ := strings.Cut(firstLine(t, cc, "--version"), " ")
	return version
}

func linkerOf(t *testing.T, cc string) string {
	t.Helper()
	return firstLine(t, firstLine(t, cc, "-print-prog-name=ld"), "--version")
}

// firstLine returns the first line of a command's output. It skips the test if the command is missing.
func firstLine(t *testing.T, command, arg string) string {
	t.Helper()
	out, err := exec.Command(command, arg).Output()
	if err != nil {
		t.Skipf("SKIPPED-CHECK: %s: %v; run scripts/deps.sh probe", command, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}
