package fuzz

import (
	"testing"

	"github.com/seedwalk/seedwalk/symbol"
)

// A perf map is a text of another process and may hold anything.
func FuzzPerfMap(f *testing.F) {
	for _, s := range []string{"", "1000 100 JS:*hot /a b.js:1\n", "0x10 0x20 a\n18 8 b\n", "ffffffffffffffff ff x\n", " \n\n1 1", "10 ffffffffffffffef all\n0 1 zero\n"} {
		f.Add([]byte(s), uint64(0x1008))
	}
	f.Fuzz(func(t *testing.T, b []byte, addr uint64) {
		if name, ok := symbol.ParsePerfMap(b).Find(addr); ok && (name == "" || len(name) > len(b)) {
			t.Errorf("%q", name)
		}
	})
}
