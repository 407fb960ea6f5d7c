package stepper

import "testing"

// realigned are builds of functions that realign their stack. gcc describes RBP as saved
// where RBP points, in epilogs that have restored it too.
var realigned = []build{
	{"gcc O2, DRAP", true, []string{"gcc", "-O2", "-mforce-drap"}},
	{"gcc O1, DRAP, no PLT", true, []string{"gcc", "-O1", "-mforce-drap", "-fno-plt", "-foptimize-sibling-calls"}},
	{"gcc Os, DRAP", true, []string{"gcc", "-Os", "-mforce-drap", "-fno-pie", "-no-pie"}},
	{"gcc O3, no PLT", true, []string{"gcc", "-O3", "-fno-plt"}},
	{"gcc O2, dynamic realign", false, []string{"gcc", "-O2", "-mstackrealign", "-fno-pie", "-no-pie"}},
	{"gcc O2, stack protector", false, []string{"gcc", "-O2", "-fstack-protector-all", "-fcf-protection=full"}},
	{"clang O2", false, []string{clang, "-O2"}},
}

// TestRealigned walks at the instructions of epilogs that end in a tail call.
func TestRealigned(t *testing.T) { each(t, realigned, stepped("testdata/realigned.c", 300)) }
