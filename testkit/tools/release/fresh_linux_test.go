package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// fresh installs a package into a root where a .NET program runs, as a user does: the first
// command installs, the second one writes a flame graph. Both run in the root.
func fresh(t *testing.T, root, install, start, method string) {
	t.Helper()
	for _, dir := range []string{"proc", "dev", "tmp"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	// The program is the last in the list of processes of the root.
	const setUp = `mount --rbind /proc "$1/proc" && mount --bind /dev "$1/dev" && exec chroot "$1" /bin/sh -c "$2"`
	in := func(script string) *exec.Cmd {
		return exec.Command("unshare", "-m", "sh", "-c", setUp, "sh", root, script)
	}
	program := in("exec env PATH=/usr/bin:/bin DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 " + start)
	program.Env = []string{"PATH=" + os.Getenv("PATH")}
	must.Do(t, program.Start())
	t.Cleanup(func() {
		program.Process.Kill()
		program.Wait()
	})
	time.Sleep(2 * time.Second) // it starts
	began := time.Now()
	for _, command := range []string{install, fmt.Sprintf("seedwalk record --pid %d --duration 5s -o /tmp/a.html", program.Process.Pid)} {
		cmd := in(command)
		cmd.Env = []string{"PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"}
		must.Run(t, cmd)
	}
	t.Logf("a flame graph after %.1f s", time.Since(began).Seconds())
	page, err := os.ReadFile(filepath.Join(root, "tmp", "a.html"))
	if err != nil || !bytes.Contains(page, []byte(method)) {
		t.Errorf("the page does not show %s: %d bytes, %v", method, len(page), err)
	}
}

// freshDebian is a Debian in which nothing has been installed, and a runtime and a program in /app.
func freshDebian(t *testing.T, deb string) {
	out, err := exec.Command(filepath.Join(needs.Root(t), "scripts", "debian-root.sh")).Output()
	if err != nil {
		t.Skip("SKIPPED-CHECK: no debootstrap or no mirror: the package is not installed in a fresh Debian")
	}
	root := t.TempDir()
	command(t, "tar", "-xf", strings.TrimSpace(string(out)), "-C", root)
	app := filepath.Join(root, "app")
	must.Do(t, os.Mkdir(app, 0o755))
	command(t, "cp", "-rL", needs.Runtime9(t), filepath.Join(app, "runtime"))
	command(t, "cp", needs.File(t, "out", "bin", "swhost"), needs.File(t, "out", "samples", "Demo.exe"), needs.File(t, "out", "samples", "libdemo.so"), deb, app)
	fresh(t, root, "dpkg -i /app/"+filepath.Base(deb), "/app/swhost /app/runtime /app/Demo.exe 300", "Demo.")
}

// freshMusl is a root with nothing but musl, a shell, and a program for musl in /app. There is no
// package manager of Alpine here, so the package is unpacked.
func freshMusl(t *testing.T, apk string) {
	const loader = "/lib/ld-musl-x86_64.so.1"
	if _, err := os.Stat(loader); err != nil {
		t.Skip("SKIPPED-CHECK: no musl")
	}
	shell, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("SKIPPED-CHECK: no busybox, which is the shell of the root")
	}
	root := t.TempDir()
	for _, dir := range []string{"lib", "bin", "usr/bin", "app"} {
		must.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	command(t, "cp", "-L", loader, filepath.Join(root, "lib"))
	command(t, "cp", "-L", shell, filepath.Join(root, "bin", "busybox"))
	for _, name := range []string{"sh", "env", "tar", "gzip"} {
		must.Do(t, os.Symlink("busybox", filepath.Join(root, "bin", name)))
	}
	command(t, "cp", "-r", needs.File(t, "out", "samples", "musl"), filepath.Join(root, "app"))
	command(t, "cp", needs.File(t, "out", "samples", "TruthMusl"), needs.File(t, "out", "samples", "libtruth.so"), apk, filepath.Join(root, "app"))
	fresh(t, root, "tar -xzf /app/"+filepath.Base(apk), "LD_LIBRARY_PATH=/app/musl /app/TruthMusl 300", "Truth.")
}
