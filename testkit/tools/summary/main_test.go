package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func TestSummary(t *testing.T) {
	const in = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: quiet\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:2: SKIPPED-CHECK: no wine\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:3: wrong\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"        at length\n"}
{"Action":"fail","Package":"p","Test":"TestC"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p","Elapsed":0.1}
{"Action":"output","Package":"x/profiler/e2e","Test":"TestTruth","Output":"    t.go:4: a table\n"}
{"Action":"pass","Package":"x/profiler/e2e","Test":"TestTruth"}
{"Action":"output","Package":"x/profiler/e2e","Test":"TestTruth/2.0","Output":"    t.go:5: its table\n"}
{"Action":"pass","Package":"x/profiler/e2e","Test":"TestTruth/2.0"}
{"Action":"output","Package":"x/bench","Test":"TestB/one","Output":"    b.go:5: its table\n"}
{"Action":"pass","Package":"x/bench","Test":"TestB/one"}
{"Action":"output","Package":"x/profiler/e2e","Output":"ok  \tx/profiler/e2e\t1s\n"}
{"Action":"pass","Package":"x/profiler/e2e","Elapsed":61.4}
not json
{"Action":"took","Output":"quick set-up 9 s"}
{"Action":"took","Output":"quick lint 260 s (CPU 300 s)"}
SKIPPED-CHECK: no wine
SKIPPED-CHECK: no vectors
`
	var out bytes.Buffer
	r := newRun(&out)
	must.Do(t, r.read(strings.NewReader(in)))
	r.close()
	const want = `    t.go:4: a table
    t.go:5: its table
ok  	x/profiler/e2e	1s
not json
    c_test.go:3: wrong
        at length
FAIL	p	0.1s
FAILED p TestC
    c_test.go:3: wrong
SLOW 61 s: x/profiler/e2e
SKIPPED 2: no wine
SKIPPED 1: no vectors
TOOK quick set-up 9 s, quick lint 260 s (CPU 300 s)
4 passed, 1 failed, 3 skipped
`
	expect.Equal(t, out.String(), want)
}

// event lines of a test or package of x/e2e.
func ended(action, test string) string {
	return fmt.Sprintf("{\"Action\":%q,\"Package\":\"x/e2e\",\"Test\":%q}\n", action, test)
}

func said(test, line string) string {
	return fmt.Sprintf("{\"Action\":\"output\",\"Package\":\"x/e2e\",\"Test\":%q,\"Output\":%q}\n",
		test, line+"\n")
}

func TestAgain(t *testing.T) {
	one := said("TestA/b", "    a_test.go:1: too few") + ended("fail", "TestA/b") +
		said("TestA", "--- FAIL: TestA") + ended("fail", "TestA") +
		said("", "FAIL") + ended("fail", "")
	many := ended("fail", "")
	for i := range mostAgain + 1 {
		many = ended("fail", fmt.Sprintf("Test%d", i)) + many
	}
	for _, c := range []struct{ name, in, want string }{
		{"nothing failed", ended("pass", "TestA") + ended("pass", ""), ""},
		{"one", one, "x/e2e ^(TestA)$\n"},
		{"two", ended("fail", "TestB") + one, "x/e2e ^(TestB|TestA)$\n"},
		{"more than a few", many, ""},
		{"of two packages", one + strings.ReplaceAll(one, "x/e2e", "x/live"),
			"x/e2e ^(TestA)$\nx/live ^(TestA)$\n"},
		{"one and a package that was not built", one + "{\"Action\":\"fail\",\"Package\":\"x/live\"}\n", ""},
		{"ended early", said("TestC", "panic: test timed out after 40m0s") + ended("fail", "TestC") +
			ended("fail", ""), ""},
		{"passed in another build",
			one + ended("pass", "TestA/b") + ended("pass", "TestA") + ended("pass", ""), "x/e2e ^(TestA)$\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			r := newRun(&bytes.Buffer{})
			must.Do(t, r.read(strings.NewReader(c.in)))
			r.again(&out)
			expect.Equal(t, out.String(), c.want, "again prints")
		})
	}
}

func TestSummaryOfTwoRuns(t *testing.T) {
	below := said("TestA/b", "    a_test.go:2: too few below") + ended("fail", "TestA/b")
	first := said("TestA", "    a_test.go:1: too few") + said("TestA", "--- FAIL: TestA") +
		ended("fail", "TestA") + said("", "FAIL\tx/e2e") + ended("fail", "")
	const again, over = `{"Action":"again","Package":"x/e2e"}` + "\n", `{"Action":"again"}` + "\n"
	passed := ended("pass", "TestA") + said("", "ok\tx/e2e") + ended("pass", "")
	for _, c := range []struct{ name, in, want string }{
		{"passed", first + again + passed + over,
			"ok\tx/e2e\nUNSTABLE x/e2e TestA failed, and passed when it was run once more:\n    a_test.go:1: too few\n" +
				"1 unstable: passed at their second run\n1 passed, 0 failed, 0 skipped\n"},
		{"passed with what was not there again", below + first + again + passed + over,
			"ok\tx/e2e\nUNSTABLE x/e2e TestA/b failed, and passed when it was run once more:\n" +
				"    a_test.go:2: too few below\nUNSTABLE x/e2e TestA failed, and passed when it was run once more:\n    a_test.go:1: too few\n" +
				"2 unstable: passed at their second run\n1 passed, 0 failed, 0 skipped\n"},
		{"failed twice", first + again + first + over,
			strings.Repeat("    a_test.go:1: too few\n--- FAIL: TestA\n", 2) +
				strings.Repeat("FAIL\tx/e2e\n", 2) +
				"FAILED x/e2e TestA\n" + strings.Repeat("    a_test.go:1: too few\n", 2) +
				"0 passed, 1 failed, 0 skipped\n"},
		{"a test without an end", said("TestC", "panic: test timed out") + first,
			"    a_test.go:1: too few\n--- FAIL: TestA\npanic: test timed out\nFAIL\tx/e2e\n" +
				"FAILED x/e2e TestA\n    a_test.go:1: too few\nFAILED x/e2e TestC\npanic: test timed out\n" +
				"0 passed, 2 failed, 0 skipped\n"},
		{"passed in another build", first + passed,
			"ok\tx/e2e\n    a_test.go:1: too few\n--- FAIL: TestA\nFAIL\tx/e2e\n" +
				"FAILED x/e2e TestA\n    a_test.go:1: too few\n1 passed, 1 failed, 0 skipped\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			r := newRun(&out)
			must.Do(t, r.read(strings.NewReader(c.in)))
			r.close()
			expect.Equal(t, out.String(), c.want)
		})
	}
}
