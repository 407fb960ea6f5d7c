package sampler

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/unwind/module"
)

// GoLibrary returns the path of a Go library among the modules of a process, or "". The program
// itself does not count, because its runtime was there first, nor do seedwalk's libraries, which leave
// signals unchanged.
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

// BesideGo explains in short lines what a Go library does to a .NET program.
func BesideGo(name string) []string {
	return []string{
		name + " is a library of Go: .NET's signal handlers get stacks that are too small,",
		"so the program can crash, recorded or not (dotnet/runtime issue 127320)",
	}
}

// BesideGoRemedy says what to do about it.
const BesideGoRemedy = "run the library in a process of its own"

// besideGo reports a Go library in a .NET program, once.
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
