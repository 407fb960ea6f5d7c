package oracle

import (
	"bytes"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/snap"
)

// wanted are the files of the host, in the folders where systems have them, and
// those of an AArch64 cross compiler.
var (
	folders = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/bin"}
	wanted  = []string{"libc.so.6", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2", "libcrypto.so.3", "python3.11"}

	crossFolders = []string{"/usr/aarch64-linux-gnu/lib"}
	crossWanted  = []string{"libasan.so.8"}
)

// realFiles lists the files to compare, each content once.
func realFiles(t *testing.T) []string {
	t.Helper()
	files := append(find(t, folders, wanted), find(t, crossFolders, crossWanted)...)
	files = append(files, runtimeFiles(t)...)
	files = append(files, vectorFiles(t)...)
	seen := map[[32]byte]bool{}
	var out []string
	for _, path := range files {
		data := must.Get(os.ReadFile(path))(t)
		if h := sha256.Sum256(data); !seen[h] {
			seen[h] = true
			out = append(out, path)
		}
	}
	return out
}

func find(t *testing.T, folders, names []string) (files []string) {
	t.Helper()
	for _, name := range names {
		path := ""
		for _, dir := range folders {
			if p := filepath.Join(dir, name); path == "" && exists(p) {
				path = p
			}
		}
		if path == "" {
			t.Logf("SKIPPED-CHECK: %s is not on this host", name)
			continue
		}
		files = append(files, path)
	}
	return files
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// runtimeFiles are those of the .NET runtime that the tests run on.
func runtimeFiles(t *testing.T) []string {
	t.Helper()
	const root = "../.."
	out, err := exec.Command(filepath.Join(root, "scripts", "runtime-dir.sh")).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil {
		t.Log("SKIPPED-CHECK: no .NET runtime: its libraries are not compared")
		return nil
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	return find(t, []string{dir}, []string{"libcoreclr.so", "libclrjit.so"})
}

// vectorFiles writes the ELF files of the vectors into a folder of the test.
func vectorFiles(t *testing.T) (files []string) {
	t.Helper()
	var names []string
	a, err := snap.OpenVectors(func(name string) bool {
		is := strings.HasPrefix(name, "files/") || strings.HasSuffix(name, ".full.elf")
		if is {
			names = append(names, name)
		}
		return is
	})
	if err != nil {
		t.Log("SKIPPED-CHECK: the elf vectors are not here")
		return nil
	}
	dir := t.TempDir()
	for _, name := range names {
		data, _ := a.File(name)
		if !bytes.HasPrefix(data, []byte("\x7fELF")) {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, data, 0o644))
		files = append(files, path)
	}
	return files
}
