package vm_test

import (
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/sim/image"
	"github.com/seedwalk/seedwalk/sim/sched"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// cause is a condition of a row that can hold together with others'.
type cause struct {
	row   string
	set   func(s *scene, a *sched.Actor, k *vm.Call)
	fatal bool
	in    func(v vm.Variant) bool
}

var causes = []cause{
	{row: "1", in: every, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.w.CLR.Detaching = true }},
	{row: "2", in: every, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.w.CLR.Started = false }},
	{row: "3", in: every, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.w.CLR.EventMask = 0 }},
	{row: "5", in: every, set: func(_ *scene, _ *sched.Actor, k *vm.Call) { k.Flags = 2 }},
	{row: "6", in: every, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.w.CLR.NoGC = true }},
	{row: "7", in: every, set: func(s *scene, a *sched.Actor, _ *vm.Call) { holder(s, a) }},
	{row: "9", in: every, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.target.Forbid = 1 }},
	{row: "10", in: windows, fatal: true, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.target.Dead = true }},
	{row: "11u", in: unix, set: func(*scene, *sched.Actor, *vm.Call) {}}, // without SuspendRuntime
	{row: "13", in: windows, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.target.Trap = true }},
	{row: "14a", in: windows, set: func(_ *scene, _ *sched.Actor, k *vm.Call) { k.Lookup = busy(0) }},
	{row: "14b", in: windows, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { young(s) }},
	{row: "16", in: windows, set: func(s *scene, _ *sched.Actor, k *vm.Call) { st := *s.managedTop(); unmanaged(s, &st); k.Seed = &st }},
	{row: "18", in: windows, set: func(s *scene, _ *sched.Actor, _ *vm.Call) { s.target.Except.Inconsistent = true }},
}

// Where two rows' conditions hold at once the earlier one decides.
func TestTablePrecedence(t *testing.T) {
	n := 0
	for _, v := range vm.Variants() {
		for i := range causes {
			for j := i + 1; j < len(causes); j++ {
				first, second := &causes[i], &causes[j]
				if !first.in(v) || !second.in(v) {
					continue
				}
				n++
				t.Run(v.String()+"/"+first.row+" before "+second.row, func(t *testing.T) { precedence(t, v, first, second) })
			}
		}
	}
	t.Logf("%d pairs", n)
}

func precedence(t *testing.T, v vm.Variant, first, second *cause) {
	s := newScene(t, v, image.AMD64, inHelper)
	s.walk(func(a *sched.Actor) {
		k := call(s)
		second.set(s, a, &k)
		first.set(s, a, &k)
		s.call(a, k)
	})
	r := s.run()
	if first.fatal {
		if r.Outcome != sched.Fault || !strings.Contains(r.Fault, "8013135e") {
			t.Errorf("%v %s", r.Outcome, r.Fault)
		}
		return
	}
	if !strings.HasSuffix(told(&r), ", since "+when(first.row)) || len(s.callbacks) != 0 {
		t.Errorf("%s", told(&r))
	}
}
