package main

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	published "github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/live"
	"github.com/seedwalk/seedwalk/probe"
)

// checkWay says beforehand how record would take samples, and why.
func checkWay(*patient) finding {
	const name = "way"
	snapshot := func(why string) finding {
		return finding{name, note, "snapshot, since " + why, "samples are then biased to the runtime's safe points"}
	}
	if runtime.GOARCH != "amd64" {
		return snapshot("there is no probe for this architecture")
	}
	if findProbe() == "" && probe.Library() == nil {
		return snapshot("the probe's library was not found")
	}
	if why := unreadableChild(); why != "" {
		return snapshot(why)
	}
	var silent []string
	for _, r := range findRuntimes() {
		if !publishes(r.Path) {
			silent = append(silent, r.Version)
		}
	}
	detail := "probe: stacks are copied and walked from outside, the runtime is never suspended"
	if len(silent) > 0 {
		return finding{name, good, detail + "; snapshot for " + strings.Join(silent, ", ") + ", which do not publish their structures", ""}
	}
	return finding{name, good, detail, ""}
}

// unreadableChild reports why a process that we start could not be sampled from
// outside, "" if it could.
func unreadableChild() string {
	child := exec.Command("sleep", "10")
	if err := child.Start(); err != nil {
		return "" // nothing is known
	}
	defer func() { child.Process.Kill(); child.Wait() }()
	m, err := live.OpenProcess(child.Process.Pid)
	if err != nil {
		return "the memory of a process we start cannot be read: " + err.Error()
	}
	defer m.Close()
	if err := exec.Command("cat", "/proc/"+strconv.Itoa(child.Process.Pid)+"/syscall").Run(); err != nil {
		return "the kernel does not say where threads wait (/proc/PID/syscall)"
	}
	return ""
}

// publishes reports whether a CLR's file tells where its structures are.
func publishes(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	return published.Holds(f)
}
