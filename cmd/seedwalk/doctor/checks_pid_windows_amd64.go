package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/seedwalk/seedwalk/cmd/record"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/sample/suspended"
)

// pidChecks are those of a running process, in the order they are shown.
var pidChecks = []func(*patient) Finding{checkProcess, checkItsRuntime, checkAttach, checkStack}

// checkProcess sets gone, which skips the other checks, if there is no such process. A process that may not
// be opened is a bad finding, and the other checks follow.
func checkProcess(p *patient) Finding {
	const name = "process"
	if p.pid == os.Getpid() {
		p.gone = true
		return Finding{name, Bad, fmt.Sprintf("%d is seedwalk itself", p.pid), "choose another process"}
	}
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false,
		uint32(p.pid))
	if err != nil && !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		p.gone = true
		return Finding{name, Bad, fmt.Sprintf("there is no process %d", p.pid),
			"find its PID with tasklist or the task manager"}
	}
	if err != nil {
		return Finding{name, Bad, fmt.Sprintf("access to %d was denied", p.pid),
			"run seedwalk as its user, or from a prompt that was started as administrator"}
	}
	defer windows.CloseHandle(h)
	if w, err := windows.WaitForSingleObject(h, 0); err == nil && w == windows.WAIT_OBJECT_0 {
		p.gone = true
		return Finding{name, Bad, fmt.Sprintf("%d has ended", p.pid), "an ended process has no stacks"}
	}
	return Finding{name, Good, fmt.Sprintf("%d (%s)", p.pid, imageOf(h)), ""}
}

// imageOf is the path of a process's program, "" if the system does not tell.
func imageOf(h windows.Handle) string {
	b := make([]uint16, windows.MAX_LONG_PATH)
	n := uint32(len(b))
	if windows.QueryFullProcessImageName(h, 0, &b[0], &n) != nil {
		return ""
	}
	return windows.UTF16ToString(b[:n])
}

func checkItsRuntime(p *patient) Finding {
	const name = ".NET runtime"
	q, err := suspended.OpenProspect(p.pid)
	if err != nil {
		return Finding{name, Note, "its memory may not be read",
			"run seedwalk as its user, or from a prompt that was started as administrator"}
	}
	defer q.Close()
	if state, _ := q.Look(); state == suspended.Ready {
		return Finding{name, Good,
			strings.TrimSpace(q.Runtime() + " " + options.RuntimeName(q.Runtime())), ""}
	}
	if q.Doubted() {
		return Finding{name, Note, "one that does not publish its structures (.NET 10 and later do)", ""}
	}
	return Finding{name, Note, "none is mapped: a native program, or NativeAOT", ""}
}

func checkAttach(p *patient) Finding {
	const name = "record --pid"
	if r := record.Attachable(p.pid); r != nil {
		return Finding{name, Bad, r.What, r.Remedy}
	}
	return Finding{name, Good, "its threads can be sampled from outside; nothing is put into it", ""}
}

// checkStack notes that seedwalk stack works on Linux only.
func checkStack(*patient) Finding {
	return Finding{"stack", Note, "seedwalk stack reads running processes on Linux only",
		"record --pid PID --duration 2s shows what each thread does"}
}
