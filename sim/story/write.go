package story

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/sim/sched"
)

// Write writes the documentation into folder. It removes pictures of scenarios that no longer exist.
func Write(folder string, stories []*Story) error {
	files := Docs(stories)
	if err := os.MkdirAll(filepath.Join(folder, Pictures), 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(folder, Pictures, "*.svg"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if _, wanted := files[Pictures+"/"+filepath.Base(path)]; !wanted {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, filepath.FromSlash(name)),
			[]byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Picture draws the deadlock of a run, or its timeline if it has none (SVG).
func Picture(r *sched.Result) string {
	if r.Graph != nil {
		return r.Graph.SVG()
	}
	short, _ := Trim(r, "")
	return Sequence(short)
}

// Summary returns a line about the result of an exploration.
func Summary(rep *sched.Report) string {
	text := fmt.Sprintf("%s runs, the longest of %d steps: %s", Number(rep.Interleavings+rep.Pruned),
		rep.MaxDepth, counts(rep))
	if rep.Pruned > 0 && rep.Orders.All > 0 { // runs that were cut stand for more than one order
		text = fmt.Sprintf("%s orders of steps, by %s", Number(int(rep.Orders.All)), text)
	}
	if !rep.Exhausted {
		text += ", not every order was tried"
	}
	return strings.TrimRight(text, " ")
}
