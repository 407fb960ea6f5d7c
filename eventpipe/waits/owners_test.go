package waits_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/nettracefile"
	"github.com/seedwalk/seedwalk/testkit/waittruth"
)

// TestOwners follows the owners of locks: what each owner itself waited for at that time.
func TestOwners(t *testing.T) {
	for _, c := range []struct {
		name, script string // owner=N: of the locks of the waits that follow, and lock=N
		want         string // of the first thread's first wait: the threads of the chain
	}{
		{"the owner does not wait", "owner=2 1:C@1 1:c+5", ""},
		{"the owner is not known", "1:C@1 2:W@1 2:w+5 1:c", ""},
		{"the owner waits for an event", "owner=2 1:C@1 2:W@1 2:w+5 1:c", "2"},
		{"three in a row", "owner=2 1:C@1 owner=3 2:C@1 3:M@1 3:w+5 2:c 1:c", "2 3"},
		{"the owner's wait is over before", "owner=2 2:W@1 2:w 1:C@1+3 1:c+5", ""},
		{"of two the one that shares more time",
			"owner=2 1:C@1 2:W@1 2:w owner=3 2:C@1 3:W@1 3:w+9 2:c 1:c", "2 3"},
		{"the owner's events are lost", "owner=2 1:C@1 2:W@1 2:-3 2:w+5 1:c", ""},
		{"two have what the other wants", "owner=2 1:C@1 owner=1 2:C@1 3:x+50", "2 circle"},
		{"three in a circle", "owner=2 1:C@1 owner=3 2:C@1 owner=1 3:C@1 4:x+50", "2 3 circle"},
		{"a circle that the first is not in",
			"owner=2 1:C@1 owner=3 2:C@1 owner=2 3:C@1 4:x+50", "2 3 circle"},
		{"one lock, whose owner queues again", "owner=2 1:C@1 owner=3 lock=2 2:C@1 1:c+5 2:c", ""},
		{"one lock in turn", "owner=2 1:C@1 owner=1 lock=2 2:C@1+5 3:x+50", ""},
		{"one lock, and the owner waits for it behind another",
			"owner=2 1:C@1 owner=3 2:C@1 owner=1 lock=3 3:C@1 3:x+50", "2"},
		{"the owner gave the lock to another, and waits after that",
			"owner=2 3:C@1 1:C@1 3:c owner=1 2:C@1 2:c+5 1:c", ""},
		{"the owner waits, and gave the lock to another before the circle",
			"owner=2 3:C@1 1:C@1 2:W@1 2:w+3 3:c owner=3 2:C@1+2 4:x+50", "2"},
		{"another owner is seen before the owner waits",
			"owner=2 1:C@1 owner=4 lock=2 3:C@1 2:W@1 2:w+5 1:c", ""},
		{"the waits of a circle do not overlap at one moment",
			"owner=2 1:C@1 owner=3 2:C@1 2:c+2 owner=1 3:C@1+2 3:x+50", "2"},
		{"it has the lock itself", "owner=1 1:C@1 1:c+5", ""},
	} {
		s := newScript(nettracefile.Options{})
		for _, word := range strings.Fields(c.script) {
			if owner, ok := strings.CutPrefix(word, "owner="); ok {
				s.owner = uint64(owner[0] - '0')
				s.lock = 0xabc0 + s.owner
				continue
			}
			if lock, ok := strings.CutPrefix(word, "lock="); ok {
				s.lock = 0xabc0 + uint64(lock[0]-'0')
				continue
			}
			s.run(word)
		}
		a := s.analyse()
		if got := chain(a); got != c.want {
			t.Errorf("%s: %q, want %q; %s", c.name, got, c.want, show(a))
		}
	}
}

func chain(a *waits.Analysis) string {
	owners := waits.NewOwners(a)
	for i := range a.Waits {
		if a.Waits[i].Thread != 1 {
			continue
		}
		var out []string
		list, circle := owners.Chain(&a.Waits[i])
		for _, k := range list {
			out = append(out, string(rune('0'+a.Waits[k].Thread)))
		}
		if circle {
			out = append(out, "circle")
		}
		return strings.Join(out, " ")
	}
	return "no wait"
}

// TestIdle: waits of the thread pool's own threads can be hidden, but not waits of a program's work on such a
// thread.
func TestIdle(t *testing.T) {
	for _, c := range []struct {
		name, stack string // leaf first; a native frame has a '+'
		want        bool
	}{
		{"a worker", "System.Threading.LowLevelLifoSemaphore.WaitForSignal System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart libcoreclr.so+0x1 libc.so+0x2", true},
		{"the gate", "System.Threading.WaitHandle.WaitOneNoCheck System.Threading.PortableThreadPool+GateThread.GateThreadStart", true},
		{"timers", "System.Threading.WaitHandle.WaitOneNoCheck System.Threading.TimerQueue.TimerThread", true},
		{"sockets", "System.Net.Sockets.SocketAsyncEngine.EventLoop", true},
		{"a work item", "System.Threading.WaitHandle.WaitOneNoCheck App.Work System.Threading.ThreadPoolWorkQueue.Dispatch System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart", false},
		{"a work item of the framework's",
			"System.Threading.Tasks.Task.Wait System.Threading.ThreadPoolWorkQueue.Dispatch System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart", false},
		{"a thread of the program's", "System.Threading.WaitHandle.WaitOneNoCheck App.Main", false},
		{"the framework, but no pool",
			"System.Threading.WaitHandle.WaitOneNoCheck System.Threading.Thread.Join", false},
		{"a thread that starts", "", true},
		{"native code only", "libc.so+0x2", false},
	} {
		frames := []waits.Frame{{}} // an event without a stack
		if c.stack != "" {
			frames = nil
		}
		for name := range strings.FieldsSeq(c.stack) {
			native := strings.Contains(name, "+0x")
			frames = append(frames, waits.Frame{Addr: 1, Name: name, Managed: !native, Named: true})
		}
		expect.Equal(t, waits.Idle(frames), c.want, c.name)
	}
}

const vectors = "../../../shared/vectors/nettrace"

func load(t *testing.T, path string) (truth waittruth.File, a *waits.Analysis) {
	t.Helper()
	raw := must.Get(os.ReadFile(path))(t)
	must.Do(t, json.Unmarshal(raw, &truth))
	if truth.Trace == "" {
		truth.Trace = strings.TrimSuffix(filepath.Base(path), ".truth.json") + ".nettrace"
	}
	f := must.Get(os.Open(filepath.Join(filepath.Dir(path), truth.Trace)))(t)
	defer f.Close()
	a = waits.New()
	expect.Equal(t, a.Read(f), nil, truth.Trace)
	a.Finish()
	return truth, a
}

// TestTruth: every wait of every truth file is found.
func TestTruth(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(vectors, "*.truth.json"))
	if len(files) == 0 {
		t.Logf("SKIPPED-CHECK: no %s: the recorded traces with third-party files are not judged", vectors)
	}
	own, _ := filepath.Glob("testdata/*.truth.json")
	expect.True(t, len(own) != 0, "the project's own traces are gone")
	for _, path := range append(files, own...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			truth, a := load(t, path)
			r := waittruth.Judge(truth.Waits, a)
			for _, p := range r.Problems {
				t.Error(p)
			}
			expect.True(t, r.Frames != 0, "no frames")
			t.Logf("%d of %d waits, %d of %d frames named, %d waits in all", r.Found, len(truth.Waits),
				r.Frames-r.Unnamed, r.Frames, len(a.Waits))
		})
	}
}
