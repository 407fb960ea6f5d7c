package main

import (
	goflag "flag"
	"os"
	"path/filepath"
	"testing"
)

var update = goflag.Bool("update", false, "write the golden files anew")

// Every mistake of a vendor with the sampler gives an error and a text, the same on Linux and Windows.
func TestSamplerErrors(t *testing.T) {
	const golden = "testdata/sampler_errors.txt"
	for _, p := range platforms {
		if p.goarch != "amd64" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			dir := p.libraries(t)
			exe := filepath.Join(dir, "errors.exe")
			args := []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I.", "-o", exe, "testdata/sampler_errors.c", filepath.Join(dir, "libseedwalk.a")}
			do(t, nil, p.cc, append(args, p.with...)...)
			got := p.run(t, exe)
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}
