package target

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// A stack that is walked after the end of its process ends at managed code, because the tables are gone. The
// code itself has unwind data.
func TestUnprovenAfterEnd(t *testing.T) {
	cmd := exec.Command(needs.File(t, "out", "bin", "swhost"), needs.Runtime9(t),
		needs.File(t, "out", "samples", "Demo.exe"), "60")
	cmd.Env = append(cmd.Environ(), "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1")
	must.Do(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	p, mem, err := Open(cmd.Process.Pid, context.Host())
	must.Do(t, err)
	defer mem.Close()
	defer p.Close()
	var ip uint64
	known := func() bool {
		p.Refresh(cmd.Process.Pid)
		if p.Tables == nil {
			return false
		}
		p.VerifySoon()
		i := slices.IndexFunc(p.Maps, func(m live.Mapping) bool {
			return m.Exec && p.Table.IsManaged(m.Start) && !p.Unproven(m.Start)
		})
		if i >= 0 {
			ip = p.Maps[i].Start
		}
		return i >= 0
	}
	for end := time.Now().Add(time.Minute); !known() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	must.True(t, ip != 0, "there is no managed code")
	cmd.Process.Kill()
	cmd.Wait()
	expect.True(t, p.Unproven(ip), "%#x of the ended process has no unwind data", ip)
}
