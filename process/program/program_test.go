package program

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/elfasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(tempdir.New(t), filepath.FromSlash(name))
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, data, 0o755))
	return path
}

func TestOpen(t *testing.T) {
	elf32 := append([]byte{}, elfasm.Image()...)
	for _, c := range []struct {
		name string
		data []byte
		want File
	}{
		{"ELF", elfasm.Image(), File{Format: ELF, Arch: "amd64", Machine: "x86-64", Bits: 64}},
		{"ELF of an unknown machine", patched(elf32, 18, 0xf3, 0),
			File{Format: ELF, Machine: "RISC-V", Bits: 64}},
		{"PE", peasm.Image{}.Bytes(), File{Format: PE, Arch: "amd64", Machine: "x86-64", Bits: 64}},
		{"PE of 32 bits", peasm.Image{Machine: 0x14c}.Bytes(),
			File{Format: PE, Arch: "386", Machine: "x86 (32-bit)", Bits: 32}},
		{"PE of ARM64", peasm.Image{Machine: 0xaa64}.Bytes(),
			File{Format: PE, Arch: "arm64", Machine: "ARM64", Bits: 64}},
		{"PE of an unknown machine", peasm.Image{Machine: 0x200}.Bytes(),
			File{Format: PE, Machine: "machine 0x200"}},
		{"managed", peasm.Image{Machine: 0x14c, Managed: true,
			Imports: map[string][]string{"MSCOREE.dll": {"_CorExeMain"}}}.Bytes(),
			File{Format: PE, Arch: "386", Machine: "x86 (32-bit)", Bits: 32, Managed: true, Mscoree: true}},
	} {
		got, err := Open(write(t, "a", c.data))
		got.Path = ""
		expect.True(t, err == nil && got == c.want, "%s: %+v, %v", c.name, got, err)
	}
	for name, data := range map[string]string{"empty": "", "script": "#!/bin/sh\n",
		"cut ELF": "\x7fELF\x01", "cut PE": "MZ\x90\x00"} {
		got, err := Open(write(t, "a", []byte(data)))
		expect.True(t, err == nil && got.Err != nil && got.Format == NoImage, "%s: %+v, %v", name, got, err)
	}
	_, err := Open(filepath.Join(tempdir.New(t), "none"))
	expect.True(t, err != nil, "a file that is not there")
}

func patched(b []byte, at int, v ...byte) []byte {
	b = append([]byte{}, b...)
	copy(b[at:], v)
	return b
}

func TestLibraryProblem(t *testing.T) {
	dll := peasm.Image{DLL: true, Exports: []string{"DllCanUnloadNow", "DllGetClassObject"}}
	for _, c := range []struct {
		name, goos, goarch string
		data               []byte
		want               string
	}{
		{"right", "windows", "amd64", dll.Bytes(), ""},
		{"for another machine", "windows", "arm64", dll.Bytes(), "it is for x86-64, this machine is arm64"},
		{"for another system", "linux", "amd64", dll.Bytes(),
			"it is a Windows program (PE), not a Linux program (ELF)"},
		{"ELF on Windows", "windows", "amd64", elfasm.Image(),
			"it is a Linux program (ELF), not a Windows program (PE)"},
		{"32 bits", "windows", "amd64", peasm.Image{Machine: 0x14c, DLL: true, Exports: dll.Exports}.Bytes(),
			"it is for x86 (32-bit), this machine is amd64"},
		{"no exports", "windows", "amd64", peasm.Image{DLL: true}.Bytes(),
			"it does not export DllGetClassObject"},
		{"other exports", "windows", "amd64", peasm.Image{DLL: true, Exports: []string{"Other"}}.Bytes(),
			"it does not export DllGetClassObject"},
		{"text", "windows", "amd64", []byte("hello"), "it is neither"},
	} {
		got := LibraryProblem(write(t, "a.dll", c.data), c.goos, c.goarch)
		expect.True(t, (c.want == "") == (got == "") && strings.Contains(got, c.want),
			"%s: %q, want %q", c.name, got, c.want)
	}
}

func TestMissing(t *testing.T) {
	path := write(t, "a.dll",
		peasm.Image{Imports: map[string][]string{"HERE.dll": {"Has", "HasNot"}, "gone.dll": {"X"}}}.Bytes())
	got, err := Missing(path, func(dll string) (func(string) bool, bool) {
		return func(name string) bool { return name == "Has" }, dll == "HERE.dll"
	})
	slices.Sort(got)
	expect.True(t, err == nil && slices.Equal(got, []string{"HasNot of here.dll", "gone.dll"}),
		"%q, %v", got, err)
}

func TestRuntimeVersion(t *testing.T) {
	const version, public = "9.0.525.21509", "9.0.5"
	for _, pad := range []int{0, 100, 1<<20 - 70, 1<<20 - 64, 1<<20 - 30, 1 << 20, 3 << 20} {
		text := strings.Repeat("x", pad) + versionMark[:6] + versionMark + version + " @Commit: " +
			strings.Repeat("y", 100)
		path := write(t, "lib", []byte(text))
		got := RuntimeVersion(path)
		expect.True(t, got == public && MarkedVersion(path) == public, "at %d: %q", pad, got)
	}
	file := peasm.Image{DLL: true, Version: [4]uint16{4, 6, 27317, 7}}.Bytes()
	for name, want := range map[string]string{
		"coreclr.dll": "4.6.27317.7",
		"shared/Microsoft.NETCore.App/2.2.2/coreclr.dll": "2.2.2",
		"shared/Microsoft.NETCore.App/new/coreclr.dll":   "4.6.27317.7",
	} {
		expect.Equal(t, RuntimeVersion(write(t, name, file)), want, name)
	}
	expect.Equal(t, RuntimeVersion(write(t, "coreclr.dll", peasm.Image{}.Bytes())), "", "no version")
}

// A single-file program of Windows has its own version; the version of its runtime is in the text with the
// runtime's commit.
func TestCommittedVersion(t *testing.T) {
	file := peasm.Image{Version: [4]uint16{2, 0, 5, 0}}.Bytes()
	for _, c := range []struct{ text, want string }{
		{"10.0.9 @Commit: 901ca941", "10.0.9"},
		{"x 10.0.9 @Commit: 901ca941", "10.0.9"},
		{"10.0.0-rc.1.25451.107 @Commit: 9", "10.0.0"},
		{" @Commit: 901ca941, 9.0.5 @Commit: 9", "9.0.5"},
		{"version @Commit: 901ca941", "2.0.5.0"},
		{".0.9 @Commit: 901ca941", "2.0.5.0"},
		{"10.0.9", "2.0.5.0"},
	} {
		for _, pad := range []int{0, 2, 1<<20 - 64 - len(file)&^1,
			1<<20 - 40 - len(file)&^1, 1<<20 - 20 - len(file)&^1} {
			data := append(append(slices.Clone(file), make([]byte, pad)...), wide(c.text)...)
			expect.Equal(t, RuntimeVersion(write(t, "app.exe", data)), c.want, "%q at %d", c.text, pad)
		}
	}
}

func TestPublicVersion(t *testing.T) {
	for file, want := range map[string]string{
		"9.0.525.21509": "9.0.5", "10.0.926.27113": "10.0.9", "5.0.20.51904": "5.0.0",
		"5.0.1722.21314": "5.0.17", "6.0.3624.51421": "6.0.36",
		"4.700.19.46205": "4.700.19.46205", "4.6.27317.7": "4.6.27317.7", "9.0.5": "9.0.5",
		"9.0.x.1": "9.0.x.1", "": "", "1.1.13.0": "1.1.13.0",
	} {
		expect.Equal(t, PublicVersion(file), want, "%q", file)
	}
}

func TestTooOld(t *testing.T) {
	for version, want := range map[string][2]bool{ // Linux, Windows
		"": {}, "x": {}, "1.1.13": {true, true}, "2.0.0": {true, false}, "2.2.2": {true, false},
		"3.0.0": {}, "4.6.26515.7": {true, false},
		"4.700.19.46205": {}, "5.0.1": {}, "9.0.525": {}, "10.0.9": {},
	} {
		expect.True(t, TooOld(version, "linux") == want[0] && TooOld(version, "windows") == want[1],
			"%q: want %v", version, want)
	}
}

func TestIsLauncher(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{"with the mark": {append([]byte("MZ and more"), Mark()...), true},
		"half of it": {Mark()[:16], false}, "turned": {mark[:], false}} {
		expect.Equal(t, IsLauncher(write(t, "a", c.data)), c.want, name)
	}
}
