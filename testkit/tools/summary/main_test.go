package main

import (
	"bytes"
	"strings"
	"testing"
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
SKIPPED-CHECK: no wine
SKIPPED-CHECK: no vectors
`
	var out bytes.Buffer
	r := newRun(&out)
	if err := r.read(strings.NewReader(in)); err != nil {
		t.Fatal(err)
	}
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
4 passed, 1 failed, 3 skipped
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
