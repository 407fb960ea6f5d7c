package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/testkit/moduleroot"
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

type Edit struct{ Old, New string } // New replaces Old, which occurs in the file once

// Faults lists all of them.
func Faults() []Fault {
	return slices.Concat(roundFaults(), threadFaults(), seedFaults(), mergeFaults(),
		engineFaults(), judgeFaults(), protocolFaults())
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

// tableFile has a row for each fault that was tried. People write the reasons of survivors.
const tableFile = "testkit/tools/mutate/testdata/caught.txt"

const (
	survives = "SURVIVES: "
	noReason = "no test fails"
)

// row returns what the table says of a result.
func (r Result) row() string {
	if r.Caught {
		return r.By
	}
	return survives + r.By
}

// table returns the rows by the name of the fault.
func table(root string) (map[string]string, error) {
	b, err := os.ReadFile(filepath.Join(root, tableFile))
	rows := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, by, _ := strings.Cut(strings.TrimSpace(line), " ")
		rows[name] = strings.TrimSpace(by)
	}
	return rows, err
}

// keep writes the results into the table. A fault that survives again keeps its reason.
func keep(root string, results []Result) error {
	rows, err := table(root)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Caught || r.By == noReason && !strings.HasPrefix(rows[r.Name], survives) {
			rows[r.Name] = r.row()
		}
	}
	var b strings.Builder
	for _, f := range Faults() {
		if by := rows[f.Name]; by != "" {
			fmt.Fprintf(&b, "%-28s %s\n", f.Name, by)
		}
	}
	return os.WriteFile(filepath.Join(root, tableFile), []byte(b.String()), 0o600)
}

// printList prints the faults, and what the table says of each.
func printList() error {
	root, err := moduleroot.Find()
	if err != nil {
		return err
	}
	rows, err := table(root)
	for _, f := range Faults() {
		by := cmp.Or(rows[f.Name], "not in the table")
		fmt.Printf("%-28s %-22s %s\n%29s%s\n", f.Name, f.File, f.What, "", by)
	}
	return err
}
