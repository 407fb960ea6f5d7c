package conform

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// maxShown bounds the cases that are listed for a row.
const maxShown = 3

// byRow prints the table of rows: the cases that reach each row and their answers, or the reason why none
// does. It is an error if a row has neither or both, or if a case's answer is not one of the row's.
func byRow(t *testing.T, v vm.Variant, cases []Case, used map[string][]string, answers map[string]Answer) string {
	t.Helper()
	var out strings.Builder
	for i := range Rows {
		r := &Rows[i]
		var shown []string
		n := 0
		for _, c := range cases {
			if !r.Provokes(c, used[c.Name]) {
				continue
			}
			if n++; n <= maxShown {
				shown = append(shown, fmt.Sprintf("%s: %v", c.Name, answers[c.Name]))
			}
			if !r.Allows(answers[c.Name]) && explained[v][c.Name] == "" {
				t.Errorf("row %s: case %s answers %v", r.N, c.Name, answers[c.Name])
			}
		}
		why := r.Reason(v)
		text := fmt.Sprintf("%3d by %s", n, strings.Join(shown, "; "))
		switch {
		case n == 0 && why == "":
			t.Errorf("%v: row %s: no case gets to it, and nobody says why", v, r.N)
			text = "NOT PROVOKED"
		case n == 0:
			text = "    not provoked: " + why
		case why != "":
			t.Errorf("%v: row %s: %d cases get to it, though it is said that none does: %s", v, r.N, n, why)
		}
		fmt.Fprintf(&out, "%-4s %-62.62s %s\n", r.N, r.When(), text)
	}
	return out.String()
}

// The specification contains every row of the simulated table, in the same order. On every variant, each row
// is reached by a case or excused.
func TestConformRows(t *testing.T) {
	var table []string
	for i := range vm.Table {
		if n := vm.Table[i].N; n != "6a" { // the cost of a first call shows in no answer
			table = append(table, n)
		}
	}
	for i, n := range append(table, strings.Split("abcdefghijklm", "")...) {
		if i >= len(Rows) || Rows[i].N != n {
			t.Fatalf("row %s is not the specification's", n)
		}
	}
	for _, v := range vm.Variants() {
		used, answers := map[string][]string{}, map[string]Answer{}
		for _, c := range Script(v) {
			a, rows, err := Simulate(v, c)
			if err != nil {
				t.Fatal(err)
			}
			used[c.Name], answers[c.Name] = rows, a
		}
		byRow(t, v, Script(v), used, answers)
		for i := range vm.Table {
			row := &vm.Table[i]
			for j := range Rows {
				if Rows[j].N == row.N && row.Has(v) != (Rows[j].Reason(v) != noRow) {
					t.Errorf("%v: row %s: the simulated CLR has it or has it not, unlike the specification", v, row.N)
				}
			}
		}
	}
}

// byRow must detect differences.
func TestConformRowsSeeDifferences(t *testing.T) {
	r := Row{N: "x", Results: one(clr.E_FAIL), Fates: []string{"it ends"}, In: windows}
	for _, a := range []Answer{{Result: clr.S_OK}, {Result: clr.E_FAIL, Fate: "it hangs"}} {
		if r.Allows(a) {
			t.Errorf("the row allows %v", a)
		}
	}
	for _, a := range []Answer{{Result: clr.E_FAIL, Pattern: "M"}, {Fate: "it ends"}} {
		if !r.Allows(a) {
			t.Errorf("the row does not allow %v", a)
		}
	}
	if r.Reason(vm.Core22Windows) != "" || r.Reason(vm.Net9Linux) == "" {
		t.Error("the row is excused where it is, or is not where it is not")
	}
}
