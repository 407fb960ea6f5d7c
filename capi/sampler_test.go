package main

import (
	"path/filepath"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/golden"
)

// Every mistake of a vendor with the sampler gives an error and a text, the same on Linux and Windows.
func TestSamplerErrors(t *testing.T) {
	for _, p := range platforms {
		if p.goarch != "amd64" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			dir := p.libraries(t)
			exe := filepath.Join(dir, "errors.exe")
			args := []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I.", "-o", exe,
				"testdata/sampler_errors.c", filepath.Join(dir, "libseedwalk.a")}
			do(t, nil, p.cc, append(args, p.with...)...)
			got := p.run(t, exe)
			golden.Check(t, "testdata/sampler_errors.txt", got)
		})
	}
}
