package e2e

import (
	"bufio"
	"os"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
)

// body is a piece of code that the runtime compiled.
type body struct {
	start, size uint64
	name, tier  string
}

// perfMap are a program's methods by address, as the runtime wrote them.
type perfMap []body

// readPerfMap reads the methods of an assembly.
func readPerfMap(t *testing.T, path, assembly string) (m perfMap) {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		fields := strings.SplitN(sc.Text(), " ", 3)
		if len(fields) < 3 || !strings.Contains(fields[2], "["+assembly+"]") {
			continue
		}
		start, err1 := strconv.ParseUint(strings.TrimPrefix(fields[0], "0x"), 16, 64)
		size, err2 := strconv.ParseUint(fields[1], 16, 64)
		_, name, ok := strings.Cut(fields[2], "::")
		if err1 != nil || err2 != nil || !ok {
			continue
		}
		name, tier, _ := strings.Cut(name, "(")
		tier = tier[strings.LastIndexByte(tier, '[')+1:]
		m = append(m, body{start, size, name, strings.TrimSuffix(tier, "]")})
	}
	sort.Slice(m, func(i, j int) bool { return m[i].start < m[j].start })
	return m
}

func (m perfMap) find(ip uint64) *body {
	i := sort.Search(len(m), func(i int) bool { return m[i].start > ip }) - 1
	if i >= 0 && ip < m[i].start+m[i].size {
		return &m[i]
	}
	return nil
}
