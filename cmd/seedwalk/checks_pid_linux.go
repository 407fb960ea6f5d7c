package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	published "github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/cmd/record"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/target"
)

// pidChecks are those of a running process, in the order they are shown.
var pidChecks = []func(*patient) finding{checkProcess, checkContainer, checkItsRuntime, checkItsTables, checkGoLibrary, checkPort, checkAttach, checkMemory, checkStops, checkTracer, checkProbe}

// checkProcess ends the questions if there is nothing to ask about.
func checkProcess(p *patient) finding {
	const name = "process"
	status := p.status()
	if status == nil {
		p.gone = true
		return finding{name, bad, fmt.Sprintf("there is no process %d", p.pid), "look for its number with ps"}
	}
	threads, _ := strconv.Atoi(status["Threads"])
	detail := fmt.Sprintf("%d (%s), %s", p.pid, status["Name"], countOf(threads, "thread"))
	uid, _, _ := strings.Cut(status["Uid"], "\t")
	switch n, err := strconv.Atoi(uid); {
	case strings.HasPrefix(status["State"], "Z"):
		return finding{name, bad, detail + "; it has ended (zombie)", "an ended process has no stacks"}
	case err == nil && n != os.Geteuid() && os.Geteuid() != 0:
		return finding{name, bad, fmt.Sprintf("%s; it belongs to user %d, and seedwalk runs as user %d", detail, n, os.Geteuid()), "run seedwalk as that user, or as root"}
	case strings.HasPrefix(status["State"], "T"):
		return finding{name, note, detail + "; it is stopped", "seedwalk stack works; a recording waits until the process continues"}
	}
	return finding{name, good, detail, ""}
}

// status is what the kernel tells of the process, nil if there is none.
func (p *patient) status() map[string]string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(line, ":")
		out[k] = strings.TrimSpace(v)
	}
	return out
}

func checkContainer(p *patient) finding {
	const name = "container"
	var other []string
	for _, ns := range []string{"mnt", "pid", "user"} {
		theirs, err1 := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", p.pid, ns))
		ours, err2 := os.Readlink("/proc/self/ns/" + ns)
		if err1 == nil && err2 == nil && theirs != ours {
			other = append(other, ns)
		}
	}
	if len(other) == 0 {
		return finding{name, good, "the process shares our namespaces", ""}
	}
	detail := "the process has its own namespaces: " + strings.Join(other, ", ")
	if ids := strings.Fields(p.status()["NSpid"]); len(ids) > 1 {
		detail += "; its number there is " + ids[len(ids)-1]
	}
	return finding{name, note, detail, ""}
}

func checkItsRuntime(p *patient) finding {
	const name = ".NET runtime"
	maps, err := live.MapsOf(p.pid)
	if err != nil || len(maps) == 0 {
		return finding{name, note, "the mappings cannot be read", "run seedwalk as the user of the process, or as root"}
	}
	table := live.NewLoader(p.pid).Table(maps)
	for i := range table.Len() {
		m := table.At(i)
		if m.ELF != nil && published.Holds(m.ELF) {
			p.modules = table
			return finding{name, good, strings.TrimSpace(m.Path + " " + options.RuntimeName(filepath.Join(fmt.Sprintf("/proc/%d/root", p.pid), m.Path))), ""}
		}
	}
	if i := slices.IndexFunc(maps, func(m live.Mapping) bool { return filepath.Base(m.Path) == "libcoreclr.so" }); i >= 0 {
		p.modules = table
		return finding{name, note, maps[i].Path + " is a release whose structures are unknown (.NET 8 and later are known)", "start it with seedwalk record -- COMMAND, which can suspend the runtime"}
	}
	return finding{name, note, "none is mapped: a native program, or NativeAOT", "use seedwalk stack, or record --pid PID --outside"}
}

// checkItsTables says whether managed frames will be shown.
func checkItsTables(p *patient) finding {
	if p.modules == nil {
		return finding{}
	}
	if why := target.Unproven(p.pid); why != "" {
		return finding{"managed code", note, why, "stacks show native frames only; try again when the program has run for a while, or start it with seedwalk record --mode snapshot -- COMMAND"}
	}
	return finding{}
}

// checkGoLibrary looks for one beside the runtime.
func checkGoLibrary(p *patient) finding {
	if p.modules == nil {
		return finding{}
	}
	if path := sampler.GoLibrary(p.pid, p.modules); path != "" {
		return finding{"Go library", note, strings.Join(sampler.BesideGo(path), " "), sampler.BesideGoRemedy}
	}
	return finding{}
}

func checkPort(p *patient) finding {
	const name = "diagnostics port"
	c, err := diagnostics.Process(p.pid)
	if err == nil {
		var info *diagnostics.Info
		if info, err = c.Info(); err == nil {
			return finding{name, good, "answers: .NET " + info.Version + ", " + info.OS + " " + info.Arch, ""}
		}
	}
	return finding{name, note, strings.TrimPrefix(err.Error(), fmt.Sprintf("process %d: ", p.pid)), "record --pid PID --outside does not need it"}
}

func checkAttach(p *patient) finding {
	const name = "record --pid"
	if r := record.Attachable(p.pid); r != nil {
		return finding{name, bad, r.What, r.Remedy}
	}
	return finding{name, good, "the runtime can load the probe", ""}
}

// checkMemory says who would read the process's memory.
func checkMemory(p *patient) finding {
	const name = "memory"
	unread, unseen := refusedOf(p.pid)
	if unread+unseen == "" {
		return finding{name, good, "the kernel permits reading it", ""}
	}
	return finding{name, note, strings.TrimPrefix(byProbe(unread, unseen), "; "), remedyOfReads}
}

func checkStops(p *patient) finding {
	const name = "stack, --outside"
	if err := paused.Lookable(p.pid); err != nil {
		return finding{name, bad, err.Error(), ""}
	}
	return finding{name, good, "the kernel permits stopping its threads and reading its memory", ""}
}

func checkTracer(p *patient) finding {
	if tracer := p.status()["TracerPid"]; tracer != "" && tracer != "0" {
		return finding{"tracer", note, "process " + tracer + " traces it, and the kernel permits only one tracer", "stack and --outside cannot run until the tracer ends; record --pid works"}
	}
	return finding{}
}

func checkProbe(p *patient) finding {
	maps, _ := live.Maps(p.pid)
	if !slices.ContainsFunc(maps, func(m live.Mapping) bool {
		return filepath.Base(strings.TrimSuffix(m.Path, " (deleted)")) == probe.LibraryName
	}) {
		return finding{}
	}
	return finding{"probe", note, "a probe is mapped: a recording is running, or one ran earlier and the probe is inactive", ""}
}
