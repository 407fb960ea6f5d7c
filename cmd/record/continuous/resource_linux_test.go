package continuous

import (
	"os"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/cmptest"
	"github.com/seedwalk/seedwalk/testkit/expect"
)

func TestContainer(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for text, want := range map[string]map[string]string{
		"0::/": {},
		"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b2c3d_0000_1111_2222_333344445555.slice/cri-containerd-" + id + ".scope\n": {
			"container.id": id, "k8s.pod.uid": "0a1b2c3d-0000-1111-2222-333344445555"},
		"12:cpu:/docker/" + id + "\n": {"container.id": id},
		"0::/user.slice/0123.scope\n": {},
	} {
		got := map[string]string{}
		containerOf(text, got)
		cmptest.Same(t, want, got, "%q", text)
	}
}

// A process describes itself by the environment of its own telemetry. Attributes that are too long are
// dropped.
func TestDeclared(t *testing.T) {
	long := strings.Repeat("x", maxValue+1)
	for text, want := range map[string]map[string]string{
		"": {"service.name": "app"},
		"OTEL_RESOURCE_ATTRIBUTES=service.name=a,deployment.environment = prod%20eu ,bad=%zz,=v,k=\x00X=1": {"service.name": "a", "deployment.environment": "prod eu"},
		"OTEL_SERVICE_NAME=shop\x00OTEL_RESOURCE_ATTRIBUTES=service.name=a":                                {"service.name": "shop"},
		"OTEL_SERVICE_NAME=" + long + "\x00OTEL_RESOURCE_ATTRIBUTES=a=" +
			long: {"service.name": "app"},
	} {
		got := map[string]string{"service.name": "app"}
		declared([]byte(text), got)
		cmptest.Same(t, want, got, "%.60q", text)
	}
	many := map[string]string{}
	declared([]byte("OTEL_RESOURCE_ATTRIBUTES="+strings.Repeat("a=b,", 10)+keys(1000)), many)
	expect.True(t, len(many) <= maxAttributes, "%d attributes", len(many))
	r := resource(process{pid: os.Getpid(), name: "self"})
	expect.True(t, r["service.name"] != "" && r["host.name"] != "", "%v", r)
}

func keys(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("k", 1+i%40) + string(rune('a'+i%26)) + "=v,")
	}
	return b.String()
}
