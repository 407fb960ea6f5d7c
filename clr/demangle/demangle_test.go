package demangle

import (
	"os"
	"strings"
	"testing"
)

// testdata/names.txt has names from real compilers: the input is testdata/names.cs, names.vb, and names.fs.
func TestName(t *testing.T) {
	b, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, line := range strings.Split(string(b), "\n") {
		in, want, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		n++
		if got := Name(in); got != want {
			t.Errorf("Name(%q) = %q, want %q", in, got, want)
		}
	}
	if n < 200 {
		t.Errorf("%d names", n)
	}
	if Name("") != "" {
		t.Error("no name")
	}
}

// Artificial names cost time and memory in proportion to their length.
func TestLongNames(t *testing.T) {
	for _, piece := range []string{"<", ">", "<>", "+", "`9+", "<a>$", "@1", "$", "|", "-I", "A-IA-", ".", "<a>g__", "::", "_Closure$__1+"} {
		for _, size := range []int{100, MaxName / len(piece), MaxName} {
			s := strings.Repeat(piece, size)
			if got := Name(s); len(got) > 32*len(s)+32 {
				t.Errorf("%d of %q: %d bytes", size, piece, len(got))
			}
			if got := Type(s); len(got) > 32*len(s)+32 {
				t.Errorf("type of %d %q: %d bytes", size, piece, len(got))
			}
			if len(s) > MaxName && Name(s) != s {
				t.Errorf("%d of %q: read", size, piece)
			}
		}
	}
}
