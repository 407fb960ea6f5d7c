package probe

import (
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// While the bounds of a thread's own stack are unknown, a sample reaches up to where the C library keeps the
// thread's data. On a stack that is certainly another one, it reaches less far.
func TestReach(t *testing.T) {
	t.Parallel()
	r, tell := startFaults(t)
	defer close(r.f.beating())
	tid, err := strconv.Atoi(tell("d"))
	if err != nil || tid == 0 {
		t.Fatal(tid, err)
	}
	slot, err := r.f.Slot(uint32(tid))
	must.Do(t, err)
	ask := func(op Op) (last Record) {
		t.Helper()
		must.Do(t, r.f.Ask(slot, op, int(unix.SIGURG)))
		answered(t, "by the deep thread", func() bool { return r.f.Answered(slot) })
		r.f.Read(func(rec *Record) { last = *rec })
		return last
	}
	ask(OpArm)
	_, _, base := r.f.Armed(slot)
	early := ask(OpSample)
	if end := early.StackAddr + uint64(len(early.Stack)); len(early.Stack) < 300<<10 || end != base&^7 || early.Flags&Foreign == 0 {
		t.Errorf("%d bytes, up to %#x of %#x, flags %d", len(early.Stack), end, base, early.Flags)
	}
	const elsewhere = 1 << 20
	r.f.SetStack(slot, elsewhere, 2*elsewhere)
	if other := ask(OpSample); len(other.Stack) != 1<<16 || other.Flags&Foreign == 0 {
		t.Errorf("of another stack %d bytes, flags %d", len(other.Stack), other.Flags)
	}
}
