package judge

import (
	"fmt"
	"time"

	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/unwind"
)

// slow is the time limit for one malformed line. The walkers are bounded, so a normal step takes
// far less.
const slow = 2 * time.Second

// malformed judges a line by its field "must".
func (x *PE) malformed(t *Tally, v *pevec.Vector) error {
	start := time.Now()
	stop, values, crash, err := x.hostile(v)
	if err != nil {
		return fmt.Errorf("%s: %w", v.ID, err)
	}
	took := time.Since(start)
	verdict := wrong
	switch v.Must {
	case "error", "error-or-v3":
		if stop != unwind.StopNone && stop != unwind.EndOfStack && stop != unwind.NullReturn {
			verdict = right
		}
	case "ok":
		if stop == unwind.StopNone && !differ(values) {
			verdict = right
		}
	case "no-crash":
		verdict = right
	default:
		return fmt.Errorf("%s: must %q: %w", v.ID, v.Must, ErrFormat)
	}
	if took > slow || crash {
		verdict = wrong
	}
	x.r.count(t, verdict, func() Mismatch {
		m := x.mismatch(v, uint64(v.PC),
			fmt.Sprintf("rva %x, must %s: %s", uint64(v.PC), v.Must, v.Note), unwind.StopNone, values)
		m.Why = fmt.Sprintf("stop %s, crash %v, %s", stop, crash, took)
		return m
	})
	return nil
}

// hostile makes one step. The image around the hostile data is well formed, so hostile returns an
// error if the reader refuses the image. crash is true if the step panicked.
func (x *PE) hostile(v *pevec.Vector) (stop unwind.Stop, values []Pair, crash bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			crash = true
			values = append(values, Pair{"panic", "none", fmt.Sprint(r)})
		}
	}()
	if err := x.load(v); err != nil {
		return 0, nil, false, err
	}
	stop, values, err = x.step(v, &v.Points[0], unwind.Instruction)
	return stop, values, false, err
}
