//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/seedwalk/seedwalk/symbol"
)

// checkNames looks at whether functions of the runtime will have names: the images that
// Microsoft ships have none, and a debug file beside them does.
func checkNames(p *patient) finding {
	const name = "names"
	var images []string
	if len(p.command) > 0 {
		if path, err := exec.LookPath(p.command[0]); err == nil {
			images = append(images, path)
		}
	}
	for _, r := range findRuntimes() {
		images = append(images, r.Path)
	}
	for _, path := range images {
		if file := missingDebugFile(path); file != "" {
			return finding{name, note, fmt.Sprintf("%s has no names of its own: its frames will read %s+0x...", path, filepath.Base(path)),
				fmt.Sprintf("put %s into %s (dotnet-symbol fetches it)", file, filepath.Dir(path))}
		}
	}
	return finding{}
}

// missingDebugFile is the name of the debug file that an image asks for, "" if it asks
// for none or has it beside it.
func missingDebugFile(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	file := symbol.NewResolver().DebugFile(path, "")
	if file == "" {
		return ""
	}
	for _, dir := range []string{"", ".debug"} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), dir, file)); err == nil {
			return ""
		}
	}
	return file
}
