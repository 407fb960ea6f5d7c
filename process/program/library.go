package program

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/pe"
)

// entry is the function of a profiler library that the CLR calls.
const entry = "DllGetClassObject"

// tlsLimit is the most bytes of thread-local storage in an ELF library that can still be loaded into a
// running process: the dynamic loader's spare room is small, and the CLR uses some.
const tlsLimit = 1024

// LibraryProblem returns why path cannot be a profiler on a system, given as GOOS and GOARCH; "" if no
// problem is found.
func LibraryProblem(path, goos, goarch string) string {
	f, err := Open(path)
	if err != nil {
		return err.Error()
	}
	want := FormatOf(goos)
	switch {
	case f.Err != nil:
		return f.Err.Error()
	case f.Format != want:
		return fmt.Sprintf("it is %v, not %v", f.Format, want)
	case f.Arch != goarch:
		return fmt.Sprintf("it is for %s, this machine is %s", f.Machine, goarch)
	}
	var found bool
	if f.Format == PE {
		found, err = exportsPE(path)
	} else {
		found, err = exportsELF(path)
	}
	switch {
	case err != nil:
		return err.Error()
	case !found:
		return "it does not export " + entry
	}
	return ""
}

func exportsELF(path string) (bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return false, err
	}
	switch size := f.TLS(); {
	case !f.Shared():
		return false, errors.New("it is not a shared library")
	case size > tlsLimit:
		return false, fmt.Errorf("it has %d bytes of thread-local storage: dlopen would fail", size)
	}
	return f.Exports(entry), nil
}

func exportsPE(path string) (bool, error) {
	f, err := pe.Open(path)
	if err != nil {
		return false, err
	}
	exports, err := f.Exports()
	for i := range exports {
		if exports[i].Name == entry {
			return true, nil
		}
	}
	return false, err
}

// Missing lists the imports of a Windows image that resolve does not find: DLLs, and functions as NAME of
// DLL. resolve returns whether a DLL exists, and whether it has a function.
func Missing(path string,
	resolve func(dll string) (function func(name string) bool, ok bool)) ([]string, error) {
	f, err := pe.Open(path)
	if err != nil {
		return nil, err
	}
	imports, err := f.Imports()
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range imports {
		has, ok := resolve(imports[i].DLL)
		if !ok {
			out = append(out, imports[i].DLL)
			continue
		}
		for _, name := range imports[i].Names {
			if !has(name) {
				out = append(out, name+" of "+strings.ToLower(imports[i].DLL))
			}
		}
	}
	return out, nil
}
