package continuous

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Counters add up what the agent did, and what it dropped.
type Counters struct {
	Targets, Recordings, Samples, Paused atomic.Int64
	Unrecorded                           atomic.Int64               // nanoseconds
	Failed                               [len(reasons)]atomic.Int64 // recordings and sessions
	StoreDropped, SpoolDropped           atomic.Int64               // files deleted because of a bound
	Pushed, PushErrors, PushRejected     atomic.Int64
}

// IsLocal reports whether an address to listen on can be reached from this machine only.
func IsLocal(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// Serve serves Handler at an address. The caller closes the server.
func (a *Agent) Serve(addr, token string) (*http.Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Handler: a.Handler(token), ReadTimeout: 5 * time.Second,
		WriteTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	go srv.Serve(l)
	a.cfg.Say("serving http://" + l.Addr().String())
	return srv, nil
}

// Handler serves the targets, /healthz, and /metrics. With a token, requests need it as a bearer
// token or, from browsers, as a password. Without one they must name this machine, so that no page
// of another site reads what is served here.
func (a *Agent) Handler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", a.health)
	mux.HandleFunc("GET /metrics", a.metrics)
	mux.HandleFunc("GET /{$}", a.targetList)
	mux.HandleFunc("GET /targets", a.targetList)
	mux.HandleFunc("GET /targets/{pid}", a.target)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		switch {
		case token == "" && !IsLocal(r.Host) && !IsLocal(r.Host+":80"):
			http.Error(w, "use the name localhost", http.StatusForbidden)
		case token != "" && !equal(r.Header.Get("Authorization"), "Bearer "+token) && !equal(password, token):
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "send the token of --token", http.StatusUnauthorized)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (a *Agent) health(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	late := time.Since(a.scanned) > 15*scanEvery
	a.mu.Unlock()
	if late {
		http.Error(w, "the search for processes has ended", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (a *Agent) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	a.mu.Lock()
	targets, waiting, rarely := len(a.targets), a.waiting, len(a.rarely)
	a.mu.Unlock()
	_, spool := a.spool.files()
	_, store := a.store.files()
	used := a.budget.usage()
	for _, m := range []struct {
		name, kind, help string
		value            float64
	}{
		{"targets", "gauge", "Processes that are recorded.", float64(targets)},
		{"targets_waiting", "gauge", "Processes beyond the limit, which are not recorded.", float64(waiting)},
		{"targets_in_stretches", "gauge",
			"Processes whose last interval was sampled in random stretches of time, because threads switch often.",
			float64(rarely)},
		{"targets_total", "counter", "Processes that were recorded.", float64(a.count.Targets.Load())},
		{"recordings_total", "counter", "Intervals that were recorded.", float64(a.count.Recordings.Load())},
		{"recordings_paused_total", "counter", "Times that a process was not recorded because of the budget.",
			float64(a.count.Paused.Load())},
		{"unrecorded_seconds_total", "counter", "Time of targets without a recording.",
			time.Duration(a.count.Unrecorded.Load()).Seconds()},
		{"samples_total", "counter", "Samples in recordings.", float64(a.count.Samples.Load())},
		{"store_dropped_total", "counter", "Recordings deleted because the folder was full.",
			float64(a.count.StoreDropped.Load())},
		{"spool_dropped_total", "counter",
			"Profiles deleted before they were sent, because the spool or the disk was full.",
			float64(a.count.SpoolDropped.Load())},
		{"store_bytes", "gauge", "Size of the recordings.", float64(store)},
		{"spool_bytes", "gauge", "Size of the profiles that wait.", float64(spool)},
		{"pushed_total", "counter", "Profiles that the backend accepted.", float64(a.count.Pushed.Load())},
		{"push_errors_total", "counter", "Failed attempts to send.", float64(a.count.PushErrors.Load())},
		{"push_rejected_total", "counter", "Profiles that the backend refused.",
			float64(a.count.PushRejected.Load())},
		{"rate_hertz", "gauge", "Samples per second and thread in the next interval.", a.budget.rate()},
		{"cpu_seconds_total", "counter", "CPU time of the agent.", used.CPU.Seconds()},
		{"memory_bytes", "gauge", "Memory of the agent.", float64(used.Memory)},
	} {
		fmt.Fprintf(w, "# HELP seedwalk_agent_%s %s\n# TYPE seedwalk_agent_%s %s\nseedwalk_agent_%s %g\n",
			m.name, m.help, m.name, m.kind, m.name, m.value)
	}
	const failed = "seedwalk_agent_failures_total"
	fmt.Fprintf(w, "# HELP %s Failed recordings and attempts to sample.\n# TYPE %s counter\n",
		failed, failed)
	for i, reason := range reasons {
		fmt.Fprintf(w, "%s{reason=%q} %d\n", failed, reason, a.count.Failed[i].Load())
	}
}
