package live

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/tempdir"
)

// Processes come and go, each with its own copy of a program, as in containers. Their images are mapped
// while a Loader or its background work uses them, and not after that.
func TestImagesAreReleased(t *testing.T) {
	const processes = 20
	dir := tempdir.New(t)
	program := must.Get(os.ReadFile(must.Get(exec.LookPath("sleep"))(t)))(t)
	for i := range processes {
		visit(t, filepath.Join(dir, fmt.Sprint(i)), program)
	}
	must.Unmap(t, dir, 0)
}

// visit reads the images of a process that runs its own copy of a program.
func visit(t *testing.T, path string, program []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(path, program, 0o700))
	cmd := exec.Command(path, "100")
	must.Do(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	pid := cmd.Process.Pid
	own := func() []Mapping {
		all, _ := Maps(pid)
		var out []Mapping
		for _, m := range all {
			if m.Path == path && m.Exec {
				out = append(out, m)
			}
		}
		return out
	}
	for end := time.Now().Add(time.Minute); len(own()) == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // until exec
	}
	l := NewLoader(pid)
	table := l.Table(own())
	must.True(t, table.Len() > 0 && table.At(0).ELF != nil, "%s: %d modules", path, table.Len())
	runtime.GC()
	runtime.GC()
	image := OpenImage(pid, path, "")
	must.True(t, image != nil && image.BuildID() == table.At(0).BuildID, "%s: another image", path)
	expect.Equal(t, must.Mappings(t, path), 1, "mappings of an image in use")
	runtime.KeepAlive(l)
}
