package seedwalk_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
	"github.com/seedwalk/seedwalk/unwind/walker"
)

// printStacks prints the native frames of every thread of a process.
func printStacks(w io.Writer, pid int) error {
	maps, err := live.Maps(pid)
	if err != nil {
		return err
	}
	table := live.NewLoader(pid).Table(maps) // before a thread is stopped
	process, err := live.OpenProcess(pid)
	if err != nil {
		return err
	}
	defer process.Close()
	tids, err := live.Threads(pid)
	if err != nil {
		return err
	}
	var regs context.Registers
	var frames [256]unwind.Frame
	room, size := make([]byte, 1<<20), 0
	copyThread := func(tid int, r *context.Registers, _ live.Stood) { // the thread is stopped
		regs = *r
		size = process.ReadSome(room, r.SP()-128) // with the red zone of x86-64
	}
	walkCopy := func(stop live.Stop) { // the thread runs again
		if stop.Err != nil {
			fmt.Fprintln(w, stop.Err)
			return
		}
		low := regs.SP() - 128
		u := walker.New(regs.Arch)
		u.SetTable(table)
		at := unwind.Interrupted(&regs)
		r := u.Walk(&at, memory.New(memory.Run{Addr: low, Data: room[:size]}),
			&unwind.Bounds{Low: low, High: low + uint64(size)}, frames[:])
		for _, f := range frames[:r.N] {
			fmt.Fprintf(w, "%#x by %v\n", f.IP, f.Trust) // how the frame was found
		}
		fmt.Fprintf(w, "%v\n\n", r.Stop) // why the walk ended
	}
	live.StopEach(tids, copyThread, walkCopy)
	return nil
}

// The function printStacks unwinds every thread of a process to its end, and docs/go.md shows its text.
func TestPrintStacks(t *testing.T) {
	child := exec.Command("sleep", "60")
	must.Do(t, child.Start())
	defer func() { child.Process.Kill(); child.Wait() }()
	var out bytes.Buffer
	for range 100 { // the program may still be starting
		time.Sleep(20 * time.Millisecond)
		out.Reset()
		must.Do(t, printStacks(&out, child.Process.Pid))
		if strings.Count(out.String(), "by cfi") >= 2 {
			break
		}
	}
	if strings.Contains(out.String(), "not be stopped") {
		t.Skip("SKIPPED-CHECK: threads may not be stopped here: " + out.String())
	}
	expect.True(t, strings.Count(out.String(), "by cfi") >= 2 &&
		strings.HasSuffix(out.String(), "\nend-of-stack\n\n"), "%s", out.String())

	source := string(must.Get(os.ReadFile("example_linux_test.go"))(t))
	_, source, _ = strings.Cut(source, "// printStacks prints")
	source, _, _ = strings.Cut("// printStacks prints"+source, "\n// The function")
	page := string(must.Get(os.ReadFile("docs/go.md"))(t))
	expect.True(t, strings.Contains(page, source), "docs/go.md does not show the text of printStacks")

	_, program, _ := strings.Cut(page, "```go\n")
	program, _, _ = strings.Cut(program, "```")
	file := filepath.Join(t.TempDir(), "main.go")
	must.Do(t, os.WriteFile(file, []byte(program), 0o600))
	must.Run(t, exec.Command("go", "vet", file))
}
