package continuous

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// maxAnswer bounds the bytes that are read of an answer.
const maxAnswer = 64 << 10

// ownPort matches the local port of a connection in the text of an error. The port differs for each try.
var ownPort = regexp.MustCompile(`:\d+->`)

// pusher sends the files of the spool to the backend, oldest first, on its own goroutine. After a
// failure it tries again, with a delay that doubles from first to most.
type pusher struct {
	cfg         *Config
	spool       *folder
	count       *Counters
	first, most time.Duration // bounds of the time between two tries
	client      http.Client
	wake        chan struct{}
	failing     string // reason of the last failure without the port of its connection, "" after a success
	address     *url.URL
	protocol    int
}

// newPusher prepares the client for cfg.Push. If that is empty, the pusher must not run. It returns
// ErrPush for an address that cannot be used.
func newPusher(cfg *Config, spool *folder, count *Counters) (*pusher, error) {
	p := &pusher{cfg: cfg, spool: spool, count: count, first: time.Second, most: time.Minute,
		wake: make(chan struct{}, 1)}
	if cfg.Push == "" {
		return p, nil
	}
	var err error
	if p.address, p.protocol, err = target(cfg.Push); err != nil {
		return nil, err
	}
	p.client.Timeout = 10 * time.Second
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if p.protocol == otlpGRPC {
		var both http.Protocols
		both.SetHTTP2(true)
		both.SetUnencryptedHTTP2(true)
		p.client.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, Protocols: &both,
			IdleConnTimeout: 90 * time.Second}
	}
	return p, nil
}

// suffix ends the names of files in the spool.
func (p *pusher) suffix() string {
	if p.protocol == pyroscope {
		return pprofSuffix
	}
	return otlpSuffix
}

// rejected means that the backend will never accept the profile.
type rejected struct{ status string }

func (r *rejected) Error() string { return "the profile is refused: " + r.status }

// busy means that the backend may accept the profile later, at the earliest after the given time.
type busy struct {
	status string
	after  time.Duration
}

func (b *busy) Error() string { return b.status }

// notify wakes the pusher for a new file. It never blocks: the pusher finds the file when it next looks.
func (p *pusher) notify() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pusher) run(stop <-chan struct{}) {
	delay := p.first
	for {
		err := p.drain(stop)
		if err == nil {
			delay = p.first
			select {
			case <-stop:
				return
			case <-p.wake:
			case <-time.After(time.Minute):
			}
			continue
		}
		wait := delay
		if b := (*busy)(nil); errors.As(err, &b) && b.after > wait {
			wait = min(b.after, p.most)
		}
		if !sleep(wait, stop) {
			return
		}
		delay = min(2*delay, p.most)
	}
}

// drain sends all files. It stops at the first that cannot be sent now, and returns why.
func (p *pusher) drain(stop <-chan struct{}) error {
	names, _ := p.spool.files()
	for _, name := range names {
		select {
		case <-stop:
			return nil
		default:
		}
		err := p.send(name)
		refused := (*rejected)(nil)
		switch {
		case errors.Is(err, os.ErrNotExist): // the bound of the spool took it
			continue
		case errors.As(err, &refused):
			p.count.PushRejected.Add(1)
		case err != nil:
			p.count.PushErrors.Add(1)
			if reason := ownPort.ReplaceAllString(err.Error(), "->"); p.failing != reason {
				p.failing = reason
				p.cfg.Say(fmt.Sprintf("cannot send profiles to %s: %v; they wait in %s, at most %d MB",
					p.host(), err, p.spool.dir, p.spool.bound>>20))
			}
			return err
		default:
			p.count.Pushed.Add(1)
		}
		if p.failing != "" && err == nil {
			p.failing = ""
			p.cfg.Say(p.host() + " accepts profiles again")
		}
		if err := os.Remove(filepath.Join(p.spool.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if refused != nil {
			p.cfg.Say(fmt.Sprintf("%s: %v; the profile is dropped", p.host(), refused))
		}
	}
	return nil
}

// host returns the backend's address without the secrets that it may contain.
func (p *pusher) host() string { return p.address.Scheme + "://" + p.address.Host }

// send posts one file.
func (p *pusher) send(name string) error {
	s, ok := parseSpooled(name)
	if !ok {
		return &rejected{name + " is not a file name of the spool"}
	}
	data, err := os.ReadFile(filepath.Join(p.spool.dir, name))
	if err != nil {
		return err
	}
	req, err := p.request(&s, data)
	if err != nil {
		return err
	}
	if p.cfg.PushToken != "" {
		req.Header.Set("Authorization", "Bearer "+p.cfg.PushToken)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		if e := (*url.Error)(nil); errors.As(err, &e) {
			err = e.Err // the address may have secrets
		}
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case p.protocol == otlpGRPC && err == nil:
		return judgeGRPC(resp, body)
	case p.protocol == otlpHTTP && err == nil && resp.StatusCode == http.StatusOK:
		return partialSuccess(body)
	case p.protocol != pyroscope && resp.StatusCode == http.StatusOK:
		return errNoMessage
	}
	return judge(resp)
}

func (p *pusher) request(s *spooled, data []byte) (*http.Request, error) {
	if p.protocol != pyroscope {
		return otlpRequest(p.address, p.protocol, data)
	}
	return pyroscopeRequest(p.address, s, data)
}

// pyroscopeRequest makes the request of Pyroscope.
func pyroscopeRequest(u *url.URL, s *spooled, data []byte) (*http.Request, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("profile", "profile.pprof")
	if err != nil {
		return nil, err
	}
	if _, err := part.Write(data); err != nil {
		return nil, err
	}
	if err := form.Close(); err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	query := url.Values{"name": {fmt.Sprintf("%s{pid=%d,host=%s}", s.Name, s.PID, safeName(host))},
		"from":   {strconv.FormatInt(s.From.Unix(), 10)},
		"until":  {strconv.FormatInt(max(s.Until.Unix(), s.From.Unix()+1), 10)},
		"format": {"pprof"}, "spyName": {"seedwalk"}, "sampleRate": {strconv.Itoa(max(1, int(s.Rate)))}}
	to := u.JoinPath("ingest")
	to.RawQuery = query.Encode()
	req, err := http.NewRequest(http.MethodPost, to.String(), &body)
	if err == nil {
		req.Header.Set("Content-Type", form.FormDataContentType())
	}
	return req, err
}

// judge returns nil if a profile was accepted, rejected if it never will be, and another error if it
// should be sent again.
func judge(resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests,
		code == http.StatusUnauthorized, code == http.StatusForbidden,
		code == http.StatusNotFound, code >= 500:
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return &busy{resp.Status, time.Duration(min(max(after, 0), 3600)) * time.Second}
	case code >= 300 && code < 400:
		return fmt.Errorf("%s: give --push the address that it redirects to", resp.Status)
	}
	return &rejected{resp.Status}
}
