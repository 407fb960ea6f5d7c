package record

import (
	"testing"

	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/wire"
)

// Of a sample that is sent after the end of a recording the time before that counts: a
// thread that rests is told of seconds or minutes at once.
func TestCutAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		name          string
		taken         int64
		wall, cpu     uint64
		want, samples uint64
	}{
		{"before", 900, 700, 0, 700, 1},
		{"at the end", 1000, 700, 5, 700, 1},
		{"before and after", 1200, 700, 0, 500, 1},
		{"after", 1200, 200, 0, 0, 0},
		{"none of its time is known", 1200, 0, 0, 0, 0},
		{"processor time, of its moment", 1200, 700, 10, 0, 0},
	} {
		p := newProcess(1, "x")
		p.stopAt(1000)
		s := &wire.Sample{TID: 1, TimeUnixNano: c.taken, WallNanos: c.wall, CPUNanos: c.cpu}
		over := p.over(s)
		if !over {
			p.take(s)
		}
		info := collect.Info{}
		got := collect.Build(&info, []*collect.Process{p.Process}, nil)
		var wall, last int64
		for i := range got.Samples {
			wall += got.Samples[i].Wall
			last = max(last, got.Samples[i].At)
		}
		if over != (c.samples == 0) || got.Stats.Samples != int64(c.samples) || wall != int64(c.want) || last > 1000 {
			t.Errorf("%s: %d samples of %d, the last at %d", c.name, got.Stats.Samples, wall, last)
		}
	}
}
