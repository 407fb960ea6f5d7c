package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

const notExecutable = "its name does not end as a program's does; name the program that starts this file"

// A result that could not be put in its place at the end is refused before the
// start: a read-only file, and one that another program keeps to itself.
func TestOutputThatCannotBeReplaced(t *testing.T) {
	path := filepath.Join(tempdir.New(t), "a.html")
	if err := os.WriteFile(path, []byte("old"), 0o444); err != nil {
		t.Fatal(err)
	}
	refused := func() string {
		r := checkWritable(path)
		if r == nil {
			return ""
		}
		return r.Error()
	}
	if got := refused(); !strings.Contains(got, "cannot be replaced") || strings.Contains(got, "\n") {
		t.Errorf("read only: %q", got)
	}
	os.Chmod(path, 0o666)
	if got := refused(); got != "" {
		t.Errorf("writable: %q", got)
	}
	name, _ := windows.UTF16PtrFromString(path)
	h, err := windows.CreateFile(name, windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(h)
	if got := refused(); !strings.Contains(got, "close the program that has it open") {
		t.Errorf("open elsewhere: %q", got)
	}
}

// The names of variables have no case.
func TestEnvironmentWithoutCase(t *testing.T) {
	env := []string{"coreclr_enable_profiling=1", "CoreClr_Profiler={846F5F1C-F9AE-4B07-969E-05C26BC060D8}"}
	if OtherProfiler(env) == "" {
		t.Error("another profiler is not seen")
	}
	if got := Blockers([]string{"dotnet_enablediagnostics=0"}); len(got) != 1 {
		t.Errorf("blockers %q", got)
	}
	opt := Options{Rate: 1, Profiler: "p.dll", Env: []string{"coreclr_profiler_path_64=other.dll", "=C:=C:\\x"}}
	if got := strings.Join(childEnviron(&opt, "s"), " "); strings.Contains(got, "other.dll") || !strings.Contains(got, "=C:=") {
		t.Errorf("%q", got)
	}
}

func TestStartRemedy(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{{windows.ERROR_ELEVATION_REQUIRED, "administrator"}, {windows.ERROR_BAD_EXE_FORMAT, "this machine"}, {windows.ERROR_ACCESS_DENIED, "a program"}} {
		if what, remedy := startRemedy("none.exe", c.err); !strings.Contains(what+remedy, c.want) {
			t.Errorf("%v: %q, %q", c.err, what, remedy)
		}
	}
}

func TestExitNote(t *testing.T) {
	for code, want := range map[int]string{0: "", 3: "exit code 3", 137: "exit code 137", 0xc0000005: "an access violation (exit code 0xc0000005)",
		0xc0000417: "exit code 0xc0000417", 0xe0434352: "an unhandled .NET exception"} {
		if got := exitNote(code); !strings.HasSuffix(got, want) && !strings.Contains(got, want) || (want == "") != (got == "") || strings.Contains(got, "signal") {
			t.Errorf("%#x: %q", code, got)
		}
	}
}
