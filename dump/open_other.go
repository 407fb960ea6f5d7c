//go:build !unix

package dump

import "os"

// Open reads a core file.
func Open(path string) (*Core, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return New(data)
}
