// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

func TestCheckIdentities(t *testing.T) {
	server := func(name, uuid string) metalv1alpha1.Server {
		return metalv1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: metalv1alpha1.ServerSpec{SystemUUID: uuid, BMCRef: &corev1.LocalObjectReference{Name: "bmc-" + name}}}
	}
	machine := func(uuid, serial string, identity *policyv1alpha1.MachineIdentity) policyv1alpha1.ServerInventory {
		return policyv1alpha1.ServerInventory{Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: uuid}, Identity: identity,
			Report: &policyv1alpha1.ProbeReport{Data: policyv1alpha1.ProbeData{SystemInfo: policyv1alpha1.SystemInfo{
				SystemInformation: policyv1alpha1.SystemInformation{SerialNumber: serial}}}}}
	}
	shows := func(serials ...string) *policyv1alpha1.MachineIdentity {
		return &policyv1alpha1.MachineIdentity{BMC: &policyv1alpha1.BMCIdentity{Serials: serials}}
	}
	rival := shows()
	rival.Rivals = []policyv1alpha1.RivalBMC{{Name: "twin"}}
	refused := shows("A1B2C3")
	refused.Refused = &policyv1alpha1.RefusedIdentity{Reason: "other"}
	for name, c := range map[string]struct {
		state identityState
		err   error
		want  finding
	}{
		"nothing is there": {want: finding{"machine identity", Passed, "0 proved; 0 unproven; 0 whose last report is of another machine, or was refused; " +
			"0 whose UUID another BMC shows; 0 not known until their next inspection", ""}},
		"it cannot be read": {err: errors.New("forbidden"), want: unread("machine identity", errors.New("forbidden"))},
		"each is named": {state: identityState{
			servers: []metalv1alpha1.Server{server("good", "1"), server("mute", "2"), server("former", "3"), server("rivalled", "4"), server("other", "5"), server("new", "6")},
			inventories: []policyv1alpha1.ServerInventory{machine("1", "A1B2C3", shows("A1B2C3")), machine("2", "A1B2C4", shows()), machine("3", "A1B2C5", nil),
				machine("4", "A1B2C6", rival), machine("5", "A1B2C3", refused)}},
			want: finding{"machine identity", Warned, "1 proved; 1 unproven (mute); 1 whose last report is of another machine, or was refused (other); " +
				"1 whose UUID another BMC shows (rivalled (BMC bmc-rivalled and BMC twin)); 2 not known until their next inspection (former, new)",
				"see condition IdentityUnproven of each; have its BMC show a serial number or an address, inspect it again, or answer for it: metalaw server prove"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := checkIdentities(view{identities: c.state, identitiesErr: c.err}); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}
