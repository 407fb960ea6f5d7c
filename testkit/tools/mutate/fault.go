package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Fault is a deliberate one.
type Fault struct {
	Name string
	What string // what is wrong with it, for people
	File string // relative to the module's root
	Old  string // stands in File exactly once
	New  string
	Also []Edit  // further edits of File
	By   []*Step // the tests to try, cheapest first
}

// Edit replaces words that stand in a file once.
type Edit struct{ Old, New string }

// Faults lists all of them.
func Faults() []Fault {
	var all []Fault
	for _, family := range [][]Fault{roundFaults(), threadFaults(), seedFaults(), mergeFaults(),
		engineFaults(), judgeFaults(), protocolFaults()} {
		all = append(all, family...)
	}
	return all
}

// text is File with the fault in it.
func (f *Fault) text(root string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(root, f.File))
	if err != nil {
		return nil, err
	}
	s := string(b)
	for _, e := range append([]Edit{{f.Old, f.New}}, f.Also...) {
		if n := strings.Count(s, e.Old); n != 1 {
			return nil, fmt.Errorf("%s does not apply: %q stands %d times in %s", f.Name, e.Old, n, f.File)
		}
		s = strings.Replace(s, e.Old, e.New, 1)
	}
	return []byte(s), nil
}

// put writes the fault into a file of a copy of the tree. restore writes the original file back.
func (f *Fault) put(tree string) (restore func() error, err error) {
	text, err := f.text(tree)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(tree, f.File)
	sound, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	restore = func() error { return os.WriteFile(name, sound, 0o600) }
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}

// also adds an edit of the same file.
func (f Fault) also(before, after string) Fault {
	f.Also = append(f.Also, Edit{before, after})
	return f
}
