package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/needs"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// refusing is the beginning of a command to which the kernel refuses the memory of processes with
// capabilities that it lacks.
func refusing(t *testing.T, capabilities string) []string {
	t.Helper()
	lacks := "-" + strings.ReplaceAll(capabilities, ",", ",-")
	cmd := []string{"setpriv", "--bounding-set=" + lacks, "--inh-caps=" + lacks, "--"}
	if os.Geteuid() != 0 || exec.Command(cmd[0], append(cmd[1:], "true")...).Run() != nil {
		t.Skip("SKIPPED-CHECK: capabilities cannot be given up here (it needs root and setpriv)")
	}
	mem := fmt.Sprintf("/proc/%d/mem", os.Getpid())
	if exec.Command(cmd[0], append(cmd[1:], "head", "-c0", mem)...).Run() == nil {
		t.Skip("SKIPPED-CHECK: the kernel refuses no memory here")
	}
	return cmd
}

// The kernel refuses the tool everything that needs ptrace's permission: process_vm_readv, /proc/PID/mem,
// where threads wait, and finally the list of mappings. The probe in the target reads instead, and the stacks
// agree with the threads' own records. The same if the target may not even read itself.
func TestProbeReads(t *testing.T) {
	for _, c := range []struct {
		name, lacks, runtime string
		filtered             bool
	}{
		{"memory", "sys_ptrace", needs.Net9, false},
		{"memory and mappings", "sys_ptrace,perfmon,sys_admin", needs.Net9, true},
		{"net10", "sys_ptrace,perfmon,sys_admin", needs.Net10, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			by, argv := refusing(t, c.lacks), on(t, c.runtime, "Truth", "12")
			if c.filtered {
				argv = append([]string{withoutCall(t), fmt.Sprint(unix.SYS_PROCESS_VM_READV)}, argv...)
			}
			p := attached(t, argv...)
			if d := run(t, time.Minute, nil, append(by, tool(t), "doctor", "--pid", p.id)...); !strings.Contains(d.stdout, "the probe reads the program's memory") {
				t.Errorf("doctor does not say who reads:\n%s", d.stdout)
			}
			r := recordRawBy(t, by, "--rate 200 --duration 4s --pid "+p.id)
			t.Log("\n" + r.stderr)
			if r.code != 0 || !strings.Contains(r.stderr, "memory read through the probe: ") {
				t.Fatalf("exit code %d\n%s", r.code, r.stderr)
			}
			judge := newChecker(t)
			judge.want, judge.first, judge.last, judge.whole = 300, 1, 0, 100
			judge.recorded(t, r)
			judge.verdict(t)
			checkReads(t, r.jsonProfile, judge.sum().checked)
			p.truthDone()
		})
	}
}

// checkReads checks the counters of reads, and that stacks were compared at all.
func checkReads(t *testing.T, p *jsonProfile, checked int) {
	t.Helper()
	c := p.Counters
	t.Logf("%d stacks compared; %d reads, %d us each, %d us of them in the handler; %d of what was held, %d given up, %d signals", checked, c["reads"],
		c["read_ns"]/max(1, c["reads"])/1000, c["read_copy_ns"]/max(1, c["reads"])/1000, c["reads_held"], c["reads_lost"], c["read_signals"])
	if p.Way != "probe" || c["reads"] == 0 || c["reads_lost"]*50 > c["reads"] || checked < 200 || c["hidden"] == 0 {
		t.Errorf("%d stacks compared, %+v", checked, p.Figures)
	}
}

// withoutCall builds a program that runs another, to which the kernel refuses a call.
func withoutCall(t *testing.T) string {
	t.Helper()
	filter := filepath.Join(tempdir.New(t), "without")
	if out, err := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-o", filter, "testdata/without.c").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED-CHECK: no filter can be built: %v %s", err, out)
	}
	return filter
}
