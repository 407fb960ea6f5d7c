package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/process/program"
	"github.com/seedwalk/seedwalk/testkit/peasm"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func findings(t *testing.T, args ...string) (map[string]finding, int) {
	t.Helper()
	out, errOut, code, _ := tool(t, append([]string{"doctor", "--json"}, args...)...)
	var all []finding
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v\n%s%s", err, out, errOut)
	}
	m := map[string]finding{}
	for _, f := range all {
		m[f.Check] = f
	}
	return m, code
}

// The test binary is no profiler library: doctor must see that.
func TestDoctorSeesAWrongLibrary(t *testing.T) {
	m, code := findings(t)
	if code != exitWrong || m["profiler library"].Status != bad {
		t.Errorf("exit code %d, %+v", code, m)
	}
	for _, c := range checksHere {
		if m[c].Status != good {
			t.Errorf("%+v", m[c])
		}
	}
}

// Without the library that suspends the runtime Linux is recorded by the probe: on ARM64 there
// is none. One that somebody has named has to be there.
func TestDoctorWithoutLibrary(t *testing.T) {
	t.Setenv("SEEDWALK_PROBE", self(t))
	want := bad
	if runtime.GOOS == "linux" {
		want = note
	}
	absent := filepath.Join(tempdir.New(t), "absent")
	if f := checkLibrary(&patient{profiler: absent, found: true}); f.Status != want {
		t.Errorf("%+v, want %s", f, want)
	}
	if f := checkLibrary(&patient{profiler: absent}); f.Status != bad {
		t.Errorf("%+v, want %s", f, bad)
	}
}

func TestDoctorEnvironment(t *testing.T) {
	t.Setenv("DOTNET_EnableDiagnostics", "0")
	m, code := findings(t)
	if f := m["environment"]; code != exitWrong || f.Status != bad || !strings.Contains(f.Detail, "DOTNET_EnableDiagnostics=0") {
		t.Errorf("exit code %d, %+v", code, f)
	}
}

func TestDoctorCommand(t *testing.T) {
	dir := tempdir.New(t)
	own, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	script, exe := "script", ""
	if runtime.GOOS == "windows" {
		script, exe = "script.cmd", ".exe"
	}
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := []struct {
		name, command string
		status        status
		want          string
	}{
		{"script", file(script, []byte("#!/bin/sh\n")), note, "a script?"},
		{"other program", self(t), note, "does not look like"},
		{"launcher", file("launcher"+exe, append(own[:len(own):len(own)], program.Mark()...)), good, "is a .NET program"},
		{"not there", "no-such-program", bad, "not found"},
		{"damaged", file("old"+exe, own[:5]), note, "not a native program"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, _ := findings(t, "--", c.command)
			if f := m["command"]; f.Status != c.status || !strings.Contains(f.Detail, c.want) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// What doctor says of programs of Windows, on any system.
func TestDescribeWindowsProgramsGolden(t *testing.T) {
	launcher := append(peasm.Image{}.Bytes(), program.Mark()...)
	managed := map[string][]string{"mscoree.dll": {"_CorExeMain"}}
	var found []finding
	for _, c := range []struct {
		name   string
		data   []byte
		beside map[string][]byte
	}{
		{"launcher.exe", launcher, nil},
		{"dotnet.exe", peasm.Image{}.Bytes(), nil},
		{"configured.exe", peasm.Image{}.Bytes(), map[string][]byte{"configured.runtimeconfig.json": {}}},
		{"own-runtime.exe", launcher, map[string][]byte{"coreclr.dll": peasm.Image{Version: [4]uint16{9, 0, 525, 21509}}.Bytes()}},
		{"old-runtime.exe", launcher, map[string][]byte{"coreclr.dll": peasm.Image{Version: [4]uint16{1, 1, 13, 0}}.Bytes()}},
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
		f, err := program.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		got := describeProgram(&f, "windows", "amd64")
		got.Detail = strings.ReplaceAll(got.Detail, path, c.name)
		found = append(found, got)
	}
	var b bytes.Buffer
	printFindings(&b, found, false)
	golden(t, filepath.Join("testdata", "doctor-windows-programs.txt"), b.String())
}

func TestFindingsOnOneScreen(t *testing.T) {
	var b bytes.Buffer
	printFindings(&b, []finding{{"system", good, "Linux", ""}, {"signal", bad, "blocked", "unblock it"}, {"output", note, "hm", ""}}, false)
	want := "OK    system  Linux\nBAD   signal  blocked\n              -> unblock it\nNOTE  output  hm\n\n" +
		"A recording would not work here; see the lines marked BAD.\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
