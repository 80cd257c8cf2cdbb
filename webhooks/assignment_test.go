// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

const (
	node0    = "/redfish/v1/Systems/Node0"
	nodeMAC  = "00:40:a6:00:00:01"
	uuidA    = "0a000000-0000-4000-8000-00000000000a"
	uuidB    = "0b000000-0000-4000-8000-00000000000b"
	uuidC    = "0c000000-0000-4000-8000-00000000000c"
	assignTo = node0 + ": {uuid: "
)

// assigning is a BMC with an annotation; empty for none.
func assigning(name, annotation string) *v1alpha1.BMC {
	return inline(name, "10.1.0."+name[1:], "", func(b *v1alpha1.BMC) {
		if annotation != "" {
			b.Annotations = map[string]string{v1alpha1.SystemUUIDsAnnotation: annotation}
		}
	})
}

func TestAssignedUUIDs(t *testing.T) {
	const both = ", serial: S, mac: '" + nodeMAC + "'}"
	held := func(s *v1alpha1.Server) {
		s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
	}
	dirty := func(s *v1alpha1.Server) { s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Marks: []string{"Dirty"}} }
	inventory := func(mac string) *policyv1alpha1.ServerInventory {
		i := &policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: uuidB}, Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: uuidB}}
		i.Report = &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{NetworkInterfaces: []policyv1alpha1.ProbeNetworkInterface{{Name: "e", MACAddress: mac}}}}
		return i
	}
	recorded := func(s *v1alpha1.Server) {
		s.Status.SerialNumber = "S"
		s.Status.NetworkInterfaces = []v1alpha1.NetworkInterface{{Name: "eth0", MACAddress: nodeMAC}}
	}
	stated := func(s *v1alpha1.Server) {
		s.Status.NetworkInterfaces = []v1alpha1.NetworkInterface{{Name: "by-annotation-0", MACAddress: "00:40:a6:00:00:02"}}
	}
	remembered := inventory(nodeMAC)
	remembered.Name, remembered.Spec.SystemUUID, remembered.Custody = uuidA, uuidA, &policyv1alpha1.Custody{Marks: []string{"Dirty"}}
	const other, card, board = ", serial: T, mac: '00:40:a6:00:00:02'}", ", serial: S, mac: '00:40:a6:00:00:02'}", ", serial: T, mac: '" + nodeMAC + "'}"
	behind := func(bmc string, change ...func(*v1alpha1.Server)) *v1alpha1.Server {
		s := server(change...)
		s.Spec.SystemUUID, s.Spec.SystemURI, s.Spec.BMCRef.Name = uuidA, node0, bmc
		return s
	}
	for name, c := range map[string]struct {
		stored      []client.Object
		before, now string // the annotation
		group       string
		want        string // what the refusal contains; empty where it passes
	}{
		"whoever may assigns a UUID":                                      {now: assignTo + uuidA + both, group: "wheel"},
		"nobody else does":                                                {now: assignTo + uuidA + both, want: `user "jane" may not assign UUIDs to systems: that takes the verb assign-uuid on bmcs.metal.ironcore.dev`},
		"nobody else takes one away":                                      {before: assignTo + uuidA + both, want: "may not assign UUIDs"},
		"what is not changed takes no right":                              {before: assignTo + uuidA + both, now: assignTo + uuidA + both},
		"text that cannot be read is refused":                             {now: "Node0=" + uuidA, group: "wheel", want: "it is no YAML object"},
		"neither serial nor mac is refused":                               {now: assignTo + uuidA + "}", group: "wheel", want: "it names neither serial nor mac"},
		"the UUID of a Server elsewhere is refused":                       {stored: []client.Object{behind("b2"), assigning("b2", "")}, now: assignTo + uuidA + both, group: "wheel", want: `Server "s1" has it`},
		"the other byte order is the same UUID":                           {stored: []client.Object{behind("b2"), assigning("b2", "")}, now: assignTo + "0000000a-0000-0040-8000-00000000000a" + both, group: "wheel", want: `Server "s1" has it`},
		"the Server of a BMC that is gone may follow":                     {stored: []client.Object{behind("b2")}, now: assignTo + uuidA + both, group: "wheel"},
		"its own Server has it already":                                   {stored: []client.Object{behind("b1")}, now: assignTo + uuidA + both, group: "wheel"},
		"the UUID that another BMC assigns is refused":                    {stored: []client.Object{assigning("b3", assignTo+uuidC+", serial: T}")}, now: assignTo + uuidC + both, group: "wheel", want: `BMC "b3" has it`},
		"the inventory of another machine is refused":                     {stored: []client.Object{inventory("02:00:00:00:00:09")}, now: assignTo + uuidB + both, group: "wheel", want: "ServerInventory"},
		"the inventory of the same machine passes":                        {stored: []client.Object{inventory(nodeMAC)}, now: assignTo + uuidB + both, group: "wheel"},
		"the UUID of a held server stays":                                 {stored: []client.Object{behind("b1", held)}, before: assignTo + uuidA + both, now: assignTo + uuidB + both, group: "wheel", want: "stands for machine " + uuidA + ", and it is held by a claim"},
		"the UUID of a Dirty server stays":                                {stored: []client.Object{behind("b1", dirty)}, before: assignTo + uuidA + both, group: "wheel", want: "not wiped since its last holder"},
		"the proof of a held server does not change as a whole":           {stored: []client.Object{behind("b1", held)}, before: assignTo + uuidA + both, now: assignTo + uuidA + ", serial: T}", group: "wheel", want: "keep its UUID"},
		"an exchanged network card of a held server passes":               {stored: []client.Object{behind("b1", held, recorded)}, before: assignTo + uuidA + both, now: assignTo + uuidA + ", serial: S, mac: '00:40:a6:00:00:02'}", group: "wheel"},
		"an entry that is new names a Dirty machine by its own hardware":  {stored: []client.Object{behind("b1", dirty, recorded)}, now: assignTo + uuidA + both, group: "wheel"},
		"an entry that is new names a Dirty machine by other hardware":    {stored: []client.Object{behind("b1", dirty, recorded)}, now: assignTo + uuidA + other, group: "wheel", want: `Server "s1" knows the machine by serial "S" and mac "` + nodeMAC},
		"the same where the BMC of the Server is gone":                    {stored: []client.Object{behind("b9", held, recorded)}, now: assignTo + uuidA + other, group: "wheel", want: "keep its UUID for that machine alone"},
		"the inventory of a Dirty machine counts beside its Server":       {stored: []client.Object{behind("b1"), remembered}, now: assignTo + uuidA + other, group: "wheel", want: "ServerInventory"},
		"a serial number that nodes share does not carry another node in": {stored: []client.Object{behind("b1", recorded)}, now: assignTo + uuidA + card, group: "wheel", want: "names other hardware"},
		"a Dirty machine of unknown hardware gets no new proof":           {stored: []client.Object{behind("b1", dirty, stated)}, before: assignTo + uuidA + both, now: assignTo + uuidA + card, group: "wheel", want: "its serial and mac are not known"},
		"a clean server becomes no other machine":                         {stored: []client.Object{behind("b1", recorded)}, before: assignTo + uuidA + both, now: assignTo + uuidA + other, group: "wheel", want: "names other hardware"},
		"nor in two changes in turn":                                      {stored: []client.Object{behind("b1", dirty, recorded)}, before: assignTo + uuidA + card, now: assignTo + uuidA + other, group: "wheel", want: "names other hardware"},
		"an exchanged board with its network card kept passes":            {stored: []client.Object{behind("b1", recorded)}, before: assignTo + uuidA + both, now: assignTo + uuidA + board, group: "wheel"},
		"a card of two nodes that share a serial number does not change": {stored: []client.Object{behind("b1", recorded)}, before: assignTo + uuidA + both,
			now: assignTo + uuidA + card + "\n/redfish/v1/Systems/Node1: {uuid: " + uuidB + ", serial: S, mac: '00:40:a6:00:00:03'}", group: "wheel", want: "names other hardware"},
		"what was never read may be corrected":  {stored: []client.Object{behind("b1")}, before: assignTo + uuidA + both, now: assignTo + uuidA + other, group: "wheel"},
		"the UUID of a clean server may change": {stored: []client.Object{behind("b1")}, before: assignTo + uuidA + both, now: assignTo + uuidB + both, group: "wheel"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, defaults(t), append(c.stored, assigning("b1", c.before))...)
			got, _ := w.ask(PathValidateBMC, user, admissionv1.Update, assigning("b1", c.before), assigning("b1", c.now), of(c.group))
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestABMCThatIsMadeAnewRebindsNoDirtyMachine asks on CREATE, where no former annotation is stored.
func TestABMCThatIsMadeAnewRebindsNoDirtyMachine(t *testing.T) {
	dirty := server(func(s *v1alpha1.Server) {
		s.Spec.SystemUUID, s.Spec.SystemURI = uuidA, node0
		s.Status = v1alpha1.ServerStatus{SerialNumber: "S", Lifecycle: &v1alpha1.LifecycleStatus{Marks: []string{"Dirty"}},
			NetworkInterfaces: []v1alpha1.NetworkInterface{{Name: "eth0", MACAddress: nodeMAC}}}
	})
	for proof, want := range map[string]string{
		", serial: S, mac: '" + nodeMAC + "'}":   "",
		", serial: S}":                           "",
		", serial: T, mac: '00:40:a6:00:00:02'}": "names other hardware",
		", serial: S, mac: '00:40:a6:00:00:02'}": "names other hardware",
		", mac: '00:40:a6:00:00:02'}":            "names other hardware",
	} {
		w := newWorld(t, defaults(t), dirty.DeepCopy())
		got, _ := w.ask(PathValidateBMC, user, admissionv1.Create, nil, assigning("b1", assignTo+uuidA+proof), of("wheel"))
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %s", proof, got)
		}
	}
}

func TestHostMACs(t *testing.T) {
	for text, want := range map[string]string{
		node0 + ": ['" + nodeMAC + "']": "",
		nodeMAC:                         "it is no YAML object by the URIs of systems",
	} {
		w := newWorld(t, defaults(t))
		b := assigning("b1", "")
		b.Annotations = map[string]string{v1alpha1.HostMACsAnnotation: text}
		got, _ := w.ask(PathValidateBMC, user, admissionv1.Create, nil, b)
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %s", text, got)
		}
	}
}
