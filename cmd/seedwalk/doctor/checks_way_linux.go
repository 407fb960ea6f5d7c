package doctor

import (
	"os"
	"os/exec"
	"strconv"
	"strings"

	published "github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/process/live"
)

// checkWay predicts how record would take samples, and why.
func checkWay(*patient) Finding {
	const name = "way"
	var silent []string
	for _, r := range cli.FindRuntimes() {
		if !publishes(r.Path) {
			silent = append(silent, r.Version)
		}
	}
	detail := "probe: stacks are copied and walked from outside; the runtime is never suspended"
	unread, unseen := refusedOfChild()
	if detail += byProbe(unread, unseen); unread+unseen != "" {
		return Finding{name, Note, detail, remedyOfReads}
	}
	if len(silent) > 0 {
		return Finding{name, Good,
			detail + "; snapshot for " + strings.Join(silent, ", ") +
				", which do not publish their structures", ""}
	}
	return Finding{name, Good, detail, ""}
}

// remedyOfReads is how to let the tool read memory itself.
const remedyOfReads = "to reduce the load on the program, give seedwalk CAP_SYS_PTRACE (docker run --cap-add SYS_PTRACE), or set kernel.yama.ptrace_scope below 2"

// byProbe describes what the probe does because the kernel refuses it to the tool. unread and
// unseen are the reasons, "" where the kernel does not refuse.
func byProbe(unread, unseen string) (out string) {
	if unread != "" {
		out += "; the probe reads the program's memory, on a thread of the runtime, because the kernel refuses it to seedwalk (" + unread + ")"
	}
	if unseen != "" {
		out += "; each blocked thread gets a signal after it has run, because the kernel does not say where it waits (" + unseen + ")"
	}
	return out
}

// refusedOfChild reports why we may not read the memory of a process that we start, and why
// we may not see where its threads wait; "" for what we may.
func refusedOfChild() (unread, unseen string) {
	child := exec.Command("sleep", "10")
	if err := child.Start(); err != nil {
		return "", "" // nothing is known
	}
	defer func() { child.Process.Kill(); child.Wait() }()
	return refusedOf(child.Process.Pid)
}

// refusedOf is that of any process.
func refusedOf(pid int) (unread, unseen string) {
	if mem, err := live.OpenProcess(pid); err != nil {
		unread = err.Error()
	} else {
		mem.Close()
	}
	if _, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/syscall"); err != nil {
		unseen = err.Error()
	}
	return unread, unseen
}

// publishes reports whether a CLR's file tells where its structures are.
func publishes(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	return published.Holds(f)
}
