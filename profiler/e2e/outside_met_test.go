package e2e

import (
	"slices"
	"testing"
)

// kind is a kind of stack that a scenario of TruthMore.cs produces. A thread is in its scenario most of the
// time, but in the interesting state only for moments.
type kind struct {
	scenario uint64
	what     string
	has      []uint64 // entries of the shadow; some of them must be there
	depth    int      // entries, at least
}

// kinds lists the scenarios of TruthMore.cs. truth-ids.txt names the entries.
var kinds = []kind{
	{scenario: 31, what: "a filter under way", has: []uint64{33}},
	{scenario: 32, what: "a finally under way in the second pass", has: []uint64{36}},
	{scenario: 33, what: "interface dispatch by a hash", has: []uint64{37, 38, 39}},
	{scenario: 34, what: "a generic virtual call", has: []uint64{41, 42}},
	{scenario: 35, what: "a multicast delegate's target", has: []uint64{45, 46}},
	{scenario: 36, what: "async methods", has: []uint64{48, 49}},
	{scenario: 37, what: "an iterator", has: []uint64{51}},
	{scenario: 38, what: "a loop replaced on the stack", has: []uint64{52}},
	{scenario: 39, what: "code whose calls are counted", has: []uint64{53}, depth: 2},
	{scenario: 40, what: "a method of some instructions", has: []uint64{28}},
	{scenario: 41, what: "a recursion of 9,000 frames", has: []uint64{54}, depth: 9000},
	{scenario: 42, what: "native code on a fibre", has: []uint64{109}},
	{scenario: 43, what: "structures by value", has: []uint64{56}},
	{scenario: 44, what: "room on the stack of a size known at run time", has: []uint64{58}, depth: 2},
	{scenario: 45, what: "virtual calls of prologues and epilogues", has: []uint64{59, 60}, depth: 3},
	{scenario: 46, what: "a dynamic method that is collected soon", has: []uint64{27}},
	{scenario: 47, what: "a handler on the alternate stack", has: []uint64{112}},
	{scenario: 48, what: "managed code on a fibre", has: []uint64{3}},
	{scenario: 49, what: "an assembly to be unloaded, where others like it have been", has: []uint64{69}},
}

// meet counts the kinds of a stack that was compared and is right.
func (c *checker) meet(s *shadow) {
	for _, k := range kinds {
		if k.scenario == s.scenario && len(s.entries) >= k.depth && slices.ContainsFunc(k.has, func(id uint64) bool { return slices.Contains(s.entries, id) }) {
			c.met[k.what]++
		}
	}
}

// metAll reports whether every kind has occurred.
func (c *checker) metAll() bool {
	return !slices.ContainsFunc(kinds, func(k kind) bool { return c.met[k.what] == 0 })
}

// allMet fails the test if a kind never occurred.
func (c *checker) allMet(t *testing.T) {
	t.Helper()
	for _, k := range kinds {
		t.Logf("%6d of scenario %d: %s", c.met[k.what], k.scenario, k.what)
		if c.met[k.what] == 0 {
			t.Errorf("never met: %s", k.what)
		}
	}
}
