package symbol

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// maxPerfMapSymbols bounds the memory a perf map may take.
const maxPerfMapSymbols = 1 << 22

// ReadPerfMap reads "START SIZE NAME" lines, both numbers hexadecimal. Lines
// that are not of this form are counted and passed over: the file is often
// still being written. Where code was replaced, the later line wins.
func ReadPerfMap(r io.Reader) (t *Table, bad int, err error) {
	byAddr := map[uint64]int{}
	var symbols []Symbol
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		s, ok := perfMapLine(sc.Text())
		if !ok {
			bad++
			continue
		}
		if i, again := byAddr[s.Addr]; again {
			symbols[i] = s
		} else if len(symbols) < maxPerfMapSymbols {
			byAddr[s.Addr] = len(symbols)
			symbols = append(symbols, s)
		}
	}
	return NewTable(symbols, nil), bad, sc.Err()
}

func perfMapLine(line string) (s Symbol, ok bool) {
	start, rest, _ := strings.Cut(line, " ")
	size, name, _ := strings.Cut(rest, " ")
	var err1, err2 error
	s.Addr, err1 = strconv.ParseUint(strings.TrimPrefix(start, "0x"), 16, 64)
	s.Size, err2 = strconv.ParseUint(strings.TrimPrefix(size, "0x"), 16, 64)
	s.Name = strings.TrimSpace(name)
	return s, err1 == nil && err2 == nil && s.Size > 0 && s.Name != ""
}
