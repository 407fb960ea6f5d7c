package outside

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/module"
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

// What a library of Go does to a program of .NET, and what helps.
const (
	BesideGo = "a library of Go: it puts the runtime's signal handlers on alternate stacks that are too small for them, " +
		"so that .NET dies now and then in a storm of collections, recorded or not (dotnet/runtime issue 127320); and it takes SIGURG, " +
		"in whose place a recording uses a real-time signal"
	BesideGoRemedy = "have what it does done by a process of its own"
)

// besideGo tells of a library of Go in a program of .NET, once.
func (e *sampler) besideGo() {
	if e.t.tables == nil || e.besides {
		return
	}
	if path := GoLibrary(e.pid, e.t.table); path != "" {
		e.besides = true
		e.s.Out.Note(path + " is " + BesideGo + ": " + BesideGoRemedy)
	}
}
