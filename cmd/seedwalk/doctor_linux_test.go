package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/cmd/seedwalk/doctor"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// checksHere are those of this platform that must find no fault on any machine.
var checksHere = []string{"system", "environment", "signal 39", "socket", "output"}

// A stripped program, first without its debug file, then with it in the same folder.
func TestDoctorNames(t *testing.T) {
	needs.Command(t, "gcc", "objcopy")
	dir := t.TempDir()
	run := func(argv ...string) {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = dir
		must.Run(t, cmd)
	}
	os.WriteFile(filepath.Join(dir, "a.c"), []byte("int main(void) { return 0; }\n"), 0o644)
	run("gcc", "-g", "-o", "app", "a.c")
	run("objcopy", "--only-keep-debug", "app", "app.dbg")
	run("objcopy", "--strip-all", "--add-gnu-debuglink=app.dbg", "app")
	if m, _ := findings(t, "--", filepath.Join(dir, "app")); m["names"].Detail != "" &&
		strings.Contains(m["names"].Detail, dir) {
		t.Errorf("the file is there: %+v", m["names"])
	}
	os.Rename(filepath.Join(dir, "app.dbg"), filepath.Join(dir, "elsewhere"))
	m, _ := findings(t, "--", filepath.Join(dir, "app"))
	f := m["names"]
	expect.True(t, f.Status == doctor.Note && strings.Contains(f.Detail, "app has no symbols") &&
		strings.Contains(f.Remedy, "app.dbg"), "%+v", f)
}

// A shell that blocks the signal of --mode snapshot is no fault: the default mode does not need that signal.
func TestDoctorBlockedSignal(t *testing.T) {
	if exec.Command("env", "--block-signal=39", "true").Run() != nil {
		t.Skip("SKIPPED-CHECK: this env cannot block signals (coreutils 8.31)")
	}
	cmd := exec.Command("env", "--block-signal=39", self(t), "doctor", "--json")
	cmd.Env = append(os.Environ(), "SEEDWALK_TEST_AS=tool")
	out, _ := cmd.Output() // other checks may find faults
	var all []doctor.Finding
	must.Do(t, json.Unmarshal(out, &all))
	i := slices.IndexFunc(all, func(f doctor.Finding) bool { return f.Check == "signal 39" })
	expect.True(t, i >= 0 && all[i].Status == doctor.Note &&
		strings.Contains(all[i].Detail, "--mode snapshot"), "%+v", all)
}
