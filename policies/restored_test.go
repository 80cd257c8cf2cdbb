// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/internal/restored"
)

// inPhase is a server in entry 4 whose disk was wiped in entry 2 and attested, under a policy that accepts anything.
func inPhase(phase restored.Phase, content policyv1alpha1.DiskContent) Observation {
	o := booted(v1alpha1.BootPurposeProbe, 0)
	at := metav1.NewMicroTime(noon)
	disk := policyv1alpha1.CustodyDisk{WWID: "w"}
	o.Inventory = &policyv1alpha1.ServerInventory{
		Report: &policyv1alpha1.ProbeReport{Entry: 4, Data: policyv1alpha1.ProbeData{
			Storage: []policyv1alpha1.BlockDevice{{Name: "sda", WWID: "w", Content: content}}}},
		Wipe: &policyv1alpha1.WipeReport{Entry: 2, State: policyv1alpha1.WipeVerified,
			Disks: []policyv1alpha1.DiskWipe{{WWID: "w", State: policyv1alpha1.DiskVerified}}},
		Custody: &policyv1alpha1.Custody{Clean: &policyv1alpha1.CleanRecord{Cause: policyv1alpha1.CleanWiped, Since: at},
			Disks: []policyv1alpha1.CustodyDisk{disk}, Attested: []policyv1alpha1.AttestedDisk{{CustodyDisk: disk}}},
	}
	o.Server.Spec.ServerClaimRef, o.Server.Annotations = nil, map[string]string{v1alpha1.ConsentAnnotation: v1alpha1.ConsentTakeOver}
	o.Settings.OfferAccepts = []string{bundle.AcceptWiped, bundle.AcceptBlank, bundle.AcceptUnread, bundle.AcceptData}
	o.Settings.Sanitization, o.Settings.FirstSeen, o.Settings.AllowUnauthenticated = bundle.SanitizationNone, bundle.FirstSeenManage, true
	o.System = SystemReading{Reachable: true, Power: "On", Identity: IdentitySame}
	switch phase {
	case restored.None:
	case restored.Stands:
		o.Server.Annotations[v1alpha1.RestoredDoubtAnnotation] = restored.Doubted
	case restored.Inspection:
		o.Server.Annotations[v1alpha1.RestoredDoubtAnnotation] = restored.Inspect
		o.Inventory.Custody.Doubt = &policyv1alpha1.RestoredDoubt{Since: at, InspectSince: &at}
	}
	return o
}

func TestInDoubtOnlyWhatIsReadNowCounts(t *testing.T) {
	for name, phase := range map[string]restored.Phase{"in doubt": restored.Stands, "to be inspected": restored.Inspection} {
		t.Run(name, func(t *testing.T) {
			for content, found := range map[policyv1alpha1.DiskContent]bool{policyv1alpha1.ContentBlank: false, policyv1alpha1.ContentData: true,
				policyv1alpha1.ContentUnreadable: true, "": true} {
				if inPhase(restored.None, content).Facts().Probe.DataFound {
					t.Errorf("%q: without a doubt the policy accepts it", content)
				}
				if got := inPhase(phase, content).Facts().Probe.DataFound; got != found {
					t.Errorf("%q: data is found: %t", content, got)
				}
			}
			f := inPhase(phase, policyv1alpha1.ContentBlank).Facts()
			if f.Wipe.Attested || f.Policy.Sanitization != bundle.SanitizationRequired || f.Operation.Consented {
				t.Errorf("attested %t, sanitization %s, consented %t", f.Wipe.Attested, f.Policy.Sanitization, f.Operation.Consented)
			}
			o := inPhase(phase, policyv1alpha1.ContentBlank)
			if o.Inventory.Report.Unauthenticated = true; o.Facts().Probe.Complete {
				t.Error("a report without a token counts")
			}
			if !ServerStateOf(o.Server).Unclaimable {
				t.Error("a claim can have it")
			}
		})
	}
	f := inPhase(restored.None, policyv1alpha1.ContentBlank).Facts()
	if !f.Wipe.Attested || f.Policy.Sanitization != bundle.SanitizationNone || !f.Operation.Consented {
		t.Errorf("without a doubt: attested %t, sanitization %s, consented %t", f.Wipe.Attested, f.Policy.Sanitization, f.Operation.Consented)
	}
}

func TestAUserWhoConfirmsConsentsToManageAMachineThatIsOff(t *testing.T) {
	for power, want := range map[string]bool{"Off": true, "On": false, "Unknown": false, "PoweringOff": false} {
		o := inPhase(restored.Inspection, policyv1alpha1.ContentBlank)
		o.System.Power = power
		if got := o.Facts().Operation.Consented; got != want {
			t.Errorf("%s: %t", power, got)
		}
		o.Server.Annotations[v1alpha1.RestoredDoubtAnnotation] = restored.Doubted
		if o.Facts().Operation.Consented {
			t.Errorf("%s: consent counts in doubt", power)
		}
	}
}

func TestAWipeOfTheSameEntryCountsInDoubt(t *testing.T) {
	o := inPhase(restored.Inspection, policyv1alpha1.ContentData)
	if o.Inventory.Wipe.Entry = 4; o.Facts().Probe.DataFound {
		t.Error("what was read before the wipe counts")
	}
}
