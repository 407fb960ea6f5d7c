package expect

import (
	"fmt"
	"testing"
)

// errors is a test that keeps the messages of Error.
type errors struct {
	testing.TB
	said []string
}

func (e *errors) Helper() {}

func (e *errors) Error(args ...any) { e.said = append(e.said, fmt.Sprint(args...)) }

func (e *errors) Logf(string, ...any) {}

func (e *errors) Errorf(format string, args ...any) { e.Error(fmt.Sprintf(format, args...)) }

func TestExpect(t *testing.T) {
	var e errors
	Equal(&e, 1, 1, "equal")
	Slices(&e, nil, []int{})
	Equal(&e, uint64(20), 4, "row")
	Equal(&e, "a", "b\n", "row %d of %d", 1, 2)
	Slices(&e, []byte{1, 2}, []byte{3})
	Equal(&e, struct{ N int }{1}, struct{ N int }{2})
	True(&e, true, "right")
	True(&e, false, "row %d is wrong", 3)
	Figures(&e, true, "%d of %d", 9, 9)
	Figures(&e, false, "%d of %d", 8, 9)
	Contains(&e, "abc", "b", "d", "abc", "ac")
	Slices(t, e.said, []string{
		"row: got 20 (0x14), want 4 (0x4)",
		"row 1 of 2: got \"a\", want \nb\n",
		"got 01 02, want 03",
		"got {N:1}, want {N:2}",
		"row 3 is wrong",
		"8 of 9",
		"\"d\" is missing in:\nabc",
		"\"ac\" is missing in:\nabc",
	})
}
