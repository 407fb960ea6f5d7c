// Package api holds the contracts of the CLR's profiling API as data: every method of ICorProfilerInfo 1 to
// 15 and of ICorProfilerCallback 1 to 11, the bits of the event mask, and the HRESULTs.
//
// Sources: dotnet/runtime src/coreclr/vm/proftoeeinterfaceimpl.cpp and eetoprofinterfaceimpl.cpp (the
// contract at the head of each method, as of 3.1.32 and of the development of 6.0),
// src/coreclr/inc/corprof.idl (slots), docs/design/coreclr/botr/profilability.md; calls to .NET 9.0.5 and
// 10.0.9.
//
// Glossary. The *gate* is the check that a method of the info interface makes before it reads its arguments.
// A *scope* that triggers is a callback in which a method may start a collection. A *place* is the origin of
// a call: which thread, in which callback, under which suspension. *Refused* is 80131363.
//
// Strategy: the tables that people edit (info.txt, callbacks.txt, bits.txt, results.txt, ...) are embedded
// and parsed once, strictly: an unknown word, a slot out of order, or a bit that does not exist is an error
// with a line number. Package sim/conform checks the tables against real CLRs. They are also the source of
// docs/contracts.md, of `seedwalk rules`, and of the rules of the C library's checking proxy.
//
// Known gaps: no available source has the contracts of ICorProfilerInfo13 to 15 ("unread"); for .NET 9 and 10
// they are measured.
package api

import (
	"fmt"
	"slices"
	"strings"
)

// Gate is what a method of the info interface requires of its caller.
type Gate string

const (
	Async    Gate = "async"   // may be called anywhere
	Sync     Gate = "sync"    // a managed thread in a callback only
	SyncGC   Gate = "sync+gc" // the same, and not in a scope that forbids collections
	InitOnly Gate = "init"    // in Initialize only
	Own      Gate = "own"     // the method has its own rules
	Stub     Gate = "stub"    // not implemented
)

// Info is one method of an info interface. info.txt lists the words of its columns.
type Info struct {
	Interface string   `json:"interface"`
	Version   int      `json:"version"`
	Slot      int      `json:"slot"`
	Name      string   `json:"method"`
	Gate      Gate     `json:"gate"`
	GC        string   `json:"gc"`
	Mode      string   `json:"mode"`
	Locks     string   `json:"locks"`
	Attach    bool     `json:"attached"`
	Notify    bool     `json:"notification"`
	Native    string   `json:"native_thread"`
	Thread    string   `json:"thread_suspended"`
	Runtime   string   `json:"runtime_suspended"`
	Needs     []string `json:"needs,omitempty"`
	Says      []string `json:"says,omitempty"`
	From      []Change `json:"from,omitempty"`
	own       map[Place]bool
	skip      map[Place]string
	differs   []difference
}

// Callback is one method of a callback interface.
type Callback struct {
	Interface string   `json:"interface"`
	Version   int      `json:"version"`
	Slot      int      `json:"slot"`
	Name      string   `json:"method"`
	Scope     string   `json:"scope"`
	Contract  string   `json:"contract_mode"`
	Seen      string   `json:"seen_mode"`
	Attach    string   `json:"attached"`
	Notify    string   `json:"notification"`
	Held      string   `json:"locks_held,omitempty"`
	By        []string `json:"by,omitempty"`
	Says      []string `json:"says,omitempty"`
	From      []Change `json:"from,omitempty"`
}

// difference is a place where a real CLR's answer differs from the table.
type difference struct {
	clr   string // as named by package sim/conform
	place Place
	why   string
}

// Change is a column whose value differs from a release on, or before it.
type Change struct {
	Release Release `json:"release"`
	Until   bool    `json:"until,omitempty"`
	Column  string  `json:"column"`
	Value   string  `json:"value"`
}

// in reports whether the change applies to a release.
func (c *Change) in(column string, r Release) bool {
	return c.Column == column && (r < c.Release) == c.Until
}

// String returns the change as text: "from 10.0 sync".
func (c Change) String() string {
	word := "from"
	if c.Until {
		word = "until"
	}
	return fmt.Sprintf("%s %s %s", word, c.Release, c.Value)
}

// Bit is a bit of the event mask.
type Bit struct {
	Name   string   `json:"name"`
	High   bool     `json:"high"`
	Value  uint32   `json:"value"`
	Later  bool     `json:"later"`
	Attach bool     `json:"attached"`
	Notify bool     `json:"notification"`
	Says   []string `json:"says,omitempty"`
	From   []Change `json:"from,omitempty"`
}

// Result is an HRESULT.
type Result struct {
	Value uint32 `json:"value"`
	Name  string `json:"name"`
	Says  string `json:"says"`
	Do    string `json:"do"`
}

// Check is a rule that the checking proxy enforces, or a topic: a hook, a flag, a symptom.
type Check struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"` // of a topic
	Says    string   `json:"says"`
	Do      string   `json:"do"`
}

// Release is a major release of .NET times 10 plus the minor one: 22 is 2.2.
type Release int

const (
	Core22 Release = 22
	Net9   Release = 90
	Net10  Release = 100
)

// Tables holds all tables.
type Tables struct {
	Info      []Info
	Callbacks []Callback
	Bits      []Bit
	Results   []Result
	Checks    []Check
	Topics    []Check
	IIDs      map[string]string // by the interface's name
}

// valueIn returns a column's value in a release: that of a change, or else the one of the row.
func valueIn(changes []Change, column string, r Release, row string) string {
	if c := find(changes, func(c *Change) bool { return c.in(column, r) }); c != nil {
		return c.Value
	}
	return row
}

// gate returns the method's gate in a release.
func (m *Info) gate(r Release) Gate { return Gate(valueIn(m.From, "gate", r, string(m.Gate))) }

// SeenMode returns the thread's mode in the callback, as measured in a release.
func (c *Callback) SeenMode(r Release) string { return valueIn(c.From, "seen", r, c.Seen) }

// Never reports whether the CLR never issues the callback.
func (c *Callback) Never() bool { return c.Scope == "never" }

// MayWait reports whether a callback may wait for another thread: it is always in preemptive mode, by
// contract and as measured.
func (c *Callback) MayWait() bool {
	if c.Never() || c.Contract != "preemptive" {
		return false
	}
	for _, f := range c.From {
		if f.Column == "seen" && f.Value != "preemptive" {
			return false
		}
	}
	return c.Seen == "preemptive" || c.Seen == "unseen" || c.Seen == "native"
}

// find returns a pointer to the first row that is as wanted, nil if no row is.
func find[T any](rows []T, wanted func(row *T) bool) *T {
	for i := range rows {
		if wanted(&rows[i]) {
			return &rows[i]
		}
	}
	return nil
}

// FindInfo returns a method of the info interfaces.
func (t *Tables) FindInfo(name string) *Info {
	return find(t.Info, func(m *Info) bool { return strings.EqualFold(m.Name, name) })
}

// FindCallback returns a method of the callback interfaces.
func (t *Tables) FindCallback(name string) *Callback {
	return find(t.Callbacks, func(c *Callback) bool { return strings.EqualFold(c.Name, name) })
}

// FindBit returns a bit of the event mask by name, with or without COR_PRF_.
func (t *Tables) FindBit(name string) *Bit {
	name = strings.TrimPrefix(strings.ToUpper(name), "COR_PRF_")
	return find(t.Bits, func(b *Bit) bool { return strings.EqualFold(b.Name, name) })
}

// FindResult returns an HRESULT by its value.
func (t *Tables) FindResult(value uint32) *Result {
	return find(t.Results, func(r *Result) bool { return r.Value == value })
}

// FindCheck returns a rule of the checking proxy, or a topic by one of its names.
func (t *Tables) FindCheck(name string) *Check {
	same := func(s string) bool { return strings.EqualFold(s, name) }
	return find(slices.Concat(t.Checks, t.Topics),
		func(c *Check) bool { return same(c.Name) || slices.ContainsFunc(c.Aliases, same) })
}

// CGUID returns an interface id as a C initializer: the first three groups are little-endian numbers.
func CGUID(s string) string {
	hex := strings.ReplaceAll(s, "-", "")
	var b []string
	for _, i := range []int{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15} {
		b = append(b, "0x"+strings.ToLower(hex[2*i:2*i+2]))
	}
	return strings.Join(b, ", ")
}
