// Manifest reads Kubernetes manifests by the types that Kubernetes publishes, refuses fields that
// these do not have, and prints the pod of each as JSON. Its arguments are files.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	for _, path := range os.Args[1:] {
		spec, err := read(path)
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(spec)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, path+":", err)
			os.Exit(1)
		}
	}
}

func read(path string) (*corev1.PodSpec, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(data, &kind); err != nil {
		return nil, err
	}
	switch kind.APIVersion + " " + kind.Kind {
	case "apps/v1 DaemonSet":
		var d appsv1.DaemonSet
		err := yaml.UnmarshalStrict(data, &d)
		if s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector); err != nil || s.Empty() {
			return nil, fmt.Errorf("its selector is none: %v", err)
		}
		for k, v := range d.Spec.Selector.MatchLabels {
			if d.Spec.Template.Labels[k] != v {
				return nil, fmt.Errorf("the selector does not match label %s of the pods", k)
			}
		}
		return &d.Spec.Template.Spec, err
	case "v1 Pod":
		var p corev1.Pod
		err := yaml.UnmarshalStrict(data, &p)
		return &p.Spec, err
	}
	return nil, fmt.Errorf("%s %s is not known here", kind.APIVersion, kind.Kind)
}
