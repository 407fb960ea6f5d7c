package main

import (
	"encoding/json"
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
	for _, family := range [][]Fault{roundFaults(), threadFaults(), seedFaults(), mergeFaults(), engineFaults(), judgeFaults(), protocolFaults()} {
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

// overlay writes the changed file and the list that puts it in the place of the
// true one, and returns the list's name.
func (f *Fault) overlay(root, dir string) (string, error) {
	text, err := f.text(root)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, f.Name+filepath.Ext(f.File))
	if err := os.WriteFile(changed, text, 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, f.File): changed}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, f.Name+".json")
	return name, os.WriteFile(name, list, 0o600)
}

// also adds an edit of the same file.
func (f Fault) also(before, after string) Fault {
	f.Also = append(f.Also, Edit{before, after})
	return f
}
