package continuous

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"strings"
)

// Bounds of what is read of a process's environment and used as attributes.
const (
	maxEnviron    = 256 << 10
	maxAttributes = 64
	maxValue      = 1 << 10
)

// resource returns OpenTelemetry's attributes of a process: those that its environment gives
// to its own telemetry, its container, and its pod.
func resource(p process) map[string]string {
	out := map[string]string{"service.name": p.name}
	if host, err := os.Hostname(); err == nil {
		out["host.name"] = host
	}
	cgroup, _ := readSome(fmt.Sprintf("/proc/%d/cgroup", p.pid), 64<<10)
	containerOf(string(cgroup), out)
	environ, _ := readSome(fmt.Sprintf("/proc/%d/environ", p.pid), maxEnviron)
	declared(environ, out)
	return out
}

func readSome(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

var (
	containerID = regexp.MustCompile(`[0-9a-f]{64}`)
	podUID      = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)
)

// containerOf finds the container and the pod in the text of /proc/PID/cgroup.
func containerOf(cgroup string, out map[string]string) {
	if all := containerID.FindAllString(cgroup, -1); len(all) > 0 {
		out["container.id"] = all[len(all)-1]
	}
	if m := podUID.FindStringSubmatch(cgroup); m != nil {
		out["k8s.pod.uid"] = strings.ReplaceAll(m[1], "_", "-")
	}
}

// declared adds the attributes in OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME.
func declared(environ []byte, out map[string]string) {
	var service string
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		name, value, _ := strings.Cut(string(entry), "=")
		switch name {
		case "OTEL_SERVICE_NAME":
			service = value
		case "OTEL_RESOURCE_ATTRIBUTES":
			for pair := range strings.SplitSeq(value, ",") {
				key, text, _ := strings.Cut(pair, "=")
				key = strings.TrimSpace(key)
				if plain, err := url.PathUnescape(strings.TrimSpace(text)); err == nil && key != "" &&
					len(key) <= maxValue && plain != "" && len(plain) <= maxValue &&
					len(out) < maxAttributes {
					out[key] = plain
				}
			}
		}
	}
	if service != "" && len(service) <= maxValue {
		out["service.name"] = service
	}
}
