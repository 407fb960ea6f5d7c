package tasks

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

// Tasks that await each other make chains that begin in their circle. A chain from outside ends where it
// meets a task again.
func TestCircles(t *testing.T) {
	const thread = 0x70
	for _, c := range []struct {
		name  string
		next  string // "AB BA": A is awaited by B, B by A
		moved bool
		want  []string
	}{
		{"two", "AB BA", false, []string{"A B A, " + Circle}},
		{"itself", "AA", false, []string{"A A, " + Circle}},
		{"a third one awaits", "AB BA BC", false,
			[]string{"A B A, " + Circle, "A B C, " + Circle}},
		{"the first tasks only await the circle", "AD BC CB CA", false,
			[]string{"C A D, " + Circle, "C B C, " + Circle}},
		{"a thread blocks", "AB BA B!", false, []string{"A B A, " + Circle, "A B [5], " + Circle}},
		{"two circles", "AB BA CD DC", false, []string{"A B A, " + Circle, "C D C, " + Circle}},
		{"one circle behind another", "AB BA BC CD DC", false,
			[]string{"A B A, " + Circle, "A B C D C, " + Circle}},
		{"and something else", "AB BC CB", false, []string{"A B C B, " + Circle}},
		{"WhenAny", "Ay yA", false, []string{"A y A, " + openCircle}},
		{"WhenAny beside", "AB BA By", false, []string{"A B A, " + Circle, "A B y, " + Circle}},
		{"no circle", "AB BC AC", false, []string{"A B C, ", "A C, "}},
		{"during a collection", "AB BA BC", true, nil},
		{"also from outside", "AB BC CB", true, nil},
	} {
		g := &graph{src: &Source{}, out: &Result{Moved: c.moved}, stacks: map[uint64]uint32{thread: 5}}
		at := map[byte]int32{}
		task := func(name byte) int32 {
			if _, ok := at[name]; !ok {
				sh := &shape{kind: oneWay, name: string(name), flags: 8}
				if name >= 'a' {
					sh.kind = combined
				}
				at[name] = g.add(pending{shape: sh, addr: 0x100 * uint64(name)})
			}
			return at[name]
		}
		for _, pair := range strings.Fields(c.next) {
			from := task(pair[0])
			if pair[1] == '!' {
				g.all[from].blocks = []uint64{thread}
			} else {
				to := task(pair[1])
				g.all[to].below++
				g.all[from].next = append(g.all[from].next, to)
			}
		}
		g.chains()
		var got []string
		for _, group := range g.out.Groups {
			text := fmt.Sprintf("%v", group.Chain)
			text = text[1 : len(text)-1]
			if group.Blocks {
				text += fmt.Sprint(" ", group.Threads)
			}
			got = append(got, text+", "+group.State)
		}
		slices.Sort(got)
		expect.True(t, slices.Equal(got, c.want), "%s: %q, want %q", c.name, got, c.want)
	}
}

// A task awaits another one if it refers to it with more than its own continuation.
func TestAwaits(t *testing.T) {
	const next, to = 16, 0x700
	for _, c := range []struct {
		at   int // offset of the reference
		want bool
	}{{0, false}, {8, true}, {next, false}, {24, true}} {
		data := make([]byte, 32)
		binary.LittleEndian.PutUint64(data[c.at:], to)
		p := pending{shape: &shape{kind: box, next: next}, data: data}
		expect.True(t, p.awaits(to) == c.want, "at %d", c.at)
	}
}
