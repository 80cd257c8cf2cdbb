// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/controllers/maintenance/hold"
)

// Hold is what maintenances do with one server.
type Hold struct {
	// Holder is what spec.serverMaintenanceRef names; nil where it is not set.
	Holder *Holder `json:"holder,omitempty"`
	// Waiting are the maintenances that want the server and do not hold it.
	Waiting []Entry `json:"waiting"`
}

// Holder is the maintenance that a server is handed to.
type Holder struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ours says that the manager granted it. Another program or a user wrote the reference otherwise.
	Ours bool `json:"ours"`
	// Gone says that no such ServerMaintenance exists; Replaced, that one of that name exists and has another UID than was granted.
	Gone     bool `json:"gone,omitempty"`
	Replaced bool `json:"replaced,omitempty"`
	// Is is the maintenance; nil where it is gone or cannot be seen.
	Is *Entry `json:"is,omitempty"`
}

// HoldOf is what maintenances do with a server; all are those of the server, and complete says that none is missing among them.
func HoldOf(s *v1alpha1.Server, all []v1alpha1.ServerMaintenance, complete bool) Hold {
	is := Hold{Waiting: []Entry{}}
	ref := s.Spec.ServerMaintenanceRef
	if ref != nil {
		uid := s.Annotations[v1alpha1.MaintenanceUIDAnnotation]
		h := &Holder{Namespace: ref.Namespace, Name: ref.Name, Ours: uid != ""}
		m := lists.Find(all, func(m *v1alpha1.ServerMaintenance) bool { return m.Namespace == ref.Namespace && m.Name == ref.Name })
		if m != nil {
			one := entryOf(m)
			h.Is, h.Replaced = &one, h.Ours && uid != string(m.UID)
		}
		h.Gone = m == nil && complete
		is.Holder = h
	}
	for i := range all {
		m := &all[i]
		if waits(m) && !hold.Named(s, m) {
			is.Waiting = append(is.Waiting, entryOf(m))
		}
	}
	return is
}

// foreign is what follows where the manager did not grant what holds a server.
const foreign = "another program or a user wrote it, and the manager neither clears it nor touches the machine"

// Words say which maintenance holds the server, and how it fares.
func (h *Holder) Words(t *terminal.Terminal) string {
	words := h.Namespace + "/" + h.Name
	switch {
	case !h.Ours && h.Gone:
		return words + ", which does not exist here; " + foreign
	case !h.Ours:
		return words + "; " + foreign
	case h.Gone:
		return words + " was granted and does not exist any more; the manager gives the server back"
	case h.Replaced:
		return words + " was granted and deleted, and one of the same name was made since; the manager gives the server back"
	case h.Is == nil:
		return words + " was granted"
	}
	words += fmt.Sprintf(", %s since %s", h.Is.State, t.Ago(h.Is.Since))
	if h.Is.Reason != "" {
		words += "; " + h.Is.why()
	}
	return words
}

// Words say which maintenance waits, and why.
func (e *Entry) Words() string { return fmt.Sprintf("%s/%s: %s", e.Namespace, e.Name, e.why()) }

// ReadHold reads what maintenances do with a server, those of all namespaces or else of the given ones. What the reader may not see is
// added to the notes.
func ReadHold(ctx context.Context, c client.Reader, s *v1alpha1.Server, notes *[]string, namespaces ...string) (Hold, error) {
	known := len(*notes)
	all, err := ofServer(ctx, c, s.Name, notes, namespaces...)
	return HoldOf(s, all, len(*notes) == known), err
}
