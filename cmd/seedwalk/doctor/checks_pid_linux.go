package doctor

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
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/target"
)

// pidChecks are those of a running process, in the order they are shown.
var pidChecks = []func(*patient) Finding{checkProcess, checkContainer, checkItsRuntime, checkItsTables,
	checkGoLibrary, checkPort, checkAttach, checkMemory, checkStops, checkTracer, checkProbe}

// checkProcess ends the questions if there is nothing to ask about.
func checkProcess(p *patient) Finding {
	const name = "process"
	status := procstat.Status(p.pid)
	if status == nil {
		p.gone = true
		return Finding{name, Bad, fmt.Sprintf("there is no process %d", p.pid), "find its PID with ps"}
	}
	threads, _ := strconv.Atoi(status["Threads"])
	detail := fmt.Sprintf("%d (%s), %s", p.pid, status["Name"], cli.CountOf(threads, "thread"))
	uid, _, _ := strings.Cut(status["Uid"], "\t")
	switch n, err := strconv.Atoi(uid); {
	case strings.HasPrefix(status["State"], "Z") && threads > 1:
		return Finding{name, Bad, detail + "; its main thread has ended",
			"seedwalk cannot read the memory of such a process"}
	case strings.HasPrefix(status["State"], "Z"):
		p.gone = true
		return Finding{name, Bad, detail + "; it has ended (zombie)", "an ended process has no stacks"}
	case procstat.Read(p.pid).Kernel():
		p.gone = true
		return Finding{name, Bad, detail + "; it is a thread of the kernel",
			"name the process of a program: seedwalk cannot record the kernel's own threads"}
	case err == nil && n != os.Geteuid() && os.Geteuid() != 0:
		return Finding{name, Bad,
			fmt.Sprintf("%s; it belongs to user %d, and seedwalk runs as user %d", detail, n, os.Geteuid()),
			"run seedwalk as that user, or as root"}
	case strings.HasPrefix(status["State"], "T"):
		return Finding{name, Note, detail + "; it is stopped",
			"seedwalk stack and record --pid PID --outside work; kill -CONT continues it"}
	}
	return Finding{name, Good, detail, ""}
}

func checkContainer(p *patient) Finding {
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
		return Finding{name, Good, "the process has seedwalk's namespaces", ""}
	}
	detail := "the process has its own namespaces: " + strings.Join(other, ", ")
	if ids := strings.Fields(procstat.Status(p.pid)["NSpid"]); len(ids) > 1 {
		detail += "; its PID there is " + ids[len(ids)-1]
	}
	return Finding{name, Note, detail, ""}
}

func checkItsRuntime(p *patient) Finding {
	const name = ".NET runtime"
	maps, err := live.MapsOf(p.pid)
	if err != nil || len(maps) == 0 {
		return Finding{name, Note, "the mappings cannot be read",
			"run seedwalk as the user of the process, or as root"}
	}
	table := live.NewLoader(p.pid).Table(maps)
	for i := range table.Len() {
		m := table.At(i)
		if m.ELF != nil && published.Holds(m.ELF) {
			p.modules = table
			return Finding{name, Good,
				strings.TrimSpace(m.Path + " " +
					options.RuntimeName(filepath.Join(fmt.Sprintf("/proc/%d/root", p.pid), m.Path))), ""}
		}
	}
	if i := slices.IndexFunc(maps,
		func(m live.Mapping) bool { return filepath.Base(m.Path) == "libcoreclr.so" }); i >= 0 {
		p.modules = table
		return Finding{name, Note,
			maps[i].Path + " is a release whose structures are unknown (.NET 8 and later are known)",
			"start it with seedwalk record -- COMMAND, which can suspend the runtime"}
	}
	return Finding{name, Note, "none is mapped: a native program, or NativeAOT",
		"use seedwalk stack, or record --pid PID --outside"}
}

// checkItsTables reports whether managed frames will be shown.
func checkItsTables(p *patient) Finding {
	if p.modules == nil {
		return Finding{}
	}
	if why := target.Unproven(p.pid); why != "" {
		return Finding{"managed code", Note, why,
			"stacks show native frames only; try again when the program has run for a while, or start it with seedwalk record --mode snapshot -- COMMAND"}
	}
	return Finding{}
}

// checkGoLibrary looks for one beside the runtime.
func checkGoLibrary(p *patient) Finding {
	if p.modules == nil {
		return Finding{}
	}
	if path := sampler.GoLibrary(p.pid, p.modules); path != "" {
		return Finding{"Go library", Note, strings.Join(sampler.BesideGo(path), " "), sampler.BesideGoRemedy}
	}
	return Finding{}
}

func checkPort(p *patient) Finding {
	const name = "diagnostics port"
	c, err := diagnostics.Running(p.pid)
	if err == nil {
		var info *diagnostics.Info
		if info, err = c.Info(); err == nil {
			return Finding{name, Good, "answers: .NET " + info.Version + ", " + info.OS + " " + info.Arch, ""}
		}
	}
	return Finding{name, Note, strings.TrimPrefix(err.Error(), fmt.Sprintf("process %d: ", p.pid)),
		"record --pid PID --outside does not need it"}
}

func checkAttach(p *patient) Finding {
	const name = "record --pid"
	if r := record.Attachable(p.pid); r != nil {
		return Finding{name, Bad, r.What, r.Remedy}
	}
	return Finding{name, Good, "the runtime can load the probe", ""}
}

// checkMemory says who would read the process's memory.
func checkMemory(p *patient) Finding {
	const name = "memory"
	unread, unseen := refusedOf(p.pid)
	if unread+unseen == "" {
		return Finding{name, Good, "the kernel permits reading it", ""}
	}
	return Finding{name, Note, strings.TrimPrefix(byProbe(unread, unseen), "; "), remedyOfReads}
}

func checkStops(p *patient) Finding {
	const name = "stack, --outside"
	if err := paused.Lookable(p.pid); err != nil {
		return Finding{name, Bad, err.Error(), ""}
	}
	return Finding{name, Good, "the kernel permits stopping its threads and reading its memory", ""}
}

func checkTracer(p *patient) Finding {
	if tracer := procstat.Status(p.pid)["TracerPid"]; tracer != "" && tracer != "0" {
		return Finding{"tracer", Note,
			"process " + tracer + " traces it, and the kernel permits only one tracer",
			"stack and --outside cannot run until the tracer ends; record --pid works"}
	}
	return Finding{}
}

func checkProbe(p *patient) Finding {
	maps, _ := live.Maps(p.pid)
	if !slices.ContainsFunc(maps, func(m live.Mapping) bool {
		return filepath.Base(strings.TrimSuffix(m.Path, " (deleted)")) == probe.LibraryName
	}) {
		return Finding{}
	}
	return Finding{"probe", Note,
		"a probe is mapped: a recording is running, or one ran earlier and the probe is inactive", ""}
}
