package continuous

import (
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/report/collect"
	"github.com/seedwalk/seedwalk/report/export"
	"github.com/seedwalk/seedwalk/report/recording"
)

// shown bounds the recordings of one flame graph, including the current one.
const shown = 5

// listed is a target as the page shows it.
type listed struct {
	PID        int
	Name       string
	Recordings int
	Since      string
}

var targetsPage = template.Must(template.New("targets").Parse(`<!doctype html>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>seedwalk agent</title>
<style>:root{color-scheme:light dark}body{font:16px system-ui;margin:2em auto;max-width:50em;padding:0 1em}td,th{padding:.3em 1em .3em 0;text-align:left}</style>
<h1>Recorded processes</h1>
{{if .Targets}}<table><tr><th>Process<th>PID<th>Recordings<th>Kept since</tr>
{{range .Targets}}<tr><td><a href="/targets/{{.PID}}">{{.Name}}</a><td>{{.PID}}<td>{{.Recordings}}<td>{{.Since}}</tr>
{{end}}</table><p>A name opens the flame graph of the last minutes.{{else}}<p>No process is recorded now.{{end}}
<p>{{printf "%.1f" .Rate}} samples per second. {{.Waiting}} more processes wait. <a href="/metrics">Counters</a>.
`))

// targetList serves the page with all targets.
func (a *Agent) targetList(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	var all []listed
	for _, p := range a.targets {
		all = append(all, listed{PID: p.pid, Name: p.name})
	}
	waiting := a.waiting
	a.mu.Unlock()
	slices.SortFunc(all, func(x, y listed) int { return x.PID - y.PID })
	for i := range all {
		kept := a.recordings(all[i].PID)
		if all[i].Recordings = len(kept); len(kept) > 0 {
			var at int64
			fmt.Sscanf(filepath.Base(kept[0]), "%d-", &at)
			all[i].Since = time.UnixMilli(at).Format(time.DateTime)
		}
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	targetsPage.Execute(w, map[string]any{"Targets": all, "Waiting": waiting, "Rate": a.budget.rate()})
}

// target serves the flame graph of a process's last recordings. The process may have ended.
func (a *Agent) target(w http.ResponseWriter, r *http.Request) {
	pid, err := strconv.Atoi(r.PathValue("pid"))
	if err != nil || pid <= 0 {
		http.Error(w, "no recorded process has this ID", http.StatusNotFound)
		return
	}
	a.showing.Lock() // one at a time: a flame graph takes memory
	defer a.showing.Unlock()
	p, err := lastMinutes(a.recordings(pid))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if format, _ := export.ByName("html"); format.Write(w, p) != nil {
		panic(http.ErrAbortHandler) // the reader is gone, or has half a page
	}
}

// recordings returns the paths of a process's recordings, oldest first, including the current one.
func (a *Agent) recordings(pid int) (paths []string) {
	for _, suffix := range []string{"", ".partial"} {
		for _, path := range a.store.ending(a.store.suffix + suffix) {
			_, rest, _ := strings.Cut(filepath.Base(path), "-")
			if strings.HasPrefix(rest, strconv.Itoa(pid)+"-") {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	return paths
}

var errNoRecording = errors.New("no recording of this process is kept yet")

// lastMinutes makes one profile of the last recordings. It skips files that cannot be read.
func lastMinutes(paths []string) (*export.Profile, error) {
	var first *recording.Recording
	var processes []*collect.Process
	for _, path := range paths[max(0, len(paths)-shown):] {
		r, err := readRecording(path)
		if err != nil || len(r.Processes) == 0 { // the bound of the folder took it, or it is new
			continue
		}
		processes = append(processes, r.Processes...)
		if first != nil {
			r.Names.Next = &first.Names
			r.Info.Start = first.Info.Start
		}
		first = r
	}
	if first == nil {
		return nil, errNoRecording
	}
	return collect.Build(&first.Info, processes, &first.Names), nil
}

func readRecording(path string) (*recording.Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return recording.Read(io.LimitReader(f, 256<<20))
}
