package judge

import (
	"fmt"
	"time"

	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/unwind"
)

// slow is how long one malformed line may take: the walkers are bounded, so
// that anything near it is a failure.
const slow = 2 * time.Second

// malformed judges a line by its "must".
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
		m := x.mismatch(v, uint64(v.PC), fmt.Sprintf("rva %x, must %s: %s", uint64(v.PC), v.Must, v.Note), unwind.StopNone, values)
		m.Why = fmt.Sprintf("stop %s, crash %v, %s", stop, crash, took)
		return m
	})
	return nil
}

// hostile steps once. The image around the hostile data is well formed: if it
// is not read, that is an error.
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
