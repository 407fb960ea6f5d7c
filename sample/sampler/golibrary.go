package sampler

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/unwind/module"
)

// GoLibrary is the path of a library of Go among the modules of a process, "" if there is
// none: not the program itself, whose runtime was there before any other's, nor one of ours,
// which leave signals as they were.
func GoLibrary(pid int, t *module.Table) string {
	for i := range t.Len() {
		m := t.At(i)
		if m.ELF == nil || !m.ELF.Go() || strings.HasPrefix(filepath.Base(m.Path), "libseedwalk") {
			continue
		}
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); exe != m.Path {
			return m.Path
		}
	}
	return ""
}

// BesideGo says what a library of Go does to a program of .NET, in lines that a summary has
// room for.
func BesideGo(name string) []string {
	return []string{
		name + " is a library of Go: .NET's signal handlers get too small stacks,",
		"of which it dies now and then, recorded or not (dotnet/runtime issue 127320)",
	}
}

// BesideGoRemedy is what helps.
const BesideGoRemedy = "have what the library does done by a process of its own"

// besideGo tells of a library of Go in a program of .NET, once.
func (e *Base) besideGo() {
	if e.Target.Tables == nil || e.besides {
		return
	}
	if path := GoLibrary(e.PID, e.Target.Table); path != "" {
		e.besides = true
		for _, line := range append(BesideGo(filepath.Base(path)), "what helps: "+BesideGoRemedy) {
			e.Stream.Out.Note(line)
		}
	}
}
