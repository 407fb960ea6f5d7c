// Package oracle compares every row of package cfi with libdw's (elfutils), an
// independent reader of call frame information, over whole real files.
//
// Sources: DWARF 5 section 6.4; elfutils' libdw.h; what its version 0.188 does
// was found by asking it.
//
// Glossary. A *view* is libdw made to take a file for one of a given machine.
// The *default row* is what libdw says of registers that no instruction names.
//
// Strategy: testdata/dwrows.c is compiled on use and answers row by row, in the order of
// our table. Rules, ranges, return address register and signal flag must be
// equal; what may differ is named, counted, and as narrow as class says. The
// list of records must be the same too, so that no FDE is missed. Files of one's
// own: go test ./bench/oracle -v -run RealFiles -args FILE...
//
// Known gaps: libdw knows no RA_SIGN_STATE; its opinion on damaged records is
// not asked.
package oracle

import (
	"flag"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Machines of ELF.
const (
	emSPARCV9 = 43 // "same value" by default, in every register
	emX86_64  = 62
	emAArch64 = 183
)

// libdw is what the tests need of it.
type libdw struct {
	program string // dwrows
	opcodes string // the file of testdata/opcodes.s
	views   map[context.Arch][]view
}

func newLibdw(t *testing.T) *libdw {
	t.Helper()
	l := &libdw{program: dwrows(t), opcodes: assemble(t)}
	l.views = map[context.Arch][]view{
		context.ArchAMD64: l.viewsOf(t, emX86_64, emAArch64),
		context.ArchARM64: l.viewsOf(t, emAArch64, emX86_64),
	}
	return l
}

// viewsOf makes the views of a machine. Each one's default row is what libdw
// says of a function whose records name no register.
func (l *libdw) viewsOf(t *testing.T, own, other int) []view {
	t.Helper()
	vs := []view{{name: "itself", machine: own, own: true}, {name: "SPARC", machine: emSPARCV9},
		{name: "the other machine", machine: other}}
	f := firstFDE(t, table(t, l.opcodes))
	for i := range vs {
		o := ask(t, l.program, l.opcodes, "eh", vs[i].machine)
		o.query(f.Lo)
		o.close()
		var a answer
		if err := o.next(&a); err != nil || a.err != "" {
			t.Fatalf("no default row of machine %d: %v %s", vs[i].machine, err, a.err)
		}
		vs[i].defaults = a.regs
	}
	return vs
}

func firstFDE(t *testing.T, tab *cfi.Table) (first cfi.FDE) {
	t.Helper()
	must.True(t, tab.Len() != 0, "no FDE")
	tab.Each(func(f cfi.FDE) bool { first = f; return false })
	return first
}

func load(t *testing.T, path string) (*elf.File, *cfi.Table) {
	t.Helper()
	f, err := elf.Open(path)
	must.Do(t, err)
	s := f.CFISections()
	tab, err := cfi.Load(module.CFISections(f, s))
	must.True(t, err == nil && s.Err == nil, "%s: %v %v", filepath.Base(path), err, s.Err)
	return f, tab
}

func table(t *testing.T, path string) *cfi.Table {
	t.Helper()
	_, tab := load(t, path)
	return tab
}

// The views must tell every rule from no rule, or the comparison is weaker than
// it says.
func TestViewsSeparate(t *testing.T) {
	for arch, vs := range newLibdw(t).views {
		for reg := range registers {
			if !kept(arch, reg) {
				continue
			}
			a, b, c := vs[0].defaults[reg], vs[1].defaults[reg], vs[2].defaults[reg]
			if a == b && b == c {
				t.Errorf("%v r%d: %v by default in every view", arch, reg, a)
			}
			if same := a.kind == cfi.SameValue; same != cfi.CalleeSaved(arch, uint16(reg)) {
				t.Logf("%v r%d: %v in libdw's default row; preserved by the psABI: %v", arch, reg,
					a.kind, !same)
			}
		}
	}
}

// Every opcode; compilers use few of them.
func TestOpcodes(t *testing.T) {
	l := newLibdw(t)
	t.Log(l.compareFile(t, l.opcodes))
}

func TestRealFiles(t *testing.T) {
	l := newLibdw(t)
	total := newTally()
	files := flag.Args()
	if len(files) == 0 {
		files = realFiles(t)
	}
	for _, path := range files {
		t.Run(shortName(path), func(t *testing.T) {
			c := l.compareFile(t, path)
			t.Log(c)
			total.add(c)
		})
	}
	t.Logf("all: %v", total)
}

func shortName(path string) string {
	return filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)
}

// compareFile compares all of one file, in every view.
func (l *libdw) compareFile(t *testing.T, path string) *tally {
	t.Helper()
	f, tab := load(t, path)
	s := f.CFISections()
	all := newTally()
	for _, sec := range []struct {
		name  string
		bytes []byte
		debug bool
	}{{"eh", s.EHFrame, false}, {"debug", s.DebugFrame, true}} {
		if len(sec.bytes) == 0 {
			continue
		}
		for i := range l.views[tab.Arch()] {
			c := comparison{t: t, tab: tab, view: &l.views[tab.Arch()][i],
				debug: sec.debug, signs: signing(tab)}
			c.run(ask(t, l.program, path, sec.name, c.view.machine))
			all.add(&c.tally)
		}
	}
	for _, w := range all.wrong {
		t.Error(w)
	}
	if all.wrongs > 0 || all.rows == 0 || all.answers+all.left[signedRA]+3*all.left[otherFDE] != 3*all.rows {
		t.Errorf("%d rows, %d differences: %v", all.rows, all.wrongs, all)
	}
	return all
}

// signing finds the FDEs with a row whose return address is signed.
func signing(tab *cfi.Table) map[cfi.FDE]bool {
	signs := map[cfi.FDE]bool{}
	var m cfi.Machine
	var row cfi.Row
	tab.Each(func(f cfi.FDE) bool {
		m.Rows(tab, &f, &row, func(r *cfi.Row) bool {
			if r.RASign {
				signs[f] = true
			}
			return !r.RASign
		})
		return true
	})
	return signs
}

// comparison is one section in one view.
type comparison struct {
	t     *testing.T
	tab   *cfi.Table
	view  *view
	debug bool
	signs map[cfi.FDE]bool
	tally
}

// each calls fn with every row to ask for, and the begins of those before it in
// its FDE; what is not asked is counted if count.
func (c *comparison) each(count bool, fn func(row *cfi.Row, starts []uint64)) {
	var m cfi.Machine
	var row cfi.Row
	var starts []uint64
	c.tab.Each(func(f cfi.FDE) bool {
		if f.DebugFrame != c.debug {
			return true
		}
		starts = starts[:0]
		why := m.Rows(c.tab, &f, &row, func(r *cfi.Row) bool {
			if out := c.leaveOut(r); out == "" {
				fn(r, starts)
			} else if count {
				c.left[out]++
			}
			starts = append(starts, r.Lo)
			return true
		})
		if count {
			if c.view.own {
				c.fdes++
				c.rows += len(starts)
			}
			if why != cfi.None {
				c.fail("FDE %#x: %v", f.Lo, why)
			}
		}
		return true
	})
}

func (c *comparison) leaveOut(r *cfi.Row) class {
	if c.hidden(r, r.Lo) {
		return otherFDE
	}
	if !c.view.own && c.signs[r.FDE] {
		return signedRA
	}
	return ""
}

// hidden reports whether another FDE that covers pc rules there. A look-up that
// finds none, or one elsewhere, hides nothing.
func (c *comparison) hidden(r *cfi.Row, pc uint64) bool {
	f, why := c.tab.Find(pc)
	return why == cfi.None && f != r.FDE && f.Lo <= pc && pc < f.Hi && c.tab.Stats().Overlapping > 0
}

func (c *comparison) run(o *oracle) {
	c.tally = *newTally()
	c.records(o)
	go func() {
		defer o.close()
		c.each(false, func(r *cfi.Row, _ []uint64) { o.query(r.Lo) })
	}()
	var a answer
	c.each(true, func(r *cfi.Row, starts []uint64) {
		err := o.next(&a)
		must.True(c.t, err == nil, "%#x: %v", r.Lo, err)
		c.compare(c.view, c.tab.Arch(), r, starts, &a)
		if c.view.own {
			c.lookUp(r, starts, &a)
		}
	})
}

// lookUp compares what a walker gets: the row found by its last byte.
func (c *comparison) lookUp(r *cfi.Row, starts []uint64, a *answer) {
	if c.hidden(r, r.Hi-1) {
		return
	}
	var row cfi.Row
	if why := lookUps.Row(c.tab, r.Hi-1, &row); why != cfi.None {
		c.fail("%#x: %v", r.Hi-1, why)
		return
	}
	again := newTally()
	again.compare(c.view, c.tab.Arch(), &row, starts, a)
	if again.wrongs > 0 {
		c.fail("found by its last byte: %s", again.wrong[0])
	}
}

// lookUps keeps its CIE from one row to the next, as a walker's machine does.
var lookUps cfi.Machine

// records compares the lists of records: every FDE of the section must be ours.
func (c *comparison) records(o *oracle) {
	ours := 0
	c.tab.Each(func(f cfi.FDE) bool {
		if f.DebugFrame == c.debug {
			ours++
			if !o.fdes[f.Offset] {
				c.fail("libdw lists no FDE at offset %#x", f.Offset)
			}
		}
		return true
	})
	if n := len(o.fdes); n != ours+c.tab.Stats().Empty {
		c.fail("libdw lists %d FDEs, we %d and %d empty ones", n, ours, c.tab.Stats().Empty)
	}
	if s := c.tab.Stats(); (s.DebugFDEs == 0 || s.DebugFDEs == s.FDEs) &&
		o.cies != s.CIEs { // only one section has any
		c.fail("libdw lists %d CIEs, we %d", o.cies, c.tab.Stats().CIEs)
	}
}

// assemble makes the file of testdata/opcodes.s.
func assemble(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "opcodes.so")
	if err := compile("-nostdlib", "-shared", "-o", out, "testdata/opcodes.s"); err != nil {
		must.True(t, runtime.GOARCH != "amd64", "%v", err)
		t.Skip("SKIPPED-CHECK: no assembler for x86-64: libdw's default rows are unknown")
	}
	return out
}
