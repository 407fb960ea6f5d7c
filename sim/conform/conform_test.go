package conform

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/vm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// explained are the differences between a real CLR and the simulated one that
// are known, with what is behind them. One that is no longer there is an error.
var explained = map[vm.Variant]map[string]string{}

// Every case has one name, and the simulated CLR can make it.
func TestConformScript(t *testing.T) {
	for _, v := range vm.Variants() {
		seen := map[string]bool{}
		for _, c := range Script(v) {
			expect.True(t, !seen[c.Name], "two cases are called %s", c.Name)
			seen[c.Name] = true
			a, _, err := Simulate(v, c)
			if err != nil || a.Fate != "" && !c.Run.Dies {
				t.Errorf("%v: %s: %v, %v", v, c.Name, a, err)
			}
		}
		t.Logf("%v: %d cases", v, len(seen))
	}
}

// A difference must be seen: the comparison is given wrong answers.
func TestConformSeesDifferences(t *testing.T) {
	c := Case{Name: "x", Run: whole}
	right := Answer{Result: clr.S_OK, Pattern: "MU", Size: 3104}
	for _, wrong := range []Answer{{Result: clr.E_FAIL, Pattern: "MU", Size: 3104},
		{Pattern: "M", Size: 3104}, {Pattern: "MU"}, {Pattern: "MU", Size: 3104, Fate: "hangs"}} {
		expect.True(t, compare(c, right, wrong, "") != "", "%v passes for %v", wrong, right)
		expect.Equal(t, compare(c, right, wrong, "a reason"), "",
			"%v does not, though it is explained", wrong)
	}
	expect.True(t, compare(c, right, right, "") == "" && compare(c, right, right, "a reason") != "",
		"equal answers differ, or an explanation outlives its difference")
}

// compare reports what is wrong with a case, "" if nothing is.
func compare(c Case, real, simulated Answer, why string) string {
	switch {
	case real == simulated && why != "":
		return fmt.Sprintf("%s: the difference is gone, its explanation is not: %s", c.Name, why)
	case real != simulated && why == "":
		return fmt.Sprintf("%s: the real CLR says %v, the simulated one %v", c.Name, real, simulated)
	}
	return ""
}

// process runs the program of a run with its profiler, and tells what became of
// it; files are dir's script and out.
type process func(t *testing.T, run Run, dir string, env []string) (fate string)

// real is a CLR that the script is made on.
type real struct {
	variant vm.Variant
	start   process
}

// conformance runs the script on a real CLR and on the simulated one. It compares their answers,
// and prints them side by side, by case and by row of the decision table.
func conformance(t *testing.T, r real) {
	cases, answers := Script(r.variant), map[string]Answer{}
	var lock sync.Mutex
	t.Run("process", func(t *testing.T) { // ends when all have: most of their time they wait
		for _, run := range Runs() {
			lines := Lines(cases, run)
			if lines == "" {
				continue
			}
			t.Run(run.Name, func(t *testing.T) {
				t.Parallel()
				got := ask(t, run, lines, r.start)
				lock.Lock()
				defer lock.Unlock()
				maps.Copy(answers, got)
			})
		}
	})
	var table strings.Builder
	used := map[string][]string{}
	for _, c := range cases {
		simulated, rows, err := Simulate(r.variant, c)
		if err != nil {
			t.Error(err)
			continue
		}
		used[c.Name] = rows
		real, ok := answers[c.Name]
		why := explained[r.variant][c.Name]
		mark := "same"
		switch {
		case !ok:
			real.Fate, mark = "not made", "MISSING"
			t.Errorf("%s: no answer from the real CLR", c.Name)
		case compare(c, real, simulated, why) != "":
			mark = "DIFFERS"
			t.Error(compare(c, real, simulated, why))
		case why != "":
			mark = "explained: " + why
		}
		fmt.Fprintf(&table, "%-28s %-44s %-44s %s\n", c.Name, real, simulated, mark)
	}
	t.Logf("%v, %d cases: real, simulated\n%s", r.variant, len(cases), table.String())
	t.Logf("%v, %d rows and walk rules: what provokes each, and what the real CLR answers\n%s", r.variant,
		len(Rows), byRow(t, r.variant, cases, used, answers))
}

// ask runs one process and reads its answers.
func ask(t *testing.T, run Run, lines string, start process) map[string]Answer {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	must.Do(t, os.WriteFile(script, []byte(lines), 0o600))
	env := []string{
		fmt.Sprintf("CONFORM_MASK=%x", run.Mask),
		"CORECLR_ENABLE_PROFILING=1", "CORECLR_PROFILER={11111111-2222-3333-4444-555555555555}",
	}
	fate := start(t, run, dir, env)
	text, err := os.ReadFile(filepath.Join(dir, "out"))
	must.Equal(t, err, nil, "%s: no answers: the process: %s", run.Name, fate)
	answers := must.Get(Parse(strings.ReplaceAll(string(text), "\r\n", "\n")))(t)
	expect.True(t, (fate == "") != run.Dies, "%s: the process: %q, to die: %v", run.Name, fate, run.Dies)
	for line := range strings.Lines(lines) {
		name, _, _ := strings.Cut(line, " ")
		if _, ok := answers[name]; !ok && fate != "" {
			answers[name] = Answer{Fate: fate}
			break // the others were never made
		}
	}
	return answers
}

// maxShown bounds the cases that are listed for a row.
const maxShown = 3

// byRow prints the table of rows: the cases that reach each row and their answers, or the reason why none
// does. It is an error if a row has neither or both, or if a case's answer is not one of the row's.
func byRow(t *testing.T, v vm.Variant, cases []Case, used map[string][]string,
	answers map[string]Answer) string {
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
			t.Errorf("%v: row %s: no case reaches it, and no reason is given", v, r.N)
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
		must.True(t, i < len(Rows) && Rows[i].N == n, "vm.Table has row %s where Rows (rows.go) has another: both need the same rows in the same order", n)
	}
	for _, v := range vm.Variants() {
		used, answers := map[string][]string{}, map[string]Answer{}
		for _, c := range Script(v) {
			a, rows, err := Simulate(v, c)
			must.Do(t, err)
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
		expect.True(t, !r.Allows(a), "the row allows %v", a)
	}
	for _, a := range []Answer{{Result: clr.E_FAIL, Pattern: "M"}, {Fate: "it ends"}} {
		expect.True(t, r.Allows(a), "the row does not allow %v", a)
	}
	expect.True(t, r.Reason(vm.Core22Windows) == "" && r.Reason(vm.Net9Linux) != "",
		"the row is excused where it is, or is not where it is not")
}
