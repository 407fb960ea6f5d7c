package peer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/unwind"
)

// ErrAbsent means that a peer or a C compiler is not on this machine.
var ErrAbsent = errors.New("peer: no C compiler or no headers of libunwind or libdw (scripts/deps.sh installs them)")

// Frame is one frame of ours or of the peer.
type Frame struct {
	IP, SP uint64
	Found  bool         // the peer's: unwind data was found to leave it
	Trust  unwind.Trust // ours
}

// Source returns the path of bench/FOLDER/NAME. It searches from the working directory upward.
func Source(folder, name string) (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		path := filepath.Join(dir, "bench", folder, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if up := filepath.Dir(dir); up != dir {
			dir = up
			continue
		}
		return "", fmt.Errorf("peer: no bench/%s/%s above the working directory", folder, name)
	}
	return "", err
}

// Build compiles bench/FOLDER/NAME.c into dir and returns the program. It returns ErrAbsent if the compiler
// or the library is missing.
func Build(dir, folder, name string, libs ...string) (string, error) {
	src, err := Source(folder, name+".c")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, name)
	args := append([]string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", out, src}, libs...)
	b, err := exec.Command("gcc", args...).CombinedOutput()
	switch {
	case errors.Is(err, exec.ErrNotFound), strings.Contains(string(b), ".h: No such file"):
		return "", ErrAbsent
	case err != nil:
		return "", fmt.Errorf("peer: compiling %s.c: %w\n%s", name, err, b)
	}
	return out, nil
}

// BuildPeer compiles the libunwind peer.
func BuildPeer(dir string) (string, error) {
	return Build(dir, "libunwind", "peer", "-lunwind-x86_64", "-lunwind")
}

// Run returns the peer's frames of each walk of the file at path.
func Run(program, path string) ([][]Frame, error) {
	cmd := exec.Command(program, path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	walks, err := parse(out)
	return walks, errors.Join(err, cmd.Wait())
}

func parse(r io.Reader) (walks [][]Frame, err error) {
	s := bufio.NewScanner(r)
	for s.Scan() {
		if strings.HasPrefix(s.Text(), "walk ") {
			walks = append(walks, nil)
			continue
		}
		var f Frame
		var found int
		if _, err := fmt.Sscanf(s.Text(), "%x %x %d", &f.IP, &f.SP, &found); err != nil || len(walks) == 0 {
			return nil, fmt.Errorf("peer: cannot read its line %q", s.Text())
		}
		f.Found = found != 0
		walks[len(walks)-1] = append(walks[len(walks)-1], f)
	}
	return walks, s.Err()
}

// Timer is a running peer that times rounds on demand.
type Timer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// StartTimer starts the peer over the file at path.
func StartTimer(program, path string) (*Timer, error) { return startTimer(program, "--bench", path) }

// StartLive starts a program that walks its own stack.
func StartLive(program string, args ...string) (*Timer, error) { return startTimer(program, args...) }

func startTimer(program string, args ...string) (*Timer, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &Timer{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

// Mode is what the rule cache holds when a round, one walk of all stacks, begins.
type Mode string

const (
	Warm Mode = "warm" // everything
	Cold Mode = "cold" // nothing; emptying it is not timed
	Off  Mode = "off"  // nothing, ever: each frame is a miss
)

// letters are the modes in the peer's protocol.
var letters = map[Mode]string{Warm: "w", Cold: "c", Off: "n"}

// Round walks all stacks n times. It returns the nanoseconds and the frames of these n rounds together.
func (t *Timer) Round(m Mode, n int) (ns, frames uint64, err error) { return t.Ask(letters[m], n) }

// Ask is Round with a mode as the program spells it.
func (t *Timer) Ask(what string, n int) (ns, frames uint64, err error) {
	if _, err = fmt.Fprintf(t.in, "%s %d\n", what, n); err == nil {
		_, err = fmt.Fscan(t.out, &ns, &frames)
	}
	return ns, frames, err
}

// Close ends the peer.
func (t *Timer) Close() error {
	return errors.Join(t.in.Close(), t.cmd.Wait())
}
