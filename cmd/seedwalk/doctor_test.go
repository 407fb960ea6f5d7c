package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
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
	for _, c := range []string{"system", "environment", "signal 39", "socket", "output"} {
		if m[c].Status != good {
			t.Errorf("%+v", m[c])
		}
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
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755)
	mark := make([]byte, len(bundleMark))
	for i, b := range bundleMark {
		mark[i] = ^b
	}
	elfBytes, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	launcher, old := filepath.Join(dir, "launcher"), filepath.Join(dir, "old")
	os.WriteFile(launcher, append(elfBytes[:len(elfBytes):len(elfBytes)], mark...), 0o755)
	os.WriteFile(old, append([]byte("\x7fELF"), 1), 0o755)
	cases := []struct {
		name, command string
		status        status
		want          string
	}{
		{"script", script, note, "a script?"},
		{"other program", self(t), note, "does not look like"},
		{"launcher", launcher, good, "is a .NET program"},
		{"not there", "no-such-program", bad, "not found"},
		{"damaged", old, note, "no native program"},
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

func TestRuntimeVersion(t *testing.T) {
	for _, pad := range []int{0, 100, 1<<20 - 70, 1<<20 - 64, 1<<20 - 30, 1 << 20, 3 << 20} {
		path := filepath.Join(t.TempDir(), "lib")
		text := strings.Repeat("x", pad) + versionMark[:6] + versionMark + "9.0.525.21509 @Commit: " + strings.Repeat("y", 100)
		os.WriteFile(path, []byte(text), 0o644)
		if got := runtimeVersion(path); got != "9.0.525.21509" {
			t.Errorf("at %d: %q", pad, got)
		}
	}
}

func TestTooOld(t *testing.T) {
	for version, want := range map[string]bool{"": false, "x": false, "2.1.0": true, "4.6.26515.7": true, "4.700.19.46205": false, "5.0.1": false,
		"9.0.525": false, "10.0.9": false} {
		if tooOld(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}

func TestHeldBack(t *testing.T) {
	const status = "Name:\tcat\nSigQ:\t0/127\nSigPnd:\t0000004000000000\nSigBlk:\t%b\nSigIgn:\t%i\nSigCgt:\t0000004000000000\n"
	const on, off = "0000004000000000", "0000003fffffffff"
	for _, c := range []struct{ blk, ign, want string }{{off, off, ""}, {on, off, "blocked"}, {off, on, "ignored"}} {
		s := strings.NewReplacer("%b", c.blk, "%i", c.ign).Replace(status)
		if got := heldBack(s, 39); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestFindingsOnOneScreen(t *testing.T) {
	var b bytes.Buffer
	printFindings(&b, []finding{{"system", good, "Linux", ""}, {"signal", bad, "blocked", "unblock it"}, {"output", note, "hm", ""}})
	want := "OK    system  Linux\nBAD   signal  blocked\n              -> unblock it\nNOTE  output  hm\n\n" +
		"A recording would not work here; see the lines marked BAD.\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if _, ok := machines[runtime.GOARCH]; !ok {
		t.Errorf("this machine's architecture has no profiler")
	}
}
