// Package stack has the commands that show a process at one moment: stack, hang, and tasks.
//
// Sources: ptrace(2), core(5).
//
// Glossary. A group is the threads with the same stack.
//
// Strategy. Each thread is stopped while its registers and its stack are copied. The owners of
// monitors are read after all threads have continued. A core is read in the same way.
//
// Known gaps: running processes can be read on Linux only, cores on every system.
package stack

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/seedwalk/seedwalk/clr/tasks"
	"github.com/seedwalk/seedwalk/cmd/seedwalk/cli"
	"github.com/seedwalk/seedwalk/process/dump"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/sample/target"
)

const Help = `Usage: seedwalk stack [flags] PID
       seedwalk stack [flags] --core FILE

Shows the stack of every thread of a process: managed and native frames in one stack, with
names, leaf first. The process need not cooperate. It may hang, be stopped, or be in the middle
of a collection, and need not be a .NET process. seedwalk stops one thread at a time while it
copies the registers and the stack. The thread then continues, whatever happens to seedwalk.
Threads with the same stack are shown together. Processes: Linux; their cores: any system.

  --json             one line of JSON with every thread, frame, and address
  --managed-only     managed frames only
  --async            also the async methods that await what a thread runs, and what a thread that
                     blocks on a task waits for (reads the managed heap; .NET 8 and later)
  --thread ID        only this thread; repeat it or separate with commas
  --core FILE        a core of the kernel, of gcore, or of createdump instead of a process
  --copies FILE      instead, the stacks that the client library kept in FILE without a helper
                     (option keep, docs/embedding.md); also needs PID or --core
  --modules DIR      with --core: where to find the files that the process had mapped, by name or
                     by path; they are compared by build ID; may be repeated

A thread that waits for a lock is shown with the thread that holds it, if the owner is certain:
mutexes of the C library, futexes whose owner the kernel knows, and objects that managed code
locks; with .NET 9 and later also System.Threading.Lock and the writer of a ReaderWriterLockSlim,
a System.Threading.Mutex, and the static constructor of a type that another thread runs.
Threads that wait for each other are listed at the end.

An incomplete stack ends in a line that says why. A stack has at most 32,768 frames. Text shows
a block of up to 8 lines once if it repeats over 12 lines or more, with the number of repetitions.
A core of a crashed program begins with the thread, its signal, and its managed exception.
A core often lacks the pages of files. They are read from the files themselves, if those are
found.

Examples:
  seedwalk stack 4711
  seedwalk stack --json --thread 4713 4711
  seedwalk stack --copies /var/tmp/copies 4711
  seedwalk stack --core core.4711 --modules ./app --modules /usr/share/dotnet

Exit code: 0 success; 1 some of it could not be shown (a thread could not be stopped, the core
is damaged or lacks modules, or the file of copies is damaged or was full), the rest is shown;
2 wrong usage; 3 nothing could be read. An incomplete stack alone does not change the exit code; in
JSON its "complete" is false.
`

// stackFlags are the flags of stack.
type stackFlags struct {
	pid     int
	core    string
	copies  string
	modules cli.List
	threads cli.List
	tids    []int
	json    bool
	managed bool
	use     func(*paused.Process) // if set, reads more of the process than its stacks

	chains   []tasks.Group // of --async
	asyncWhy string        // why chains could not be read
}

func Run(args []string) int {
	var f stackFlags
	set := flag.NewFlagSet("stack", flag.ContinueOnError)
	set.StringVar(&f.core, "core", "", "")
	set.StringVar(&f.copies, "copies", "", "")
	set.Var(&f.modules, "modules", "")
	set.Var(&f.threads, "thread", "")
	set.BoolVar(&f.json, "json", false, "")
	set.BoolVar(&f.managed, "managed-only", false, "")
	async := set.Bool("async", false, "")
	words, code, done := cli.ParseMixed(set, Help, args)
	if done {
		return code
	}
	if err := f.check(words); err != nil {
		return cli.Usage("stack", err)
	}
	if *async && f.copies != "" {
		return cli.Fail("stack", cli.ExitUsage, "copies have no async callers: leave out --async or --copies")
	}
	if *async {
		f.use = f.readAsync
	}
	return f.run()
}

func (f *stackFlags) check(words []string) (err error) {
	switch {
	case f.core != "" && len(words) > 0:
		return errors.New("name a process or a core, not both")
	case f.core == "" && len(words) != 1:
		return errors.New("name one process by its PID, or a core with --core")
	case f.core == "" && len(f.modules) > 0:
		return errors.New("--modules needs --core")
	}
	if f.core == "" {
		if f.pid, err = strconv.Atoi(words[0]); err != nil || f.pid <= 0 {
			return fmt.Errorf("%s is not a process ID", words[0])
		}
	}
	for _, t := range f.threads {
		tid, err := strconv.Atoi(t)
		if err != nil || tid <= 0 {
			return fmt.Errorf("--thread %s is not a thread ID", t)
		}
		f.tids = append(f.tids, tid)
	}
	return nil
}

func (f *stackFlags) run() int {
	v, err := f.snapshot()
	if err != nil {
		return cli.Fail("stack", cli.ExitUnreadable, err)
	}
	f.addAsync(v)
	if f.managed {
		v.managedOnly()
	}
	code := cli.Problems("stack", v.Problems)
	if err := v.write(cli.Stdout, f.json); err != nil {
		return cli.Fail("stack", cli.ExitUnreadable, err)
	}
	return code
}

// snapshot reads the process or the core.
func (f *stackFlags) snapshot() (*stackView, error) {
	if f.core != "" {
		return f.ofCore()
	}
	return f.ofProcess()
}

func (f *stackFlags) ofProcess() (*stackView, error) {
	if f.copies != "" {
		return f.copiesOfProcess()
	}
	look := paused.LookAt
	if f.use != nil {
		look = paused.LookAtTasks
	}
	l, err := look(f.pid, f.tids)
	if err != nil {
		return nil, err
	}
	if f.use != nil {
		f.use(l.Process)
	}
	v := newStackView("process", f.pid, l.Names[uint32(f.pid)])
	held := map[uint32]time.Duration{}
	for _, s := range l.Stops {
		held[uint32(s.TID)] = s.Held
		var e *live.StopError
		if errors.As(s.Err, &e) && e.Why != live.Gone {
			v.Problems = append(v.Problems, e.Error())
		}
	}
	for i := range l.Stacks {
		st := &l.Stacks[i]
		v.add(l.Process, st, l.Names[st.TID], held[st.TID])
	}
	v.finish(l.Process)
	return v, nil
}

func (f *stackFlags) ofCore() (*stackView, error) {
	c, err := dump.Open(f.core)
	var bad *dump.Error
	switch {
	case errors.As(err, &bad):
		return nil, fmt.Errorf("%s: %w; %s", f.core, err, bad.Why.Remedy())
	case err != nil:
		return nil, err
	}
	return f.ofDump(c)
}

// ofDump reads the threads of an opened core.
func (f *stackFlags) ofDump(c *dump.Core) (*stackView, error) {
	m := dump.NewModules(c, f.modules)
	defer m.Close()
	loader := live.NewLoader(0)
	loader.Image = m.Image
	p := paused.New(c.Arch, m, loader, m.Maps())
	p.SetIncomplete()
	v := newStackView("core", int(c.PID), c.Name)
	add := f.addThreads
	if f.copies != "" {
		add = f.copiesOfCore
	}
	if err := add(v, c, p); err != nil {
		return nil, err
	}
	v.damaged(f.core, c.Problems)
	v.lacking(m.Problems())
	v.finish(p)
	return v, nil
}

// addThreads adds the wanted threads of a core.
func (f *stackFlags) addThreads(v *stackView, c *dump.Core, p *paused.Process) error {
	if f.use != nil {
		p.KeepStacks()
	}
	threads, err := f.coreThreads(c, p)
	if err != nil {
		return err
	}
	p.Verify()
	var stacks []paused.Stack
	for i := range threads {
		stacks = append(stacks, p.Walk(&threads[i]))
	}
	p.Locks(stacks)
	v.Crash = crashOf(c, p, stacks)
	if f.use != nil {
		f.use(p)
	}
	for i := range stacks {
		v.add(p, &stacks[i], "", 0)
	}
	return nil
}

// coreThreads reads the threads of a core that the user has chosen, or all.
func (f *stackFlags) coreThreads(c *dump.Core, p *paused.Process) (out []paused.Thread, err error) {
	wanted, known := map[uint32]bool{}, target.Numbers{}
	for _, tid := range f.tids {
		wanted[uint32(tid)] = true
	}
	for i := range c.Threads {
		known[c.Threads[i].TID] = true
	}
	p.SetThreads(known)
	for i := range c.Threads {
		t := &c.Threads[i]
		if len(f.tids) == 0 || wanted[t.TID] {
			th := p.Read(t.TID, &t.Regs, t.Stood)
			p.ReadCall(&th, t.Stood)
			out = append(out, th)
			delete(wanted, t.TID)
		}
	}
	for tid := range wanted {
		return nil, fmt.Errorf("%s: the core has no thread %d", f.core, tid)
	}
	return out, nil
}
