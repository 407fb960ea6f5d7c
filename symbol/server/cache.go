package server

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// cached is a file in the cache.
type cached struct {
	path string
	size int64
	used time.Time
}

// partAge is how long a file may be incomplete. After that, the tool that fetched it must have ended.
const partAge = time.Hour

// prune removes files that have not been used for a long time, and then the oldest ones until the rest is
// within the bound. It only removes files with the cache's names.
func (s *Servers) prune() {
	var files []cached
	total := int64(0)
	for _, pattern := range []string{"debuginfo", "part-*"} {
		names, _ := filepath.Glob(filepath.Join(s.folder, "[0-9a-f]*", pattern)) // the pattern is good
		for _, name := range names {
			info, err := os.Lstat(name)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			age := s.limits.Age
			if pattern != "debuginfo" {
				age = partAge
			}
			if time.Since(info.ModTime()) > age {
				remove(name)
				continue
			}
			files, total = append(files, cached{name, info.Size(), info.ModTime()}), total+info.Size()
		}
	}
	slices.SortFunc(files, func(a, b cached) int { return cmp.Compare(a.used.UnixNano(), b.used.UnixNano()) })
	for _, f := range files {
		if total <= s.limits.Cache {
			break
		}
		remove(f.path)
		total -= f.size
	}
}

// remove removes a file, and its folder if that becomes empty.
func remove(name string) {
	os.Remove(name)
	os.Remove(filepath.Dir(name))
}
