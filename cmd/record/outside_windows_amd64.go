package record

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/sample/suspended"
)

// hasProbe says that processes can be sampled from outside.
const hasProbe = true

// needsLibrary says that nothing of ours is needed in them.
const needsLibrary = false

// unforeseen reports why it is not known beforehand that the command's runtime can
// be sampled from outside, "" if it is: then no library is put into it, and one that
// had to be is loaded when the runtime starts.
func (o *Options) unforeseen() string {
	if o.PID != 0 {
		return ""
	}
	path, err := exec.LookPath(o.Command[0])
	if err != nil && path == "" {
		return "the command is not a file that is seen"
	}
	app := strings.TrimSuffix(path, filepath.Ext(path))
	if strings.EqualFold(filepath.Base(app), "dotnet") {
		if len(o.Command) < 2 || !strings.EqualFold(filepath.Ext(o.Command[1]), ".dll") {
			return "it is not seen which runtime the command starts"
		}
		app = strings.TrimSuffix(o.Command[1], filepath.Ext(o.Command[1]))
	}
	if v := frameworkOf(app + ".runtimeconfig.json"); v != 0 {
		if v < leastPublished {
			return fmt.Sprintf(".NET %d does not publish its structures (.NET %d and later do)", v, leastPublished)
		}
		return ""
	}
	for _, file := range []string{path, filepath.Join(filepath.Dir(path), "coreclr.dll")} {
		if f, err := pe.Open(file); err == nil && contract.PublishesPE(f) {
			return ""
		}
	}
	return "it is not seen that the command starts a runtime that publishes its structures (.NET 10 and later do); --mode probe looks at whatever it starts"
}

// leastPublished is the first .NET whose code tables a runtime for Windows publishes.
const leastPublished = 10

// maxConfig bounds a runtimeconfig.json.
const maxConfig = 1 << 20

// frameworkOf is the major version of .NET that a program's runtimeconfig.json asks
// for, 0 if there is none.
func frameworkOf(path string) int {
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxConfig {
		return 0
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	type framework struct{ Name, Version string }
	var c struct {
		RuntimeOptions struct {
			Framework          framework
			Frameworks         []framework
			IncludedFrameworks []framework
		}
	}
	if json.Unmarshal(data, &c) != nil {
		return 0
	}
	o := &c.RuntimeOptions
	for _, f := range append(append([]framework{o.Framework}, o.Frameworks...), o.IncludedFrameworks...) {
		major, _, _ := strings.Cut(f.Version, ".")
		if v, err := strconv.Atoi(major); err == nil && v > 0 {
			return v
		}
	}
	return 0
}

// sampled is asked of processes that connect, which nothing makes them do.
func (s *server) sampled(c stream, _ int) (stream, error) {
	c.Close()
	return nil, fmt.Errorf("a profiler connected, and processes are recorded from outside")
}

// errAnswered says that a connection was a question, and has been answered.
var errAnswered = fmt.Errorf("answered")

// followEvery is how often processes are looked for.
const followEvery = 20 * time.Millisecond

// follow finds the command's processes of .NET, and samples them.
func (r *run) follow() {
	if r.opt.Mode == ModeProbe {
		go r.srv.followTree(uint32(r.cmd.Process.Pid), r.exited)
	}
}

// followTree samples what root starts, and what that starts, until root has ended.
func (s *server) followTree(root uint32, ended <-chan struct{}) {
	f := family{members: map[uint32]*member{}}
	defer f.close()
	f.add(root)
	for {
		select {
		case <-ended:
			return
		case <-time.After(followEvery):
		}
		f.grow()
		for pid, m := range f.members {
			s.consider(pid, m)
		}
	}
}

// consider starts to sample a process as soon as it has a runtime.
func (s *server) consider(pid uint32, m *member) {
	if !m.decided && m.prospect == nil { // it was just being made
		m.prospect, _ = suspended.OpenProspect(int(pid))
	}
	if m.decided || m.prospect == nil {
		return
	}
	state, why := m.prospect.Look()
	switch state {
	case suspended.Ready:
		if err := s.engine(int(pid)); err != nil {
			s.refuse(err.Error())
		}
	case suspended.Refused:
		s.note(fmt.Sprintf("process %d (%s) is not sampled: %s; --mode snapshot is for it", pid, processName(int(pid)), why))
	default:
		return
	}
	m.decided = true
	m.close()
}

func (s *server) engine(pid int) error {
	here, there := net.Pipe()
	e, err := suspended.New(pid, s.outside, there)
	if err != nil {
		return err
	}
	s.add(running(e, here, there), pid)
	return nil
}
