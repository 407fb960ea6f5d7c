package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/doctor"
	"github.com/seedwalk/seedwalk/process/program"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func findings(t *testing.T, args ...string) (map[string]doctor.Finding, int) {
	t.Helper()
	out, errOut, code, _ := tool(t, append([]string{"doctor", "--json"}, args...)...)
	var all []doctor.Finding
	err := json.Unmarshal([]byte(out), &all)
	must.True(t, err == nil, "%v\n%s%s", err, out, errOut)
	m := map[string]doctor.Finding{}
	for _, f := range all {
		m[f.Check] = f
	}
	return m, code
}

// The test binary is no profiler library: doctor must report that.
func TestDoctorSeesAWrongLibrary(t *testing.T) {
	m, code := findings(t)
	expect.True(t, code == cli.ExitWrong && m["profiler library"].Status == doctor.Bad,
		"exit code %d, %+v", code, m)
	for _, c := range checksHere {
		expect.True(t, m[c].Status == doctor.Good, "%+v", m[c])
	}
}

func TestDoctorEnvironment(t *testing.T) {
	t.Setenv("DOTNET_EnableDiagnostics", "0")
	m, code := findings(t)
	f := m["environment"]
	expect.True(t, code == cli.ExitWrong && f.Status == doctor.Bad &&
		strings.Contains(f.Detail, "DOTNET_EnableDiagnostics=0"), "exit code %d, %+v", code, f)
}

func TestDoctorCommand(t *testing.T) {
	dir := tempdir.New(t)
	own := must.Get(os.ReadFile(self(t)))(t)
	script, exe := "script", ""
	if runtime.GOOS == "windows" {
		script, exe = "script.cmd", ".exe"
	}
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, data, 0o755))
		return path
	}
	cases := []struct {
		name, command string
		status        doctor.Status
		want          string
	}{
		{"script", file(script, []byte("#!/bin/sh\n")), doctor.Note, "a script?"},
		{"other program", self(t), doctor.Note, "does not look like"},
		{"launcher", file("launcher"+exe, append(own[:len(own):len(own)], program.Mark()...)),
			doctor.Good, "is a .NET program"},
		{"not there", "no-such-program", doctor.Bad, "not found"},
		{"damaged", file("old"+exe, own[:5]), doctor.Note, "not a native program"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, _ := findings(t, "--", c.command)
			f := m["command"]
			expect.True(t, f.Status == c.status && strings.Contains(f.Detail, c.want), "%+v", f)
		})
	}
}
