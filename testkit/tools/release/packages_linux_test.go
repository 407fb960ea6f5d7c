package main

import (
	"bytes"
	"compress/gzip"

	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

var packages = flag.Bool("packages", false, "build the packages twice, compare, install, and record with each")

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
			return []string{"apk", "--root", root, "--initdb", "--allow-untrusted", "--no-network", "add", file}
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
	if first != second || strings.Count(first, "\n") != 19 {
		t.Fatalf("two builds differ or lack files:\n%s\n%s", first, second)
	}
	pid := target(t)
	for _, in := range installers {
		t.Run(in.kind, func(t *testing.T) { installed(t, in, filepath.Join(one, "seedwalk-0.9.0-linux-amd64."+in.kind), pid) })
	}
	t.Run("fresh Debian", func(t *testing.T) { freshDebian(t, filepath.Join(one, "seedwalk-0.9.0-linux-amd64.deb")) })
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
	cmd := exec.Command(needs.File(t, "out", "bin", "swhost"), needs.Runtime9(t), needs.File(t, "out", "samples", "Demo.exe"), "600")
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
	if len(pages) < 18 {
		t.Errorf("%d manual pages", len(pages))
	}
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
	record(t, root, "/usr/bin/seedwalk", pid)
	command(t, in.remove(root, file)...)
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		for _, own := range in.own {
			if name == own {
				return filepath.SkipDir
			}
		}
		if err != nil || !e.IsDir() || strings.Contains(name, "seedwalk") {
			t.Errorf("left behind: %s %v", name, err)
		}
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
	if version := command(t, filepath.Join(root, tool), "version"); !strings.HasPrefix(version, "seedwalk 0.9.0 (") {
		t.Errorf("version of a tagged build: %s", version)
	}
	text := command(t, "unshare", "-m", "sh", "-c", script, "sh", root, tool, strconv.Itoa(pid))
	data, err := os.ReadFile(filepath.Join(out, "a.json"))
	if err != nil || !bytes.Contains(data, []byte("Demo.")) {
		t.Errorf("no method of the program in the recording: %v\n%s", err, text)
	}
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
			if err := os.WriteFile(filepath.Join(root, "usr/bin/seedwalk"), program, 0o755); err != nil {
				t.Fatal(name, err)
			}
		}
	}
}
