package options

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// The case of variable names is ignored.
func TestEnvironmentWithoutCase(t *testing.T) {
	env := []string{"coreclr_enable_profiling=1", "CoreClr_Profiler={846F5F1C-F9AE-4B07-969E-05C26BC060D8}"}
	expect.True(t, OtherProfiler(env) != "", "another profiler is not seen")
	got := Blockers([]string{"dotnet_enablediagnostics=0"})
	expect.True(t, len(got) == 1, "blockers %q", got)
	opt := Options{Rate: 1, Profiler: "p.dll",
		Env: []string{"coreclr_profiler_path_64=other.dll", "=C:=C:\\x"}}
	if got := strings.Join(ChildEnviron(&opt, "s"), " "); strings.Contains(got, "other.dll") ||
		!strings.Contains(got, "=C:=") {
		t.Errorf("%q", got)
	}
}
