package peer

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
)

// FramehopFolders are the builds of framehop that scripts/framehop.sh made: each holds
// libframehop.rlib and deps/, and its name is the peer's. One has a larger rule cache.
func FramehopFolders() []string {
	src, err := Source("framehop", "main.rs")
	if err != nil {
		return nil
	}
	libs, _ := filepath.Glob(filepath.Join(filepath.Dir(src), "..", "..", ".cache", "framehop", "*", rlib))
	for i := range libs {
		libs[i] = filepath.Dir(libs[i])
	}
	return libs
}

const rlib = "libframehop.rlib"

// BuildFramehop compiles bench/framehop/main.rs into dir against the build in folder.
func BuildFramehop(dir, folder string) (string, error) {
	src, err := Source("framehop", "main.rs")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, filepath.Base(folder))
	b, err := exec.Command("rustc", "--edition", "2021", "-C", "opt-level=3", "-C", "panic=abort", "--extern",
		"framehop="+filepath.Join(folder, rlib),
		"-L", filepath.Join(folder, "deps"), "-o", out, src).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("peer: framehop is built, but there is no rustc: %w", err)
	}
	if err != nil {
		return "", fmt.Errorf("peer: compiling %s: %w\n%s", src, err, b)
	}
	return out, nil
}
