package api

import (
	"fmt"
	"strconv"
	"strings"
)

// Listing holds the methods of an interface, or those with one slot number.
type Listing struct {
	Name    string   `json:"name"`
	IID     string   `json:"iid,omitempty"`
	Methods []string `json:"methods"`
}

// List finds an interface by name, or a slot by number. It returns nil for an unknown one.
func (t *Tables) List(name string) *Listing {
	l := Listing{Name: name}
	slot, err := strconv.Atoi(strings.TrimPrefix(strings.ToLower(name), "slot "))
	add := func(of, method string, n int) {
		if err != nil && strings.EqualFold(of, name) {
			l.Name, l.IID = of, t.IIDs[of]
			l.Methods = append(l.Methods, fmt.Sprintf("%d %s", n, method))
		} else if err == nil && n == slot {
			l.Methods = append(l.Methods, of+"::"+method)
		}
	}
	for _, i := range t.Info {
		add(i.Interface, i.Name, i.Slot)
	}
	for _, c := range t.Callbacks {
		add(c.Interface, c.Name, c.Slot)
	}
	if l.Methods == nil {
		return nil
	}
	return &l
}

// Meanings explains the words of info.txt, each after its column, to a reader of one method.
var Meanings = map[string]string{
	"async":             "asynchronous: it may be called from anywhere",
	"sync":              "synchronous: on a managed thread inside a callback only; threads without a runtime Thread are allowed",
	"sync+gc":           "synchronous, and not in a callback whose scope forbids a collection; threads without a runtime Thread are allowed",
	"init":              "inside Initialize only",
	"own":               "rules of its own, below",
	"stub":              "not implemented",
	"gc triggers":       "it may start a collection or wait for one: hold no lock over it that a collection, a suspension, or a cooperative callback takes",
	"gc notrigger":      "it starts none",
	"gc unread":         "not known: no source is available",
	"locks takes":       "it may wait for locks of the CLR",
	"locks none":        "none",
	"locks reader":      "that of the code tables; the method does not wait for it (80131364)",
	"locks unread":      "not known: no source is available",
	"native yes":        "allowed",
	"native managed":    "answers 80131355",
	"native becomes":    "allowed, but makes the thread a managed one for good: not on a sampler's",
	"native kills":      "allowed, but can end the process: never",
	"thread yes":        "may be called while you hold a thread suspended",
	"thread reader":     "may be called while you hold a thread suspended: its lock is not waited for",
	"thread no":         "not while you hold a thread suspended: it can wait for what that thread owns, or that is not known",
	"runtime yes":       "may be called by the thread that holds SuspendRuntime",
	"runtime refused":   "not by the thread that holds SuspendRuntime: it owns the ThreadStore lock (80131363)",
	"runtime hangs":     "not by the thread that holds SuspendRuntime: it hangs forever",
	"attached true":     "yes",
	"attached false":    "no (8013136F)",
	"notification true": "yes", "notification false": "no (E_INVALIDARG)",
}
