// Package server fetches symbol files from symbol servers that a user has named.
//
// Sources: elfutils, debuginfod(8), "Webapi"; dotnet/symstore, SSQP key conventions.
//
// Glossary. A *key* is the path of a build's symbols on a server.
//
// Strategy: one request at a time, each with limits of time and size. A file is added to the cache after its
// build ID has been checked. A server that does not answer is not asked again.
//
// Known gaps: a file that no server has is requested again in the next run; compressed files of symbol stores
// (CAB) are not supported.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Limits bound what Servers do.
type Limits struct {
	Answer time.Duration // until a server answers
	Quiet  time.Duration // between two pieces of a file
	Fetch  time.Duration // of one file
	Total  time.Duration // of all files
	Report time.Duration // between two lines of progress
	Size   int64         // of one file, bytes
	Cache  int64         // of all files in the cache, bytes
	Age    time.Duration // of a file in the cache since its last use
}

// Default are the limits of New.
var Default = Limits{Answer: 10 * time.Second, Quiet: 15 * time.Second,
	Fetch: 3 * time.Minute, Total: 10 * time.Minute,
	Report: 3 * time.Second, Size: 1 << 30, Cache: 4 << 30, Age: 60 * 24 * time.Hour}

// Servers fetch symbol files into a cache, within the limits. They are not safe for concurrent use.
type Servers struct {
	limits  Limits
	folder  string
	say     func(string)
	client  *http.Client
	servers []*server
	spent   time.Duration
}

// server is one symbol server.
type server struct {
	base  string
	key   [2]int // indices of the keys by which it has served a file of ELF and a PDB, -1 = none yet
	ended bool   // it failed and is no longer used
}

// New returns the servers at some URLs with a cache in folder. say receives progress and failures.
func New(urls []string, folder string, limits Limits, say func(string)) *Servers {
	s := &Servers{limits: limits, folder: folder, say: say}
	for _, u := range urls {
		s.servers = append(s.servers, &server{base: u, key: [2]int{-1, -1}})
	}
	dialer := &net.Dialer{Timeout: limits.Answer}
	s.client = &http.Client{CheckRedirect: redirect,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext,
			TLSHandshakeTimeout: limits.Answer, ResponseHeaderTimeout: limits.Answer,
			MaxResponseHeaderBytes: 1 << 16}}
	return s
}

// Check returns why a URL cannot be that of a symbol server, nil if it can.
func Check(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" ||
		u.Fragment != "" {
		return fmt.Errorf("%q is not an http or https address", address)
	}
	return nil
}

// maxRedirects bounds the redirects of one request.
const maxRedirects = 5

// redirect accepts other addresses of the same server, and encrypted ones of others.
func redirect(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	if len(via) > maxRedirects ||
		to.URL.Scheme != "https" && (from.Scheme == "https" || to.URL.Host != from.Host) {
		return fmt.Errorf("redirect to %s://%s refused", to.URL.Scheme, to.URL.Host)
	}
	return nil
}

// keys are where a server may have the symbols of a build: as debuginfod, and as a symbol store. A store
// has PDBs by name, their IDs in upper case as symstore.exe writes them, or in lower case.
func keys(image, id string) []string {
	if isPDB(id) {
		name := url.PathEscape(image)
		return []string{name + "/" + id + "/" + name, name + "/" + strings.ToLower(id) + "/" + name}
	}
	return []string{"buildid/" + id + "/debuginfo", "_.debug/elf-buildid-sym-" + id + "/_.debug"}
}

// isPDB tells the ID of a PDB from that of an ELF file.
func isPDB(id string) bool { return id != strings.ToLower(id) }

// maxID bounds the length of a build ID.
const maxID = 128

// errMissing means that the server does not have the file.
var errMissing = errors.New("not found")

// Fetch returns the file with the symbols of a build, "" if no server has it. id is a build ID in
// lower-case hexadecimal, and image names the image in messages; or id is that of a PDB in upper case, and
// image is the PDB's name. fits reports whether a file, which came from a place, belongs to the build.
func (s *Servers) Fetch(image, id string, fits func(file, place string) bool) string {
	if len(id) > maxID {
		return ""
	}
	name := filepath.Join(s.folder, strings.ToLower(id), "debuginfo")
	if _, err := os.Stat(name); err == nil && fits(name, name) {
		now := time.Now()
		os.Chtimes(name, now, now)
		return name
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		s.say(err.Error())
		return ""
	}
	defer os.Remove(filepath.Dir(name)) // only if it is empty
	kind := 0
	if isPDB(id) {
		kind = 1
	}
	for _, v := range s.servers {
		for i, key := range keys(image, id) {
			if v.ended || v.key[kind] >= 0 && v.key[kind] != i {
				continue
			}
			place := v.base + "/" + key
			part, err := s.get(v, place, image, filepath.Dir(name))
			if err != nil {
				continue
			}
			ok := fits(part, place)
			if ok {
				v.key[kind] = i
				ok = os.Rename(part, name) == nil
			}
			os.Remove(part)
			if ok {
				s.prune()
				return name
			}
		}
	}
	return ""
}

// get fetches one file into a new file in a folder. It reports failures. After a failure other than a missing
// file, the server is no longer used.
func (s *Servers) get(v *server, place, image, folder string) (part string, err error) {
	began := time.Now()
	defer func() { s.spent += time.Since(began) }()
	left := min(s.limits.Fetch, s.limits.Total-s.spent)
	if left <= 0 {
		v.ended = true
		s.say(fmt.Sprintf("no further symbols are fetched: that has taken %v", s.limits.Total))
		return "", errMissing
	}
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	out, err := os.CreateTemp(folder, "part-")
	if err == nil {
		err = s.copy(ctx, cancel, out, place, image)
		err = errors.Join(err, out.Close())
	}
	switch {
	case err == nil:
		return out.Name(), nil
	case !errors.Is(err, errMissing):
		v.ended = true
		s.say(fmt.Sprintf("symbols of %q: %v; %s is not asked again", path.Base(image), err, v.base))
	}
	if out != nil {
		os.Remove(out.Name())
	}
	return "", err
}

// copy sends a request and writes the answer to out.
func (s *Servers) copy(ctx context.Context, cancel context.CancelFunc,
	out io.Writer, place, image string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "seedwalk")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		return errMissing
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", place, resp.Status)
	case resp.ContentLength > s.limits.Size:
		return s.tooLarge(place)
	}
	watch := time.AfterFunc(s.limits.Quiet, cancel)
	defer watch.Stop()
	buf, next := make([]byte, 1<<16), time.Now().Add(s.limits.Report)
	for n := int64(0); ; {
		k, err := resp.Body.Read(buf)
		watch.Reset(s.limits.Quiet)
		if n += int64(k); n > s.limits.Size {
			return s.tooLarge(place)
		}
		if _, err := out.Write(buf[:k]); err != nil {
			return err
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: after %d bytes: %w", place, n, err)
		}
		if time.Now().After(next) {
			next = time.Now().Add(s.limits.Report)
			s.say(progress(image, place, n, resp.ContentLength))
		}
	}
}

func (s *Servers) tooLarge(place string) error {
	return fmt.Errorf("%s: more than %d MB", place, s.limits.Size>>20)
}

// progress returns a line about a long fetch. size is -1 if unknown.
func progress(image, place string, n, size int64) string {
	of := ""
	if size > 0 {
		of = fmt.Sprintf(" of %d", size>>20)
	}
	return fmt.Sprintf("fetching the symbols of %q: %d%s MB from %s", path.Base(image), n>>20, of, place)
}
