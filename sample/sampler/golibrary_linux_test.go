package sampler

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// ownTable returns the module table of this process, which is a Go program, and the program's own
// module.
func ownTable(t *testing.T) (table *module.Table, own *module.Module) {
	t.Helper()
	maps := must.Get(live.Maps(os.Getpid()))(t)
	exe := must.Get(os.Executable())(t)
	table = live.NewLoader(os.Getpid()).Table(maps)
	for i := range table.Len() {
		if m := table.At(i); m.Path == exe && m.ELF != nil {
			return table, m
		}
	}
	t.Fatal("this program is not among the modules")
	return nil, nil
}

// A Go library is found; the program itself and seedwalk's libraries are not reported.
func TestGoLibrary(t *testing.T) {
	table, own := ownTable(t)
	pid := os.Getppid() // another process, to which this program looks like a library
	expect.Equal(t, GoLibrary(os.Getpid(), table), "", "the program itself")
	expect.Equal(t, GoLibrary(pid, table), own.Path)
	path := own.Path
	own.Path = filepath.Join(filepath.Dir(path), "libseedwalk_profiler.so")
	expect.Equal(t, GoLibrary(pid, table), "", "our library")
	own.Path = path
	own.ELF = nil
	expect.Equal(t, GoLibrary(pid, table), "", "a library without an ELF file")
}

// A recording reports the library once, and only in a .NET program.
func TestBesideGo(t *testing.T) {
	table, own := ownTable(t)
	pid := os.Getppid()
	for _, c := range []struct {
		name   string
		tables *contract.Tables
		want   int
	}{{"native", nil, 0}, {".NET", &contract.Tables{}, 1}} {
		e := &Base{PID: pid, Target: &target.Process{Table: table, Tables: c.tables},
			Stream: NewOutput(nil, io.Discard)}
		for range 3 {
			e.besideGo()
		}
		n := 0
		for r := wire.NewReader(bytes.NewReader(e.Stream.Out.Bytes())); ; {
			m, err := r.Next()
			if err != nil {
				break
			}
			if s, ok := m.(*wire.Note); ok &&
				strings.HasPrefix(s.Text, filepath.Base(own.Path)+" is a library of Go") {
				n++
			}
		}
		expect.Equal(t, n, c.want, "%s: times told", c.name)
	}
}
