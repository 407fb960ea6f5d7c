package continuous

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/seedwalk/seedwalk/report/export"
)

// Protocols of the push.
const (
	pyroscope = iota
	otlpHTTP
	otlpGRPC
)

// protocols maps the scheme of an address to push to its protocol and to the scheme of net/http.
var protocols = map[string]struct {
	kind   int
	scheme string
}{
	"http": {pyroscope, "http"}, "https": {pyroscope, "https"}, "otlp+http": {otlpHTTP, "http"},
	"otlp+https": {otlpHTTP, "https"},
	"otlp+grpc":  {otlpGRPC, "http"}, "otlp+grpcs": {otlpGRPC, "https"},
}

// ErrPush means that an address to push to cannot be used.
var ErrPush = errors.New("--push must be an address such as http://localhost:4040, otlp+http://localhost:4318, or otlp+grpc://localhost:4317, with a port of 1 to 65535")

// target parses an address to push to. The returned URL has a scheme of net/http. The error is ErrPush.
func target(address string) (*url.URL, int, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.RawQuery != "" {
		return nil, 0, ErrPush
	}
	if port, err := strconv.ParseUint(cmp.Or(u.Port(), "1"), 10, 16); err != nil || port == 0 {
		return nil, 0, ErrPush
	}
	p, ok := protocols[u.Scheme]
	if !ok || p.kind == otlpGRPC && strings.Trim(u.Path, "/") != "" {
		return nil, 0, ErrPush
	}
	u.Scheme = p.scheme
	return u, p.kind, nil
}

// CheckPush returns ErrPush if an address to push to cannot be used.
func CheckPush(address string) error {
	_, _, err := target(address)
	return err
}

// otlpRequest makes the request of a collector. The data is a compressed message.
func otlpRequest(u *url.URL, kind int, data []byte) (*http.Request, error) {
	if kind == otlpHTTP {
		req, err := http.NewRequest(http.MethodPost,
			u.JoinPath("v1development", "profiles").String(), bytes.NewReader(data))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-protobuf")
			req.Header.Set("Content-Encoding", "gzip")
		}
		return req, err
	}
	frame := binary.BigEndian.AppendUint32([]byte{1}, uint32(len(data))) // 1 = compressed
	address := u.JoinPath("opentelemetry.proto.collector.profiles.v1development.ProfilesService",
		"Export").String()
	req, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(append(frame, data...)))
	if err == nil {
		req.Header.Set("Content-Type", "application/grpc+proto")
		req.Header.Set("Grpc-Encoding", "gzip")
		req.Header.Set("Te", "trailers")
	}
	return req, err
}

// judgeGRPC is judge for an answer of gRPC, whose body has been read.
func judgeGRPC(resp *http.Response, body []byte) error {
	if resp.StatusCode != http.StatusOK {
		return judge(resp)
	}
	status, of := resp.Trailer.Get("Grpc-Status"), resp.Trailer
	if status == "" { // an answer without a message has its status in the header
		status, of = resp.Header.Get("Grpc-Status"), resp.Header
	}
	code, err := strconv.Atoi(status)
	if err != nil {
		return errors.New("the answer has no gRPC status")
	}
	message, err := url.PathUnescape(of.Get("Grpc-Message"))
	if err != nil {
		message = ""
	}
	text := fmt.Sprintf("status %d %.200q", code, message)
	switch code {
	case 0:
		reply, err := grpcMessage(resp, body)
		if err != nil {
			return err
		}
		return partialSuccess(reply)
	case 3, 5, 6, 9: // the profile itself is wrong
		return &rejected{text}
	case 8: // too large, or the collector is busy and its details give the time of a retry
		if of.Get("Grpc-Status-Details-Bin") == "" {
			return &rejected{text}
		}
	}
	return &busy{status: text}
}

// grpcMessage returns the message of an answer of gRPC: a flag, 4 bytes of length, and the message, which
// servers compress as the request was (gRPC over HTTP2, Length-Prefixed-Message). An empty answer has none.
func grpcMessage(resp *http.Response, body []byte) ([]byte, error) {
	const head = 5
	switch {
	case len(body) == 0:
		return nil, nil
	case len(body) < head || uint64(binary.BigEndian.Uint32(body[1:])) != uint64(len(body)-head):
		return nil, errNoMessage
	case body[0] == 0:
		return body[head:], nil
	case body[0] != 1 || resp.Header.Get("Grpc-Encoding") != "gzip":
		return nil, errNoMessage
	}
	z, err := gzip.NewReader(bytes.NewReader(body[head:]))
	if err != nil {
		return nil, errNoMessage
	}
	reply, err := io.ReadAll(io.LimitReader(z, maxAnswer))
	if err != nil {
		return nil, errNoMessage
	}
	return reply, nil
}

// errNoMessage means that an answer does not come from a collector. It may come from a proxy.
var errNoMessage = errors.New("the answer is not an OpenTelemetry message")

// partialSuccess reads an ExportProfilesServiceResponse. If the collector refuses some profiles,
// sending them again is useless, and the error is rejected.
func partialSuccess(body []byte) error {
	var count uint64
	var message []byte
	parts, ok := fields(body)
	for _, part := range parts {
		if part.number != 1 {
			continue
		}
		inner, whole := fields(part.bytes)
		ok = ok && whole
		for _, f := range inner {
			switch f.number {
			case 1:
				count = f.value
			case 2:
				message = f.bytes
			}
		}
	}
	switch {
	case !ok:
		return errNoMessage
	case count == 0:
		return nil
	}
	return &rejected{fmt.Sprintf("the backend rejected %d of its items: %.200q", count, message)}
}

// field is a field of a message: a varint, or bytes.
type field struct {
	number uint64
	value  uint64
	bytes  []byte
}

// Wire types of Protocol Buffers.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

// fields returns the fields of a message, and false if b is not a message.
func fields(b []byte) (all []field, ok bool) {
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 || key>>3 == 0 {
			return all, false
		}
		f, size := field{number: key >> 3}, uint64(0)
		b = b[n:]
		switch key & 7 {
		case wireFixed8:
			size = 8
		case wireFixed4:
			size = 4
		case wireVarint, wireBytes:
			if f.value, n = binary.Uvarint(b); n <= 0 {
				return all, false
			}
			if b = b[n:]; key&7 == wireBytes {
				size = f.value
			}
		default:
			return all, false
		}
		if size > uint64(len(b)) {
			return all, false
		}
		f.bytes, b = b[:size], b[size:]
		all = append(all, f)
	}
	return all, true
}

// compressedOTLP returns the format of OpenTelemetry profiles with a resource, compressed by gzip.
func compressedOTLP(resource map[string]string) export.Format {
	format, _ := export.ByName("otlp")
	format.Write = func(w io.Writer, p *export.Profile) error {
		q := *p
		q.Resource = resource
		z := gzip.NewWriter(w)
		if err := export.WriteOTLP(z, &q); err != nil {
			return err
		}
		return z.Close()
	}
	return format
}
