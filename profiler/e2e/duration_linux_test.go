package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// The outputs of a recording are written even if no thread of the process receives a signal, for example for
// want of a processor. The handlers are removed from the process when its threads run.
func TestOutputsDoNotWaitForThreads(t *testing.T) {
	target := attached(t, app(t, "Truth", "120")...)
	before := settled(t, target.pid)
	file := filepath.Join(tempdir.New(t), "out.folded")
	p := start(t, tool(t), "record", "--pid", target.id, "--duration", "2s", "--quiet", "--output", file)
	until(t, "the probe is there", func() bool { return systemStateOf(t, target.pid).ours > 0 })
	time.Sleep(time.Second) // any moment works, before or after the first sample
	target.freeze()
	until(t, "the output is written", func() bool { _, err := os.Stat(file); return err == nil })
	time.Sleep(time.Second)
	if p.gone() {
		t.Fatalf("the tool wrote its output last, and has left what it put into the process: %v", p.err)
	}
	target.Process.Signal(syscall.SIGCONT)
	if p.wait(); p.err != nil {
		t.Error(p.err)
	}
	if now := systemStateOf(t, target.pid); now.caught != before.caught || now.timers != 0 {
		t.Errorf("afterwards %+v, before %+v", now, before)
	}
}
