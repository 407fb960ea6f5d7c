package record

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"golang.org/x/sys/windows"
)

const notExecutable = "its file extension is not that of a program; name the program that opens this file"

func TestStartRemedy(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{{windows.ERROR_ELEVATION_REQUIRED, "administrator"}, {windows.ERROR_BAD_EXE_FORMAT, "this machine"},
		{windows.ERROR_ACCESS_DENIED, "a program"}} {
		what, remedy := startRemedy([]string{"none.exe"}, c.err)
		expect.True(t, strings.Contains(what+remedy, c.want), "%v: %q, %q", c.err, what, remedy)
	}
}

func TestExitNote(t *testing.T) {
	for code, want := range map[int]string{0: "", 3: "exit code 3", 137: "exit code 137",
		0xc0000005: "an access violation (exit code 0xc0000005)",
		0xc0000417: "exit code 0xc0000417", 0xe0434352: "an unhandled .NET exception"} {
		if got := exitNote(code); !strings.HasSuffix(got, want) && !strings.Contains(got, want) ||
			(want == "") != (got == "") || strings.Contains(got, "signal") {
			t.Errorf("%#x: %q", code, got)
		}
	}
}
