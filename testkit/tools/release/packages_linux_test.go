package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

var packages = flag.Bool("packages", false,
	"build the packages twice, compare, install, and record with each")

// installer installs the package of one kind into an empty root and removes it again. own
// are the folders of the package manager itself.
type installer struct {
	kind            string
	needs           string
	install, remove func(root, file string) []string
	own             []string
}

var installers = []installer{
	{"deb", "dpkg",
		func(root, file string) []string {
			return []string{"dpkg", "--root=" + root, "--force-architecture", "-i", file}
		},
		func(root, _ string) []string { return []string{"dpkg", "--root=" + root, "--purge", "seedwalk"} },
		[]string{"var"}},
	{"rpm", "rpm",
		func(root, file string) []string { return []string{"rpm", "--root", root, "-i", file} },
		func(root, _ string) []string { return []string{"rpm", "--root", root, "-e", "seedwalk"} },
		[]string{"var", "root"}},
	{"apk", "apk",
		func(root, file string) []string {
			return []string{"apk", "--root", root, "--initdb",
				"--allow-untrusted", "--no-network", "add", file}
		},
		func(root, _ string) []string {
			return []string{"apk", "--root", root, "--no-network", "del", "seedwalk"}
		},
		[]string{"etc", "var", "lib", "dev", "proc", "tmp"}},
}

func command(t *testing.T, argv ...string) string {
	t.Helper()
	return must.Run(t, exec.Command(argv[0], argv[1:]...))
}

func TestPackages(t *testing.T) {
	if !*packages {
		t.Skip("SKIPPED-CHECK: the packages take a minute; run make test-release")
	}
	t.Setenv("SEEDWALK_VERSION", "v0.9.0")
	script := filepath.Join(needs.Root(t), "scripts", "release.sh")
	one, two := t.TempDir(), t.TempDir()
	first, second := command(t, script, one), command(t, script, two)
	must.True(t, first == second && strings.Count(first, "\n") == 19,
		"two builds differ or lack files:\n%s\n%s", first, second)
	pid := target(t)
	for _, in := range installers {
		t.Run(in.kind, func(t *testing.T) {
			installed(t, in,
				filepath.Join(one, "seedwalk-0.9.0-linux-amd64."+in.kind), pid)
		})
	}
	t.Run("fresh Debian", func(t *testing.T) {
		freshDebian(t,
			filepath.Join(one, "seedwalk-0.9.0-linux-amd64.deb"))
	})
	t.Run("musl", func(t *testing.T) { freshMusl(t, filepath.Join(one, "seedwalk-0.9.0-linux-amd64.apk")) })
	t.Run("tar.gz", func(t *testing.T) {
		root := t.TempDir()
		command(t, "tar", "-xzf", filepath.Join(one, "seedwalk-0.9.0-linux-amd64.tar.gz"), "-C", root)
		record(t, root, "/seedwalk-0.9.0/seedwalk", pid)
	})
	t.Run("oci", func(t *testing.T) {
		root := t.TempDir()
		image(t, filepath.Join(one, "seedwalk-0.9.0-oci.tar"), root)
		record(t, root, "/usr/bin/seedwalk", pid)
	})
}

// target starts a .NET program that runs until the test ends.
func target(t *testing.T) int {
	cmd := exec.Command(needs.File(t, "out", "bin", "swhost"), needs.Runtime9(t),
		needs.File(t, "out", "samples", "Demo.exe"), "600")
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// manual checks that the package holds manual pages.
func manual(t *testing.T, root string) {
	t.Helper()
	pages, _ := filepath.Glob(filepath.Join(root, "usr/share/man/man1/seedwalk*.1.gz"))
	expect.True(t, len(pages) >= 18, "%d manual pages", len(pages))
}

// installed installs a package, records with it, and removes it. Without the package
// manager the package is only unpacked.
func installed(t *testing.T, in installer, file string, pid int) {
	root := t.TempDir()
	if _, err := exec.LookPath(in.needs); err != nil {
		if in.kind != "apk" {
			t.Skipf("SKIPPED-CHECK: no %s: the package is not installed", in.needs)
		}
		t.Logf("SKIPPED-CHECK: no %s: the package is unpacked, not installed", in.needs)
		command(t, "tar", "--warning=no-unknown-keyword", "-xzf", file, "-C", root)
		manual(t, root)
		record(t, root, "/usr/bin/seedwalk", pid)
		return
	}
	if in.kind == "deb" { // dpkg wants its database
		must.Do(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg/info"), 0o755))
		for _, name := range []string{"updates", "triggers"} {
			must.Do(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg", name), 0o755))
		}
		must.Do(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o600))
	}
	command(t, in.install(root, file)...)
	manual(t, root)
	if in.kind != "apk" { // Alpine has no systemd
		_, err := os.Stat(filepath.Join(root, "usr/lib/systemd/system/seedwalk-agent.service"))
		must.Do(t, err)
	}
	record(t, root, "/usr/bin/seedwalk", pid)
	command(t, in.remove(root, file)...)
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		for _, own := range in.own {
			if name == own {
				return filepath.SkipDir
			}
		}
		expect.True(t, err == nil && e.IsDir() && !strings.Contains(name, "seedwalk"),
			"left behind: %s %v", name, err)
		return nil
	})
}

// record records the target with the tool of a root in which nothing else is.
func record(t *testing.T, root, tool string, pid int) {
	t.Helper()
	proc, out := filepath.Join(root, "proc"), filepath.Join(root, "tmp")
	_ = os.MkdirAll(proc, 0o755)
	_ = os.MkdirAll(out, 0o1777)
	script := `mount --rbind /proc "$1/proc" && exec chroot "$1" "$2" record --pid "$3" --duration 2s --output /tmp/a.swrec,/tmp/a.json`
	version := command(t, filepath.Join(root, tool), "version")
	expect.True(t, strings.HasPrefix(version, "seedwalk 0.9.0 ("), "version of a tagged build: %s", version)
	text := command(t, "unshare", "-m", "sh", "-c", script, "sh", root, tool, strconv.Itoa(pid))
	data, err := os.ReadFile(filepath.Join(out, "a.json"))
	expect.True(t, err == nil && bytes.Contains(data, []byte("Demo.")),
		"no method of the program in the recording: %v\n%s", err, text)
	_ = os.RemoveAll(out)
	_ = os.Remove(proc)
}

// image unpacks the layer of the image for amd64.
func image(t *testing.T, file, root string) {
	data := must.Get(os.ReadFile(file))(t)
	for name, blob := range unpacked(t, bytes.NewReader(data)) {
		if z, err := gzip.NewReader(bytes.NewReader(blob)); err == nil {
			program := unpacked(t, z)["usr/bin/seedwalk"]
			if len(program) < 20 || program[18] != 62 { // EM_X86_64
				continue
			}
			must.Do(t, os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755))
			must.Equal(t, os.WriteFile(filepath.Join(root, "usr/bin/seedwalk"), program, 0o755), nil, name)
		}
	}
}

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
	for _, command := range []string{install,
		fmt.Sprintf("seedwalk record --pid %d --duration 5s -o /tmp/a.html", program.Process.Pid)} {
		cmd := in(command)
		cmd.Env = []string{"PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"}
		must.Run(t, cmd)
	}
	t.Logf("a flame graph after %.1f s", time.Since(began).Seconds())
	page, err := os.ReadFile(filepath.Join(root, "tmp", "a.html"))
	expect.True(t, err == nil && bytes.Contains(page, []byte(method)),
		"the page does not show %s: %d bytes, %v", method, len(page), err)
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
	command(t, "cp", needs.File(t, "out", "bin", "swhost"), needs.File(t, "out", "samples", "Demo.exe"),
		needs.File(t, "out", "samples", "libdemo.so"), deb, app)
	fresh(t, root, "dpkg -i /app/"+filepath.Base(deb), "/app/swhost /app/runtime /app/Demo.exe 300", "Demo.")
}

// freshMusl is a root with nothing but musl, a shell, and a program for musl in /app. There is no
// package manager of Alpine here, so the package is unpacked.
func freshMusl(t *testing.T, apk string) {
	const loader = "/lib/ld-musl-x86_64.so.1"
	if _, err := os.Stat(loader); err != nil {
		t.Skip("SKIPPED-CHECK: no musl")
	}
	shell := needs.Command(t, "busybox")
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
	command(t, "cp", needs.File(t, "out", "samples", "TruthMusl"),
		needs.File(t, "out", "samples", "libtruth.so"), apk, filepath.Join(root, "app"))
	fresh(t, root, "tar -xzf /app/"+filepath.Base(apk),
		"LD_LIBRARY_PATH=/app/musl /app/TruthMusl 300", "Truth.")
}
