package procstat

import (
	"testing"

	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestFields(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 195813 20 21"
	for stat, want := range map[string]uint64{"464 (dotnet)" + rest: 195813,
		"464 (a) b (c) 1 2)" + rest: 195813, "464 (dotnet) S 1": 0, "": 0} {
		s := Parse([]byte(stat))
		expect.Equal(t, s.Number(Start), want, stat)
		expect.Equal(t, s.Field(Start) == "", want == 0, stat)
		expect.Equal(t, s.Ended(), stat == "", stat)
	}
	expect.Equal(t, Parse([]byte("464 (dotnet) Z 1")).Ended(), true, "a zombie has ended")
}
