package record

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

func init() {
	otherTargets["daemonizing"] = func() int { return leave("orphan") }
	otherTargets["leaving a sleeper"] = func() int { return leave("sleeper") }
	otherTargets["leaving a helper"] = func() int {
		send(greet, samples(3), func(w *wire.Writer) { w.Bye("exit") })
		return leave("helper")
	}
	otherTargets["in another root"] = inAnotherRoot
	otherTargets["orphan"] = orphan
	otherTargets["helper"] = helper
	otherTargets["sleeper"] = sleeper
}

// leave starts a child, waits for its first line, and ends.
func leave(what string) int {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), envTarget+"="+what, envParent+"="+fmt.Sprint(os.Getpid()))
	out, err := child.StdoutPipe()
	if err != nil || child.Start() != nil {
		return 96
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	fmt.Print(line)
	return 0
}

// envParent is the process whose end a child waits for.
const envParent = "SEEDWALK_TEST_PARENT"

// envFollowed is a file that exists once the tool follows the process.
const envFollowed = "SEEDWALK_TEST_FOLLOWED"

func awaitParent() {
	for fmt.Sprint(os.Getppid()) == os.Getenv(envParent) {
		time.Sleep(time.Millisecond)
	}
}

// orphan connects when its parent has ended, and ends when the tool follows it.
func orphan() int {
	fmt.Println(os.Getpid())
	awaitParent()
	c := send(greet, samples(10))
	awaitFile(os.Getenv(envFollowed))
	w := wire.NewWriter(nil)
	w.Bye("exit")
	c.Write(w.Bytes())
	return 0
}

// awaitFile waits for a file, but not for ever: the test may have failed.
func awaitFile(path string) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
}

// helper has connected when its parent ends, and runs until the tool closes the connection.
func helper() int {
	c := send(greet, samples(7))
	fmt.Println(os.Getpid())
	io.Copy(io.Discard, c)
	return 0
}

// sleeper never connects. It ends with the tests at the latest.
func sleeper() int {
	fmt.Println(os.Getpid())
	time.Sleep(time.Minute)
	return 0
}

// A process that the command leaves running is recorded until it ends, even if it connects after the command
// has ended.
func TestFollowsWhatTheCommandLeaves(t *testing.T) {
	leftWait = time.Minute
	defer func() { leftWait = 3 * time.Second }()
	opt, said := fakeRun(t, "daemonizing")
	opt.FailEmpty = true
	followed := filepath.Join(tempdir.New(t), "followed")
	opt.Env = append(opt.Env, envFollowed+"="+followed)
	opt.Say = func(line string) {
		if said.say(line); strings.HasPrefix(line, "the command has ended; ") {
			os.WriteFile(followed, nil, 0o600)
		}
	}
	res := mustRun(t, opt)
	if got := content(t, opt.Outputs[0].Path); res.ExitCode != 0 || !strings.Contains(got, "x10") {
		t.Errorf("exit code %d, %s, said %q", res.ExitCode, got, said)
	}
	notes := strings.Join(res.Profile.Stats.Notes, "\n")
	want := fmt.Sprintf("1 process that the command left running was recorded until it ended: process %d",
		res.PIDs[0])
	expect.True(t, strings.Contains(notes, want), "notes %q, want %q", notes, want)
}

// If the command itself is recorded, the processes that it leaves are helpers: they are named.
func TestNamesHelpersOfTheCommand(t *testing.T) {
	opt, said := fakeRun(t, "leaving a helper")
	res := mustRun(t, opt)
	got := content(t, opt.Outputs[0].Path)
	expect.True(t, res.ExitCode == 0 && strings.Contains(got, "x3") && strings.Contains(got, "x7") &&
		said.String() == "", "exit code %d, %s, said %q", res.ExitCode, got, said)
	notes := strings.Join(res.Profile.Stats.Notes, "\n")
	want := fmt.Sprintf("recorded until the recording ended: process %d", res.PIDs[1])
	expect.True(t, strings.Contains(notes, want), "notes %q, want %q", notes, want)
}

// A process that loads no runtime does not delay the tool, and is named.
func TestNamesWhatLoadsNoRuntime(t *testing.T) {
	leftWait = 0
	defer func() { leftWait = 3 * time.Second }()
	other := exec.Command("cat") // a young process without an environment is not the command's
	other.Env = []string{}
	if in, err := other.StdinPipe(); err != nil || other.Start() != nil {
		t.Fatal(err)
	} else {
		defer other.Wait()
		defer in.Close()
	}
	opt, said := fakeRun(t, "leaving a sleeper")
	out, w, err := os.Pipe()
	must.Do(t, err)
	defer out.Close()
	opt.Stdout = w
	res := mustRun(t, opt)
	w.Close()
	var pid int
	fmt.Fscan(out, &pid)
	defer syscall.Kill(pid, syscall.SIGKILL)
	if want := fmt.Sprintf("no samples: no .NET runtime loaded seedwalk's library; the command ended and left process %d", pid); res.ExitCode != 0 || !strings.HasPrefix(said.String(), want) {
		t.Errorf("exit code %d, said %q, want %q", res.ExitCode, said, want)
	}
}

// An INT ends a recording that continues only for processes that the command left.
func TestInterruptEndsFollowing(t *testing.T) {
	opt, _ := fakeRun(t, "leaving a sleeper")
	leftWait = time.Hour
	defer func() { leftWait = 3 * time.Second }()
	out, w, err := os.Pipe()
	must.Do(t, err)
	defer out.Close()
	opt.Stdout, opt.Grace = w, time.Hour
	done := make(chan *options.Result, 1)
	go func() { done <- mustRun(t, opt) }()
	var pid int
	fmt.Fscan(out, &pid)
	defer syscall.Kill(pid, syscall.SIGKILL)
	for parent := true; parent; time.Sleep(time.Millisecond) { // once it is reaped, the command has ended
		env, _ := environOf(pid)
		_, after, _ := strings.Cut(string(env), envParent+"=")
		before, _, _ := strings.Cut(after, "\x00")
		_, err := os.Stat("/proc/" + before)
		parent = err == nil
	}
	syscall.Kill(os.Getpid(), syscall.SIGINT) // once: a second one would end the tool anyway
	res := <-done
	expect.True(t, res.ExitCode == 0, "exit code %d", res.ExitCode)
}

// inAnotherRoot changes its root folder to its working directory, as chroot does.
func inAnotherRoot() int {
	if err := syscall.Chroot("."); err != nil {
		return 96
	}
	time.Sleep(time.Second)
	return 0
}

// A command in another root folder does not see the library. The tool says so, and what to do.
func TestNamesWhatCannotBeReached(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED-CHECK: chroot needs root")
	}
	root := tempdir.New(t)
	t.Chdir(root)
	opt, said := fakeRun(t, "in another root")
	res := mustRun(t, opt)
	for _, want := range []string{"no samples: no .NET runtime loaded seedwalk's library; process ",
		" has the root folder " + root + " and does not see " + opt.Profiler + " there: run seedwalk in",
		"chroot " + root + " seedwalk record", "seedwalk record --pid "} {
		expect.True(t, res.ExitCode == 0 && strings.Contains(said.String(), want),
			"exit code %d, said %q, want %q", res.ExitCode, said, want)
	}
}

// A process may see the library and not the socket, or neither.
func TestUnreached(t *testing.T) {
	dir := tempdir.New(t)
	socket := filepath.Join(dir, "socket")
	library := must.Get(os.Executable())(t)
	expect.Equal(t, unreached(os.Getpid(), library, dir), "", "all files are there")
	got := unreached(os.Getpid(), library, socket)
	want := " has other mounts and does not see " + socket + " there: run seedwalk in there, or record"
	expect.True(t, strings.Contains(got, want), "%q, want %q", got, want)
	expect.Equal(t, unreached(1<<22-1, library, socket), "", "no process")
}
