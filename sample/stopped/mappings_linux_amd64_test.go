package stopped

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
	"github.com/seedwalk/seedwalk/sample/sampler"
	"github.com/seedwalk/seedwalk/sample/target"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/threadprog"
)

// A process with 60,000 mappings is sampled like any other: its stacks are complete, and the cost of its
// mappings depends only on the executable ones.
func TestManyMappings(t *testing.T) {
	const mappings, samples = 60000, 50
	if most, err := os.ReadFile("/proc/sys/vm/max_map_count"); err == nil {
		if n, _ := strconv.Atoi(strings.TrimSpace(string(most))); n < mappings+1000 {
			t.Skipf("SKIPPED-CHECK: the kernel permits %d mappings", n)
		}
	}
	pid, _ := threadprog.Start(t, "mappings", mappings)
	e, err := New(pid, sampler.Config{RateHz: 200}, io.Discard)
	if err != nil {
		t.Skip("SKIPPED-CHECK: " + err.Error())
	}
	in, out := io.Pipe()
	e.Stream.To = out
	counted := make(chan [2]uint64)
	go func() {
		n, whole := countSamples(in, samples, e.Stop)
		counted <- [2]uint64{n, whole}
	}()
	e.Run()
	out.Close()
	n := <-counted
	view := e.Target.View.(*live.View)
	code := uint64(len(e.Target.Maps))
	t.Logf("%d whole samples of %d; %d executable mappings, %d queries, %d texts read", n[1], n[0],
		code, view.Queries, view.Texts)
	if n[1] < samples {
		t.Errorf("%d samples, %d of them whole", n[0], n[1])
	}
	if view.Texts == 0 && view.Queries > (code+1)*8+n[0] || view.Texts > 8 {
		t.Errorf("%d queries and %d texts for %d executable mappings", view.Queries, view.Texts, code)
	}
}

// countSamples reads a stream to its end. It calls stop after enough samples with complete stacks, or too
// many others.
func countSamples(r io.Reader, enough uint64, stop func()) (n, whole uint64) {
	for in := wire.NewReader(r); ; {
		m, err := in.Next()
		if err != nil {
			return n, whole
		}
		s, ok := m.(*wire.Sample)
		if !ok {
			continue
		}
		if n++; merge.Gap(s.Gap) == merge.GapNone {
			whole++
		}
		if whole >= enough || n >= 20*enough {
			stop()
		}
	}
}

// slowView is a slow view of the mappings.
type slowView struct {
	takes time.Duration
	lists int
	maps  []live.Mapping
}

func (v *slowView) Executable() ([]live.Mapping, error) {
	v.lists++
	time.Sleep(v.takes)
	return v.maps, nil
}

func (v *slowView) At(addr uint64) *live.Mapping {
	for i := range v.maps {
		if m := v.maps[i]; m.Start <= addr && addr < m.End {
			return &m
		}
	}
	return nil
}

func slowTarget(takes time.Duration, maps ...live.Mapping) (*target.Process, *slowView) {
	v := &slowView{takes: takes, maps: maps}
	t := target.New(0, context.Host(), nil, live.NewLoader(0))
	t.View = v
	return t, v
}

// The pause between readings of the mappings grows with the time that a reading takes. An unchanged list
// makes no new table.
func TestRefreshPauses(t *testing.T) {
	tg, v := slowTarget(2*time.Millisecond, live.Mapping{Start: 0x1000, End: 0x2000, Exec: true})
	began := time.Now()
	changed := 0
	for v.lists < 4 {
		if tg.Refresh(1) {
			changed++
		}
	}
	took := time.Since(began)
	expect.True(t, took >= 3*target.MapsPause*v.takes, "%d lists in %v", v.lists, took)
	table := tg.Table
	expect.Equal(t, changed, 1, "changes")
	v.maps = append(v.maps, live.Mapping{Start: 0x3000, End: 0x4000, Exec: true})
	for v.lists < 5 {
		if tg.Refresh(1) {
			changed++
		}
	}
	expect.True(t, changed == 2 && tg.Table != table && tg.Table.IsManaged(0x3000),
		"%d changes, new table %v", changed, tg.Table != table)
}

// Code that was mapped after the last list is found by its address, once and without a list.
func TestLearn(t *testing.T) {
	code := func(start, end uint64) live.Mapping { return live.Mapping{Start: start, End: end, Exec: true} }
	tg, v := slowTarget(0, code(0x1000, 0x2000), code(0x4000, 0x6000), code(0x8000, 0x9000))
	tg.Refresh(1)
	learn := func(addr uint64) bool {
		tg.Learnt = time.Time{}
		return tg.Learn(addr)
	}
	v.maps = []live.Mapping{code(0x1000, 0x2000), code(0x2800, 0x3000), {Start: 0x3000, End: 0x3800},
		code(0x5000, 0x7000), code(0x8000, 0x9000)}
	for _, c := range []struct {
		addr uint64
		want bool
	}{{0x1800, false}, {0x2800, true}, {0x2fff, false}, {0x3000, false}, {0x3800, false}, {0x4000, false},
		{0x6fff, true}, {0x5000, false}, {0x8fff, false}, {0x9000, false}} {
		expect.Equal(t, learn(c.addr), c.want, "%#x", c.addr)
	}
	want := []live.Mapping{code(0x1000, 0x2000), code(0x2800, 0x3000),
		code(0x5000, 0x7000), code(0x8000, 0x9000)}
	expect.True(t, slices.Equal(tg.Maps, want) && v.lists == 1, "%+v after %d lists", tg.Maps, v.lists)
	expect.True(t, tg.Table.IsManaged(0x2800) && !tg.Table.IsManaged(0x4800),
		"the table is of other mappings")
	v.maps = append(v.maps, code(0xa000, 0xb000))
	tg.Learnt = time.Now().Add(time.Hour)
	expect.True(t, !tg.Learn(0xa000), "learned again too soon")
}
