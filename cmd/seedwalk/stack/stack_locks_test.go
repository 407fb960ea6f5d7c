package stack

import (
	"fmt"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"strings"
	"testing"
)

func TestCycles(t *testing.T) {
	for _, c := range []struct {
		name  string
		owner map[uint32]uint32 // of what a thread waits for
		joins uint32            // the one for whose end it waits instead
		want  string
	}{
		{"none", nil, 0, "[]"},
		{"a chain", map[uint32]uint32{1: 2, 2: 3}, 0, "[]"},
		{"two", map[uint32]uint32{2: 1, 1: 2}, 0, "[[1 2]]"},
		{"three, and one that waits for them", map[uint32]uint32{5: 9, 9: 7, 7: 5, 1: 9}, 0, "[[5 9 7]]"},
		{"two rings", map[uint32]uint32{1: 2, 2: 1, 3: 4, 4: 3}, 0, "[[1 2] [3 4]]"},
		{"of a lock and a Join", map[uint32]uint32{2: 1, 1: 2}, 2, "[[1 2]]"},
		{"itself", map[uint32]uint32{4: 4}, 0, "[[4]]"},
		{"not known", map[uint32]uint32{1: 0, 2: 1}, 0, "[]"},
	} {
		v := stackView{}
		for tid := range uint32(10) {
			th := stackThread{TID: tid}
			if owner, ok := c.owner[tid]; ok && owner == c.joins {
				th.Joins = owner
			} else if ok {
				th.Lock = &stackLock{Kind: "monitor", At: "0x10", Owner: owner}
			}
			v.Threads = append(v.Threads, th)
		}
		expect.Equal(t, fmt.Sprint(cycles(v.Threads)), c.want, c.name)
	}
}

func TestLockText(t *testing.T) {
	v := stackView{Threads: []stackThread{{TID: 1, Name: "one",
		Lock: &stackLock{Kind: "monitor", At: "0x10", Owner: 2}},
		{TID: 2, Lock: &stackLock{Kind: "pthread mutex", At: "0x20", Owner: 1}},
		{TID: 3, Lock: &stackLock{Kind: "System.Threading.Lock"}}}, Cycles: [][]uint32{{1, 2}}}
	var b strings.Builder
	v.writeLock(&b, &v.Threads[0], false)
	v.writeLock(&b, &v.Threads[1], true)
	v.writeLock(&b, &v.Threads[2], false)
	v.writeCycles(&b)
	want := `  (it waits for a monitor at 0x10, which thread 2 holds)
  (thread 2 waits for a pthread mutex at 0x20, which thread 1 "one" holds)
  (it waits for a System.Threading.Lock; its owner is not known)

deadlock: each waits for a lock that the next holds, or for its end: thread 1 "one" -> thread 2 -> thread 1 "one"
`
	expect.Equal(t, b.String(), want)
}

func TestRepeatedLines(t *testing.T) {
	many := func(n int, lines ...string) (out []string) {
		for range n {
			out = append(out, lines...)
		}
		return out
	}
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"none", []string{"a", "b", "a"}, "a b a"},
		{"too few", many(11, "a"), strings.Join(many(11, "a"), " ")},
		{"one line", append(many(12, "a"), "b"), "a   ... the line above repeats 11 more times b"},
		{"two lines, cut in the middle", append(many(20, "a", "b"), "a"),
			"a b   ... the 2 lines above repeat 19 more times a"},
		{"a line inside of what repeats", many(5, "a", "a", "b"),
			"a a b   ... the 3 lines above repeat 4 more times"},
		{"not from the first line", append([]string{"x"}, many(13, "a")...),
			"x a   ... the line above repeats 12 more times"},
	} {
		var b strings.Builder
		writeLines(&b, c.lines)
		expect.Equal(t, strings.TrimSpace(strings.ReplaceAll(b.String(), "\n", " ")), c.want, c.name)
	}
}
