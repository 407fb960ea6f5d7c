// Package moduleroot finds the folder that holds the whole source, from wherever in it a
// test or a tool runs.
package moduleroot

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrNone means that the working directory is in no module.
var ErrNone = errors.New("the working directory is in no module")

// Find returns the folder of the go.mod at or above the working directory.
func Find() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", ErrNone
		}
		dir = up
	}
}
