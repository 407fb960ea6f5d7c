package doctor

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/process/program"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/golden"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// What doctor says of a Windows, on any host.
func TestJudgeWindows(t *testing.T) {
	for _, c := range []struct {
		name                string
		major, minor, build int
		goarch, native      string
		wine                string
		status              Status
		want                string
	}{
		{"Windows 11", 10, 0, 22631, "amd64", "amd64", "", Good, "Windows 10.0.22631, amd64"},
		{"Server 2016", 10, 0, 14393, "amd64", "", "", Good, "no special rights"},
		{"Windows 7", 6, 1, 7601, "amd64", "amd64", "", Bad, "needs Windows 10 or Windows Server 2016"},
		{"Windows 8.1", 6, 3, 9600, "amd64", "", "", Bad, "needs Windows 10"},
		{"Wine", 6, 1, 7601, "amd64", "amd64", "8.0", Good, "Wine 8.0 as Windows 6.1.7601"},
		{"x64 emulated on ARM64", 10, 0, 22631, "amd64", "arm64", "", Bad,
			"emulates x86-64 on an ARM64 machine"},
		{"ARM64", 10, 0, 22631, "arm64", "arm64", "", Bad, "arm64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := judgeWindows(c.major, c.minor, c.build, c.goarch, c.native, c.wine)
			expect.True(t, f.Status == c.status && strings.Contains(f.Detail, c.want) &&
				(f.Status == Bad) == (f.Remedy != ""), "%+v", f)
		})
	}
}

// TestDoctorWithoutLibrary: without the profiler library, Linux is recorded by the probe, so its absence is
// only a note. A library that the user names must exist.
func TestDoctorWithoutLibrary(t *testing.T) {
	t.Setenv("SEEDWALK_PROBE", os.Args[0])
	want := Bad
	if runtime.GOOS == "linux" {
		want = Note
	}
	absent := filepath.Join(tempdir.New(t), "absent")
	f := checkLibrary(&patient{profiler: absent, found: true})
	expect.True(t, f.Status == want, "%+v, want %s", f, want)
	f = checkLibrary(&patient{profiler: absent})
	expect.True(t, f.Status == Bad, "%+v, want %s", f, Bad)
}

// What doctor says of programs of Windows, on any system.
func TestDescribeWindowsProgramsGolden(t *testing.T) {
	launcher := append(peasm.Image{}.Bytes(), program.Mark()...)
	managed := map[string][]string{"mscoree.dll": {"_CorExeMain"}}
	var found []Finding
	for _, c := range []struct {
		name   string
		data   []byte
		beside map[string][]byte
	}{
		{"launcher.exe", launcher, nil},
		{"dotnet.exe", peasm.Image{}.Bytes(), nil},
		{"configured.exe", peasm.Image{}.Bytes(), map[string][]byte{"configured.runtimeconfig.json": {}}},
		{"own-runtime.exe", launcher,
			map[string][]byte{"coreclr.dll": peasm.Image{Version: [4]uint16{9, 0, 525, 21509}}.Bytes()}},
		{"old-runtime.exe", launcher,
			map[string][]byte{"coreclr.dll": peasm.Image{Version: [4]uint16{1, 1, 13, 0}}.Bytes()}},
		{"service.exe", peasm.Image{}.Bytes(), nil},
		{"framework.exe", peasm.Image{Machine: 0x14c, Managed: true, Imports: managed}.Bytes(), nil},
		{"framework-host.exe", peasm.Image{Imports: map[string][]string{"mscoree.dll": {"CLRCreateInstance"}}}.Bytes(), nil},
		{"bits32.exe", peasm.Image{Machine: 0x14c}.Bytes(), nil},
		{"launcher32.exe", append(peasm.Image{Machine: 0x14c}.Bytes(), program.Mark()...), nil},
		{"arm64.exe", peasm.Image{Machine: 0xaa64}.Bytes(), nil},
		{"start.cmd", []byte("@echo off\r\n"), nil},
		{"cut.exe", []byte("MZ"), nil},
	} {
		dir := tempdir.New(t)
		for name, data := range c.beside {
			os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		path := filepath.Join(dir, c.name)
		os.WriteFile(path, c.data, 0o755)
		f := must.Get(program.Open(path))(t)
		got := describeProgram(&f, "windows", "amd64")
		got.Detail = strings.ReplaceAll(got.Detail, path, c.name)
		found = append(found, got)
	}
	var b bytes.Buffer
	printFindings(&b, found, false)
	golden.Check(t, filepath.Join("testdata", "doctor-windows-programs.txt"), b.String())
}

func TestFindingsOnOneScreen(t *testing.T) {
	var b bytes.Buffer
	printFindings(&b, []Finding{{"system", Good, "Linux", ""}, {"signal", Bad, "blocked", "unblock it"},
		{"output", Note, "hm", ""}}, false)
	want := "OK    system  Linux\nBAD   signal  blocked\n              -> unblock it\nNOTE  output  hm\n\n" +
		"A recording would not work here; see the lines marked BAD.\n"
	expect.Equal(t, b.String(), want)
}
