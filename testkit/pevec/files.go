package pevec

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/seedwalk/seedwalk/testkit/moduleroot"
	"github.com/seedwalk/seedwalk/testkit/snap"
)

// ErrAbsent is returned by Each if a file of vectors is not on this machine.
var ErrAbsent = errors.New("pevec: the vectors are not on this machine")

// maxLine bounds one line, bytes.
const maxLine = 64 << 20

// Each calls f for every vector of a file ("amd64-native.jsonl.gz"): the copy in testkit/testdata/pe, else
// the one in the vectors' folder. It returns their number.
func Each(file string, f func(*Vector) error) (int, error) {
	in, err := open(file)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	z, err := gzip.NewReader(in)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return Lines(z, f)
}

// Lines calls f for every vector of r.
func Lines(r io.Reader, f func(*Vector) error) (n int, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		v, err := Parse(s.Bytes())
		if err != nil {
			return n, fmt.Errorf("line %d: %w", n+1, err)
		}
		n++
		if err := f(v); err != nil {
			return n, err
		}
	}
	return n, s.Err()
}

func open(file string) (*os.File, error) {
	if root, err := moduleroot.Find(); err == nil {
		if f, err := os.Open(filepath.Join(root, "testkit", "testdata", "pe", file)); err == nil {
			return f, nil
		}
	}
	dir, err := snap.Vectors()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrAbsent, file)
	}
	f, err := os.Open(filepath.Join(dir, "pe", file))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrAbsent, file)
	}
	return f, err
}
