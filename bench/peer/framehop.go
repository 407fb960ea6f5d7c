package peer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// FramehopFolders are builds of framehop, as SEEDWALK_FRAMEHOP lists them (with the
// separator of PATH): each holds libframehop.rlib and deps/, as target/release does after
// cargo build --release in a checkout of framehop. Several are as many peers: one of them
// may have a larger rule cache, which only its source can give it. A folder's name is the
// peer's, so it begins with framehop.
func FramehopFolders() []string { return filepath.SplitList(os.Getenv("SEEDWALK_FRAMEHOP")) }

// BuildFramehop compiles bench/framehop/main.rs into dir against the build in folder.
func BuildFramehop(dir, folder string) (string, error) {
	src, err := Source("framehop", "main.rs")
	if err != nil {
		return "", err
	}
	lib := filepath.Join(folder, "libframehop.rlib")
	if _, err := os.Stat(lib); err != nil {
		return "", fmt.Errorf("peer: SEEDWALK_FRAMEHOP: %w (target/release of a checkout, after cargo build --release)", err)
	}
	out := filepath.Join(dir, filepath.Base(folder))
	b, err := exec.Command("rustc", "--edition", "2021", "-C", "opt-level=3", "-C", "panic=abort", "--extern", "framehop="+lib,
		"-L", filepath.Join(folder, "deps"), "-o", out, src).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("peer: SEEDWALK_FRAMEHOP is set, but there is no rustc: %w", err)
	}
	if err != nil {
		return "", fmt.Errorf("peer: compiling %s: %w\n%s", src, err, b)
	}
	return out, nil
}
