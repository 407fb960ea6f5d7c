package continuous

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

func testAgent(t *testing.T, r func(Interval) (int64, error)) (*Agent, *said) {
	t.Helper()
	said := &said{}
	a := must.Get(New(Config{Record: r, Sample: sample, Rate: 19, Interval: 20 * time.Millisecond,
		Folder: t.TempDir(), FolderBytes: 100, SpoolBytes: 100,
		Push: "http://localhost:1", CPU: 1, MemoryBytes: 1 << 40, Say: said.say}))(t)
	return a, said
}

// sample is a session that ends when it is asked to.
func sample(s Session) error {
	s.Ready()
	<-s.Stop
	return nil
}

// self returns this process as a target.
func self(t *testing.T) process {
	start, ok := startOf(os.Getpid())
	must.True(t, ok, "this process has no start")
	return process{os.Getpid(), start, "self"}
}

// fill writes the files of an interval.
func fill(i Interval) {
	for _, path := range []string{i.Recording, i.Profile} {
		os.WriteFile(path, []byte(strings.Repeat("x", 40)), 0o600)
	}
}

// The metrics count the targets that are sampled in stretches, until an interval is not or the target ends.
func TestStretchesAreCounted(t *testing.T) { synctest.Test(t, stretchesAreCounted) }

func stretchesAreCounted(t *testing.T) {
	stop := make(chan struct{})
	var a *Agent
	var mu sync.Mutex
	intervals := 0
	a, _ = testAgent(t, func(i Interval) (int64, error) {
		fill(i)
		defer time.Sleep(time.Until(i.Until))
		mu.Lock() // an interval may begin while the last one ends
		defer mu.Unlock()
		intervals++
		i.Stretches(intervals != 2)
		w := httptest.NewRecorder()
		a.Handler("").ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/metrics", nil))
		want := fmt.Sprintf("\nseedwalk_agent_targets_in_stretches %d\n", intervals%2)
		expect.True(t, strings.Contains(w.Body.String(), want), "interval %d: %s", intervals, w.Body)
		if intervals == 3 {
			close(stop)
		}
		return 5, nil
	})
	a.start([]process{self(t)}, stop)
	a.wait.Wait()
	expect.Equal(t, len(a.rarely), 0, "targets in stretches at the end")
	expect.True(t, intervals >= 3, "%d intervals", intervals)
}

// Recordings and profiles stay within their bounds, and files that are deleted for that are counted.
func TestFoldersStayBounded(t *testing.T) { synctest.Test(t, foldersStayBounded) }

func foldersStayBounded(t *testing.T) {
	stop := make(chan struct{})
	var mu sync.Mutex
	var made []Interval
	a, _ := testAgent(t, func(i Interval) (int64, error) {
		mu.Lock()
		defer mu.Unlock()
		fill(i)
		if made = append(made, i); len(made) == 10 {
			close(stop)
		}
		return 5, nil
	})
	a.follow(self(t), stop)
	slices.SortFunc(made, func(x, y Interval) int { return x.From.Compare(y.From) })
	for k := range made[1:] {
		expect.True(t, made[k+1].From.Equal(made[k].Until),
			"an interval from %v, the last one until %v", made[k+1].From, made[k].Until)
	}
	for _, f := range []*folder{a.store, a.spool} {
		if names, size := f.files(); len(names) != 2 || size != 80 || f.dropped.Load() != int64(len(made)-2) {
			t.Errorf("%s: %v, %d bytes, %d dropped", f.suffix, names, size, f.dropped.Load())
		}
	}
	if n := int64(len(made)); a.count.Samples.Load() != 5*n || a.count.Recordings.Load() != n {
		t.Errorf("%d samples in %d recordings", a.count.Samples.Load(), a.count.Recordings.Load())
	}
}

// A recording that fails does not end its session. It gives one line, is counted by its reason, and
// leaves no part of a file. Its time counts as not recorded.
func TestFailingRecordings(t *testing.T) { synctest.Test(t, failingRecordings) }

func failingRecordings(t *testing.T) {
	stop := make(chan struct{})
	var begun, made atomic.Int64
	a, said := testAgent(t, func(i Interval) (int64, error) {
		fill(i)
		switch made.Add(1) {
		case 1, 3:
			return 0, fmt.Errorf("cannot write: %w", &os.PathError{Op: "write", Err: syscall.ENOSPC})
		case 2:
			return 0, errors.New("it gives no samples")
		case 5:
			close(stop)
		}
		return 1, nil
	})
	a.cfg.Sample = func(s Session) error { begun.Add(1); return sample(s) }
	a.follow(self(t), stop)
	parts, _ := filepath.Glob(filepath.Join(a.spool.dir, "*"+partSuffix))
	expect.True(t, begun.Load() == 1 && a.count.Recordings.Load() >= 2 && len(parts) == 0,
		"%d sessions, %d recordings, %v left", begun.Load(), a.count.Recordings.Load(), parts)
	if failed := a.failed(); failed[ReasonWrite] != 2 || failed[ReasonSamples] != 1 || len(failed) != 2 ||
		len(said.lines) != 3 || !strings.Contains(strings.Join(said.lines, "\n"), "(write): cannot write") {
		t.Errorf("failed %v, said %q", failed, said.lines)
	}
	expect.Equal(t, time.Duration(a.count.Unrecorded.Load()), 3*a.cfg.Interval,
		"without a recording, of three intervals of %v", a.cfg.Interval)
}

// failed returns the number of failures by reason.
func (a *Agent) failed() map[Reason]int64 {
	out := map[Reason]int64{}
	for i, reason := range reasons {
		if n := a.count.Failed[i].Load(); n > 0 {
			out[reason] = n
		}
	}
	return out
}

// If the session ends before the interval of a recording that has joined, that is no failure, and no
// file is left.
func TestEndBeforeInterval(t *testing.T) { synctest.Test(t, endBeforeInterval) }

func endBeforeInterval(t *testing.T) {
	for name, err := range map[string]error{"joined": nil,
		"not joined": errors.New("no recording of it is running")} {
		stop := make(chan struct{})
		a, said := testAgent(t, func(i Interval) (int64, error) {
			if early := i.From.After(time.Now()); early {
				defer close(stop)
				if err != nil {
					return 0, err
				}
			}
			fill(i)
			return 0, nil
		})
		a.cfg.Interval = time.Hour
		a.intervals(self(t), 19, time.Now().Add(prepare-time.Hour), &a.wait, stop, nil)
		a.wait.Wait()
		names, _ := a.store.files()
		expect.True(t, len(names) == 1 && len(a.failed()) == 0 && a.count.Unrecorded.Load() == 0,
			"%s: %v, said %q", name, names, said.lines)
	}
}

// A session that ends unexpectedly, or cannot begin, is a failure, and the agent does not retry at once.
func TestFailingSession(t *testing.T) { synctest.Test(t, failingSession) }

func failingSession(t *testing.T) {
	for name, c := range map[string]struct {
		session func(Session) error
		reason  Reason
	}{
		"never ready": {func(Session) error { return nil }, ReasonBegin},
		"refused":     {func(Session) error { return errors.New("refused") }, ReasonBegin},
		"ends early":  {func(s Session) error { s.Ready(); return nil }, ReasonEnd},
	} {
		stop := make(chan struct{})
		a, said := testAgent(t, func(i Interval) (int64, error) { fill(i); return 1, nil })
		var begun atomic.Int64
		a.cfg.Sample = func(s Session) error { begun.Add(1); return c.session(s) }
		time.AfterFunc(firstRetry, func() { close(stop) })
		a.follow(self(t), stop)
		failed := a.failed()
		expect.True(t, begun.Load() == 1 && failed[c.reason] == 1 && len(failed) == 1 && len(said.lines) == 1,
			"%s: begun %d times, failures %v, said %q", name, begun.Load(), failed, said.lines)
	}
}

// If a process was recorded for long, the agent retries soon.
func TestNextRetry(t *testing.T) {
	for _, c := range []struct{ last, recorded, want time.Duration }{
		{firstRetry, 0, 2 * firstRetry}, {maxRetry, 0, maxRetry}, {maxRetry - 1, time.Second, maxRetry},
		{maxRetry, maxRetry + 1, firstRetry}, {time.Minute, time.Hour, firstRetry},
	} {
		expect.Equal(t, nextRetry(c.last, c.recorded), c.want,
			"after %v without and %v with a recording", c.last, c.recorded)
	}
}

// Intervals follow each other without a gap, unless the agent was stopped for longer than one.
func TestNextInterval(t *testing.T) {
	until := time.Unix(1000, 0)
	for _, c := range []struct{ late, from, unrecorded time.Duration }{
		{-time.Second, 0, 0}, {0, 0, 0}, {time.Second, 0, time.Second},
		{time.Minute + prepare, 0, time.Minute + prepare}, {time.Hour, time.Hour, time.Hour},
	} {
		a := &Agent{cfg: Config{Interval: time.Minute}}
		got := a.next(until, until.Add(c.late))
		expect.True(t, got.Sub(until) == c.from && time.Duration(a.count.Unrecorded.Load()) == c.unrecorded,
			"%v late: begins %v later, %v not recorded", c.late, got.Sub(until),
			time.Duration(a.count.Unrecorded.Load()))
	}
}

// A new session begins for another rate.
func TestOtherRate(t *testing.T) { synctest.Test(t, otherRate) }

func otherRate(t *testing.T) {
	stop := make(chan struct{})
	a, _ := testAgent(t, func(i Interval) (int64, error) { fill(i); return 1, nil })
	var rates []float64
	a.cfg.Sample = func(s Session) error {
		if rates = append(rates, s.Rate); len(rates) == 3 {
			close(stop)
		}
		a.budget.mu.Lock()
		a.budget.now /= 2
		a.budget.mu.Unlock()
		return sample(s)
	}
	a.follow(self(t), stop)
	expect.True(t, len(rates) == 3 && rates[1] == 9.5 && rates[2] == 4.75 && len(a.failed()) == 0,
		"rates %v, failures %v", rates, a.failed())
}

// A process that has ended is not followed, even if another one has its number.
func TestEndedTarget(t *testing.T) {
	a, _ := testAgent(t, func(Interval) (int64, error) { t.Error("recorded"); return 0, nil })
	p := self(t)
	p.start++
	a.follow(p, make(chan struct{}))
	a.start([]process{p}, nil)
	expect.Equal(t, a.count.Targets.Load(), 0, "it counts as a target")
}

// A known process is checked again only after some listings. Another process with its number is new.
func TestFinderRemembers(t *testing.T) {
	p := self(t)
	f := newFinder(Rules{User: -1, All: true})
	f.seen[p.pid] = &sighting{start: p.start, target: &p, rest: 2}
	for rest := range 2 {
		s := f.sight(p.pid, time.Now())
		expect.True(t, s.target == &p && s.rest == 1-rest, "look %d: %+v", rest, s)
	}
	s := f.sight(p.pid, time.Now())
	expect.True(t, s.target != &p && s.target.name != p.name && s.rest == settled, "%+v is not read again", s)
	f.seen[p.pid] = &sighting{start: p.start + 1, target: &p}
	s = f.sight(p.pid, time.Now())
	expect.True(t, s.target == nil && s.start == p.start, "%+v is the process before", s)
}

// The next agent completes the recordings of an agent that was killed. It deletes and counts its
// unfinished profiles, and those for another backend.
func TestRecover(t *testing.T) {
	a, _ := testAgent(t, nil)
	put(t, a.store, "1700000000000-2-x.swrec.partial", "x")
	put(t, a.spool, "1700000000000-2-x.part", "x")
	put(t, a.spool, "1700000000000-1700000000002-3-19.00-x.otlp.gz", "x")
	a.recover()
	stored, _ := a.store.files()
	parts := a.spool.ending("")
	expect.True(t, len(stored) == 1 && len(parts) == 0 && a.count.SpoolDropped.Load() == 2,
		"%v stored, %d parts, %d dropped", stored, len(parts), a.count.SpoolDropped.Load())
}

// Files with other names are not the agent's: it neither deletes, renames, sends, nor counts them.
func TestForeignFiles(t *testing.T) {
	a, _ := testAgent(t, nil)
	for _, f := range []*folder{a.store, a.spool} {
		for _, name := range []string{"mine.swrec", "a.swrec.partial", "2026-11-26.swrec",
			"20261126120000-1-x.swrec", "cpu.pb.gz", "x.part", "x.otlp.gz", "notes.txt"} {
			put(t, f, name, strings.Repeat("x", 200))
		}
	}
	put(t, a.store, "1700000000000-2-x.swrec", strings.Repeat("x", 101)) // beyond the bound
	a.recover()
	a.pusher.drain(make(chan struct{}))
	for _, f := range []*folder{a.store, a.spool} {
		names, size := f.files()
		all, _ := filepath.Glob(filepath.Join(f.dir, "*.*"))
		expect.True(t, len(all) == 8 && len(names) == 0 && size == 0, "left: %v; counted: %v", all, names)
	}
	expect.True(t, a.count.StoreDropped.Load() == 1 && a.count.SpoolDropped.Load() == 0 &&
		a.count.PushRejected.Load() == 0, "other files than the agent's are counted")
}

// A second agent does not touch the folder of the first one. Once the first has ended, another may use it.
func TestOneAgentPerFolder(t *testing.T) {
	a, _ := testAgent(t, nil)
	put(t, a.store, "1700000000000-2-x.swrec.partial", "x")
	if _, err := New(a.cfg); !errors.Is(err, errInUse) || len(a.store.ending(".partial")) != 1 {
		t.Errorf("%v; left: %v", err, a.store.ending(""))
	}
	a.Close()
	must.Get(New(a.cfg))(t).Close()
}

// The time until a session samples is counted at once.
func TestUnrecorded(t *testing.T) { synctest.Test(t, unrecorded) }

func unrecorded(t *testing.T) {
	stop := make(chan struct{})
	var a *Agent
	a, _ = testAgent(t, func(i Interval) (int64, error) {
		expect.Equal(t, time.Duration(a.count.Unrecorded.Load()), 2*time.Second, "time without a recording")
		fill(i)
		return 1, nil
	})
	a.cfg.Sample = func(s Session) error { time.Sleep(2 * time.Second); return sample(s) }
	time.AfterFunc(2*time.Second+3*a.cfg.Interval, func() { close(stop) })
	a.follow(self(t), stop)
	got := time.Duration(a.count.Unrecorded.Load())
	expect.True(t, got == 2*time.Second, "%v without a recording at the end, of 2s", got)
}

func TestBudget(t *testing.T) {
	const minute = looks
	b := newBudget(19, 0.02, 100)
	uses := func(n int, share float64, memory int64) (lines []string) {
		for range n {
			if line := b.look(share, usage{Memory: memory}); line != "" {
				lines = append(lines, line)
			}
		}
		return lines
	}
	begun := func() (n int) {
		for b.begin() {
			n++
		}
		return n
	}
	n := begun()
	expect.True(t, n >= 20 && n <= 50, "%d sessions may begin at first", n)
	if uses(1, 3, 0); b.rate() != 19 || begun() != 0 {
		t.Error("beginning sessions lowers the rate, or more may begin though nothing is left")
	}
	if lines := uses(minute-1, 0.2, 0); len(lines) != 0 || b.rate() != 19 {
		t.Errorf("after less than a minute: rate %g, %q", b.rate(), lines)
	}
	if uses(1, 0.2, 0); b.rate() >= 5 {
		t.Errorf("rate %g after a minute of ten times the budget", b.rate())
	}
	cut := b.cut()
	lines := uses(3*minute, 0.2, 0)
	expect.True(t, len(lines) == 1 && strings.Contains(lines[0], "pauses") && !b.begin() && closed(cut),
		"at the lowest rate: %q", lines)
	if lines := uses(60*minute, 0.001, 0); len(lines) != 1 || b.rate() != 19 || begun() == 0 {
		t.Errorf("rate %g after using little, %q", b.rate(), lines)
	}
	cut = b.cut()
	lines = uses(1, 0.001, 101)
	expect.True(t, len(lines) == 1 && !b.begin() && closed(cut), "memory above the budget: %q", lines)
	lines = uses(1, 0.001, 80)
	expect.True(t, len(lines) == 1 && b.begin(), "the pause does not end: %q", lines)
}

func TestRules(t *testing.T) {
	f := &facts{pid: 7, user: 1000, command: "dotnet shop.dll --port 80", cgroup: "0::/kube/pod1"}
	shop := regexp.MustCompile("shop")
	for _, c := range []struct {
		rules Rules
		want  bool
	}{
		{Rules{User: -1}, false}, {Rules{User: -1, All: true}, true}, {Rules{User: -1, PIDs: []int{7}}, true},
		{Rules{User: -1, PIDs: []int{8}}, false},
		{Rules{User: 1000}, true}, {Rules{User: 0}, false}, {Rules{User: 0, Command: shop}, false},
		{Rules{User: -1, Command: shop}, true},
		{Rules{User: -1, Cgroup: regexp.MustCompile("pod2")}, false},
		{Rules{User: -1, Cgroup: regexp.MustCompile("pod1"), Command: shop}, true},
	} {
		expect.Equal(t, c.rules.match(f), c.want, c.rules)
	}
}

func TestServe(t *testing.T) {
	a, _ := testAgent(t, nil)
	get := func(token, path, authorization string) (int, string) {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost:7019"+path, nil)
		r.Header.Set("Authorization", authorization)
		a.Handler(token).ServeHTTP(w, r)
		body, _ := io.ReadAll(w.Body)
		return w.Code, string(body)
	}
	for _, wrong := range []string{"", "Bearer ", "Bearer secrets", "secret"} {
		code, _ := get("secret", "/metrics", wrong)
		expect.True(t, code == 401, "%q: %d", wrong, code)
	}
	code, _ := get("", "/healthz", "")
	expect.True(t, code == 503, "health before the first look: %d", code)
	a.start(nil, nil)
	code, _ = get("", "/healthz", "")
	expect.True(t, code == 200, "health: %d", code)
	a.count.SpoolDropped.Add(3)
	a.fail(self(t), &Failure{ReasonWrite, errors.New("full")})
	code, text := get("secret", "/metrics", "Bearer secret")
	expect.True(t, code == 200 &&
		strings.Contains(text, "\nseedwalk_agent_failures_total{reason=\"write\"} 1\n") &&
		strings.Contains(text, "\nseedwalk_agent_spool_dropped_total 3\n"), "metrics: %d %s", code, text)
	a.targets[7] = process{pid: 7, name: "<shop>"}
	put(t, a.store, "1700000000000-7-shop.swrec", "no recording")
	if code, text := get("", "/targets", ""); code != 200 ||
		!strings.Contains(text, `<a href="/targets/7">&lt;shop&gt;</a><td>7<td>1<td>`) {
		t.Errorf("targets: %d %s", code, text)
	}
	for path, want := range map[string]int{"/targets/7": 404, "/targets/8": 404, "/targets/x": 404,
		"/targets/7/..%2f": 404, "/x": 404} {
		code, text := get("", path, "")
		expect.True(t, code == want, "%s: %d %s", path, code, text)
	}
	password := "Basic " + base64.StdEncoding.EncodeToString([]byte("anyone:secret"))
	code, _ = get("secret", "/targets", password)
	expect.True(t, code == 200, "a password: %d", code)
	for host, want := range map[string]int{"localhost": 200, "127.0.0.1:7019": 200, "[::1]:7019": 200,
		"shop.example": 403, "shop.example:7019": 403} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/targets", nil)
		r.Host = host
		a.Handler("").ServeHTTP(w, r)
		expect.Equal(t, w.Code, want, "asked as %s", host)
	}
	for addr, want := range map[string]bool{"localhost:1": true, "127.0.0.9:1": true, "[::1]:1": true,
		":1": false, "0.0.0.0:1": false, "10.0.0.1:1": false, "x": false, "": false} {
		expect.True(t, IsLocal(addr) == want, "IsLocal(%q) = %v", addr, !want)
	}
}

// systemd accepts the unit in docs/deploy.
func TestUnit(t *testing.T) {
	needs.Command(t, "systemd-analyze")
	unit, err := os.ReadFile(filepath.Join(needs.Root(t), "docs", "deploy", "seedwalk-agent.service"))
	must.Do(t, err)
	path := filepath.Join(t.TempDir(), "seedwalk-agent.service")
	// The tool is not installed here.
	text := strings.Replace(string(unit), "/usr/bin/seedwalk", "/bin/true", 1)
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", path).CombinedOutput()
	expect.True(t, err == nil && !strings.Contains(string(out), path) &&
		!strings.Contains(string(out), "seedwalk-agent.service:"), "%v: %s", err, out)
}

// The types of Kubernetes accept the manifests in docs/deploy. The agent of a node has the
// capabilities that it needs, and the one beside a program has none.
func TestManifests(t *testing.T) {
	bin, deploy := filepath.Join(t.TempDir(), "manifest"), filepath.Join(needs.Root(t), "docs", "deploy")
	build := exec.Command("go", "build", "-mod=readonly", "-o", bin, ".")
	build.Dir = filepath.Join("testdata", "manifest")
	if out, err := build.CombinedOutput(); strings.Contains(string(out), "dial tcp") ||
		strings.Contains(string(out), "module lookup disabled") {
		t.Skipf("SKIPPED-CHECK: the modules of Kubernetes could not be had: %s", out)
	} else if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	type pod struct {
		HostPID, ShareProcessNamespace bool
		SecurityContext                struct{ RunAsNonRoot bool }
		Containers                     []struct {
			Name            string
			Command         []string
			SecurityContext struct {
				Privileged               bool
				AllowPrivilegeEscalation *bool
				Capabilities             struct{ Add, Drop []string }
			}
		}
	}
	for _, c := range []struct {
		file         string
		host         bool
		capabilities string
	}{
		{"seedwalk-agent.yaml", true, "[SYS_PTRACE DAC_OVERRIDE CHOWN KILL PERFMON]"},
		{"seedwalk-sidecar.yaml", false, "[]"},
	} {
		out, err := exec.Command(bin, filepath.Join(deploy, c.file)).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
			continue
		}
		var p pod
		must.Do(t, json.Unmarshal(out, &p))
		agent := p.Containers[len(p.Containers)-1]
		s := &agent.SecurityContext
		expect.True(t, p.HostPID == c.host && p.ShareProcessNamespace != c.host &&
			p.SecurityContext.RunAsNonRoot != c.host && !s.Privileged && s.AllowPrivilegeEscalation != nil &&
			!*s.AllowPrivilegeEscalation && fmt.Sprint(s.Capabilities.Drop) == "[ALL]" &&
			fmt.Sprint(s.Capabilities.Add) == c.capabilities && len(agent.Command) >= 3 &&
			agent.Command[1] == "agent", "%s: %+v", c.file, p)
	}
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	text := must.Get(os.ReadFile(filepath.Join(deploy, "seedwalk-agent.yaml")))(t)
	must.Do(t, os.WriteFile(broken, []byte(strings.Replace(string(text), "hostPID", "hostPIDs", 1)), 0o600))
	out, err := exec.Command(bin, broken).CombinedOutput()
	expect.True(t, err != nil && strings.Contains(string(out), "hostPIDs"),
		"a field that Kubernetes does not know: %v, %s", err, out)
}
