package replay

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/testkit/judge"
	"github.com/seedwalk/seedwalk/testkit/snap"
)

// Bounds of what is read from one file, bytes.
const (
	maxLine  = 64 << 20
	maxInput = 1 << 30
)

// Path replays a file, or every vector below a folder. The error is not nil
// only if nothing of that name can be read; what is wrong with single files is
// in the Report.
func (r *Runner) Path(name string) error {
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return filepath.WalkDir(name, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				r.failed(p, err)
				return nil
			}
			if d.Type().IsRegular() {
				r.path(p, false)
			}
			return nil
		})
	}
	r.path(name, true)
	return nil
}

// path replays one file; asked says that the user named it.
func (r *Runner) path(name string, asked bool) {
	err := r.open(name)
	switch {
	case errors.Is(err, judge.ErrFormat) && !asked:
	case err != nil:
		r.failed(name, err)
	}
}

func (r *Runner) open(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := unzip(f)
	if err != nil {
		return err
	}
	if head, _ := in.Peek(512); len(head) == 512 && string(head[257:262]) == "ustar" {
		return r.archive(name, in)
	}
	return r.content(name, in, &besides{dir: filepath.Dir(name)})
}

// unzip expands gzip where the content is that.
func unzip(f io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(f, 1<<16)
	if head, _ := in.Peek(2); len(head) < 2 || head[0] != 0x1f || head[1] != 0x8b {
		return bufio.NewReaderSize(io.LimitReader(in, maxInput), 1<<16), nil
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(io.LimitReader(z, maxInput), 1<<16), nil
}

// besides finds the files that belong to one: on disk or in an archive.
type besides struct {
	dir  string            // folder of the file
	tar  map[string][]byte // nil on disk
	file string            // the archive, or ""
}

// read reads a file by a path relative to the file's own folder.
func (b *besides) read(rel string) ([]byte, error) {
	p := filepath.Join(b.dir, filepath.FromSlash(rel))
	if b.tar == nil {
		return os.ReadFile(p)
	}
	if data, ok := b.tar[filepath.ToSlash(p)]; ok {
		return data, nil
	}
	return nil, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
}

// archive replays what a tar holds.
func (r *Runner) archive(name string, in io.Reader) error {
	files := map[string][]byte{}
	var order []string
	for t := tar.NewReader(in); ; {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(t, maxInput))
		if err != nil {
			return err
		}
		p := filepath.ToSlash(filepath.Clean(h.Name))
		files[p] = data
		order = append(order, p)
	}
	for _, p := range order {
		b := &besides{dir: filepath.Dir(p), tar: files, file: name}
		err := r.content(name+":"+p, bufio.NewReaderSize(bytes.NewReader(files[p]), 1<<16), b)
		if err != nil && !errors.Is(err, judge.ErrFormat) {
			r.failed(name+":"+p, err)
		}
	}
	return nil
}

// probe holds the fields that tell the schemas apart.
type probe struct {
	Schema   string          `json:"schema"`
	Kind     string          `json:"kind"`
	Arch     string          `json:"arch"`
	B        string          `json:"b"`
	PC       json.RawMessage `json:"pc"`
	RowStart json.RawMessage `json:"row_start"`
	Waits    json.RawMessage `json:"waits"`
	Baseline json.RawMessage `json:"baseline"`
	Types    json.RawMessage `json:"types"`
}

// content replays what in holds, whatever the file is called.
func (r *Runner) content(name string, in *bufio.Reader, b *besides) error {
	head, _ := in.Peek(16)
	if strings.HasPrefix(string(head), "Nettrace") {
		r.skip(name, "an EventPipe trace: not handled by replay")
		return nil
	}
	if len(bytes.TrimLeft(head, " \t\r\n")) == 0 || bytes.TrimLeft(head, " \t\r\n")[0] != '{' {
		return judge.ErrFormat
	}
	first, err := line(in)
	if err != nil {
		return err
	}
	var p probe
	if json.Unmarshal(first, &p) != nil { // one object over many lines
		rest, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		first = append(first, rest...)
		if err := json.Unmarshal(first, &p); err != nil {
			return judge.ErrFormat
		}
	}
	return r.byProbe(name, &p, first, in, b)
}

func (r *Runner) byProbe(name string, p *probe, first []byte, in *bufio.Reader, b *besides) error {
	var each func(s *judge.Score) func([]byte) error
	switch {
	case p.Schema == snap.Schema:
		return r.scored(name, func(s *judge.Score) error { return r.snapshots(s, name, b) })
	case p.Schema != "":
		return fmt.Errorf("schema %q: %w", p.Schema, judge.ErrFormat)
	case p.Kind != "" && p.Arch != "":
		each = func(s *judge.Score) func([]byte) error { return judge.NewPE(s).Line }
	case p.B != "" && (p.PC != nil || p.RowStart != nil):
		each = func(s *judge.Score) func([]byte) error { return judge.NewRows(s, b.read).Line }
	case p.Waits != nil:
		r.skip(name, "the truth of an EventPipe trace: not handled by replay")
		return nil
	case p.Baseline != nil || p.Types != nil:
		r.skip(name, "a runtime's data descriptor: not handled by replay")
		return nil
	default:
		return judge.ErrFormat
	}
	return r.scored(name, func(s *judge.Score) error { return r.lines(name, first, in, each(s)) })
}

// maxLines bounds how many lines that cannot be judged are named, of each file.
const maxLines = 5

// lines calls each for the first and every further line. A line that it cannot
// judge is reported, and the next one is read.
func (r *Runner) lines(name string, first []byte, in *bufio.Reader, each func([]byte) error) error {
	bad := 0
	defer func() {
		if bad > maxLines {
			r.failed(name, fmt.Errorf("%d more lines cannot be judged", bad-maxLines))
		}
	}()
	for n, b := 1, first; ; n++ {
		if len(bytes.TrimSpace(b)) > 0 {
			if err := each(b); err != nil {
				if bad++; bad <= maxLines {
					r.failed(name, fmt.Errorf("line %d: %w", n, err))
				}
			}
		}
		var err error
		if b, err = line(in); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("line %d: %w", n+1, err)
		}
	}
}

// line reads one line, however long, up to maxLine.
func line(in *bufio.Reader) ([]byte, error) {
	var out []byte
	for {
		part, err := in.ReadSlice('\n')
		out = append(out, part...)
		switch {
		case len(out) > maxLine:
			return nil, fmt.Errorf("a line of more than %d bytes", maxLine)
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(out) > 0:
			return out, nil
		default:
			return out, err
		}
	}
}
