// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// entry is one of managedFields, in the form in which a kube-apiserver 1.37 answers it; at is minutes after noon.
func entry(manager string, operation metav1.ManagedFieldsOperationType, subresource string, at int, fields string) metav1.ManagedFieldsEntry {
	when := metav1.NewTime(noon.Add(time.Duration(at) * time.Minute))
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "metal.ironcore.dev/v1alpha1",
		Time: &when, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

const (
	specOfOurs   = `{"f:metadata":{"f:finalizers":{".":{},"v:\"metal.ironcore.dev/server\"":{}}},"f:spec":{".":{},"f:bmcRef":{},"f:systemURI":{},"f:systemUUID":{}}}`
	statusOfOurs = `{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:status":{},"f:type":{}}},"f:powerState":{},"f:state":{}}}`
	aLabel       = `{"f:metadata":{"f:labels":{".":{},"f:rack":{}}}}`
)

// pruned is a server that was Available when its lifecycle was dropped, and its inventory. The clean record is of noon.
func pruned(change func(*v1alpha1.Server, *policyv1alpha1.Custody)) (*v1alpha1.Server, *policyv1alpha1.ServerInventory) {
	s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a", Finalizers: []string{v1alpha1.FinalizerServer}}}
	s.Status.State = v1alpha1.StateAvailable
	s.ManagedFields = []metav1.ManagedFieldsEntry{
		entry("metalaw", "Update", "", -60, specOfOurs), entry("metalaw", "Update", "status", 30, statusOfOurs)}
	inv := &policyv1alpha1.ServerInventory{Custody: &policyv1alpha1.Custody{Clean: &policyv1alpha1.CleanRecord{
		Since: metav1.NewMicroTime(noon), Cause: policyv1alpha1.CleanWiped, ServerUID: "uid-a"}}}
	change(s, inv.Custody)
	return s, inv
}

func TestAPrunedServerIsCleanOnlyByARecordAndManagedFieldsThatNameUsAlone(t *testing.T) {
	type server = v1alpha1.Server
	type custody = policyv1alpha1.Custody
	also := func(entries ...metav1.ManagedFieldsEntry) func(*server, *custody) {
		return func(s *server, _ *custody) { s.ManagedFields = append(s.ManagedFields, entries...) }
	}
	only := func(entries ...metav1.ManagedFieldsEntry) func(*server, *custody) {
		return func(s *server, _ *custody) { s.ManagedFields = entries }
	}
	status := func(fields string) metav1.ManagedFieldsEntry { return entry("metalaw", "Update", "status", 30, fields) }
	undated := func(e metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry { e.Time = nil; return e }
	before := metav1.NewMicroTime(noon.Add(-time.Minute))
	at := metav1.NewMicroTime(noon)
	for name, c := range map[string]struct {
		change func(*server, *custody)
		// why is what is said of it; clean ones are those of which it begins with "recorded as clean".
		why string
	}{
		"nobody but us wrote it since its wipe": {func(*server, *custody) {},
			"recorded as clean since 2026-05-01T12:00:00Z (Wiped), and only metalaw wrote its status"},
		"no claim ever booted it": {func(_ *server, c *custody) { c.Clean.Cause = policyv1alpha1.CleanNeverBooted },
			"recorded as clean since 2026-05-01T12:00:00Z (NeverBooted), and only metalaw wrote its status"},
		"it was dirty before its wipe": {func(_ *server, c *custody) { c.DirtiedAt = &before },
			"recorded as clean since 2026-05-01T12:00:00Z (Wiped), and only metalaw wrote its status"},
		"somebody labelled it since": {also(entry("kubectl-label", "Update", "", 90, aLabel)),
			"recorded as clean since 2026-05-01T12:00:00Z (Wiped), and only metalaw wrote its status"},
		"somebody applied annotations, taints and a cordon since": {also(entry("argocd", "Apply", "", 90,
			`{"f:metadata":{"f:annotations":{"f:metal.ironcore.dev/operation":{}}},"f:spec":{"f:taints":{},"f:unclaimable":{}}}`)),
			"recorded as clean since 2026-05-01T12:00:00Z (Wiped), and only metalaw wrote its status"},
		"somebody wrote its spec before the record": {also(entry("kubectl", "Update", "", -10, `{"f:spec":{"f:reclaimPolicy":{}}}`)),
			"recorded as clean since 2026-05-01T12:00:00Z (Wiped), and only metalaw wrote its status"},

		"no record":                               {func(_ *server, c *custody) { c.Clean = nil }, "its inventory has no record that it is clean"},
		"a record without a time":                 {func(_ *server, c *custody) { c.Clean.Since = metav1.MicroTime{} }, "the record in its inventory that it is clean is incomplete"},
		"a record of a cause that we do not know": {func(_ *server, c *custody) { c.Clean.Cause = "Waived" }, "the record in its inventory that it is clean is incomplete"},
		"a record beside the mark Dirty":          {func(_ *server, c *custody) { c.Marks = []string{"Dirty"} }, "its inventory remembers a holder's data"},
		"a record beside a holder": {func(_ *server, c *custody) { c.LastHolder = &policyv1alpha1.Holder{Namespace: "shop", Name: "web"} },
			"its inventory remembers a holder's data"},
		"Dirty when the record was made": {func(_ *server, c *custody) { c.DirtiedAt = &at }, "it was marked Dirty after it was recorded as clean"},
		"restored as another object":     {func(s *server, _ *custody) { s.UID = "uid-b" }, "the record that it is clean speaks of another Server object, as after a restore"},
		"a record of no object":          {func(s *server, c *custody) { s.UID, c.Clean.ServerUID = "", "" }, "the record that it is clean speaks of another Server object, as after a restore"},
		"a claim's reference":            {func(s *server, _ *custody) { s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Name: "web"} }, "the server remembers a claim that held it"},
		"a holder's UID": {func(s *server, _ *custody) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ClaimUIDAnnotation, "u")
		}, "the server remembers a claim that held it"},
		"a release record": {func(s *server, _ *custody) {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1alpha1.ReleasedClaimAnnotation, "u")
		}, "the server remembers a claim that held it"},
		"no managed fields":                    {only(), "the server has no managed fields"},
		"an empty entry":                       {also(metav1.ManagedFieldsEntry{}), `the entry of manager "" in its managed fields has no name or no time`},
		"an undated entry of ours":             {only(undated(status(statusOfOurs))), `the entry of manager "metalaw" in its managed fields has no name or no time`},
		"an undated label":                     {also(undated(entry("kubectl-label", "Update", "", 0, aLabel))), `the entry of manager "kubectl-label" in its managed fields has no name or no time`},
		"an entry that is no JSON":             {also(entry("x", "Update", "", -10, `{"f:`)), `the entry of manager "x" in its managed fields cannot be read`},
		"an entry that names no field":         {also(entry("x", "Update", "", -10, `{}`)), `the entry of manager "x" in its managed fields cannot be read`},
		"an entry of fields by key alone":      {also(entry("x", "Update", "", -10, `{"k:{\"a\":\"b\"}":{}}`)), `the entry of manager "x" in its managed fields cannot be read`},
		"ours without the state":               {only(status(`{"f:status":{"f:powerState":{}}}`)), "its managed fields do not name metalaw for its state"},
		"ours by an apply":                     {only(entry("metalaw", "Apply", "status", 30, statusOfOurs)), `manager "metalaw" wrote status`},
		"metal-operator wrote its state":       {also(entry("manager", "Update", "status", 40, `{"f:status":{"f:state":{}}}`)), `manager "manager" wrote status.state`},
		"metal-operator wrote its power":       {also(entry("manager", "Update", "status", -90, `{"f:status":{"f:powerState":{}}}`)), `manager "manager" wrote status.powerState`},
		"somebody's claim is written on it":    {also(entry("manager", "Update", "", 40, `{"f:spec":{"f:serverClaimRef":{".":{},"f:name":{},"f:namespace":{}}}}`)), `manager "manager" wrote spec.serverClaimRef`},
		"somebody set its power":               {also(entry("kubectl-edit", "Update", "", -40, `{"f:spec":{"f:power":{}}}`)), `manager "kubectl-edit" wrote spec.power`},
		"a foreign boot since the record":      {also(entry("manager", "Update", "", 40, `{"f:spec":{"f:bootConfigurationRef":{"f:name":{}}}}`)), `manager "manager" wrote spec.bootConfigurationRef after it was recorded as clean`},
		"the same in the second of the record": {also(entry("manager", "Update", "", 0, `{"f:spec":{"f:bootConfigurationRef":{}}}`)), `manager "manager" wrote spec.bootConfigurationRef after it was recorded as clean`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ProofOf(pruned(c.change))
			want := Proof{Why: c.why, Clean: strings.HasPrefix(c.why, "recorded as clean since")}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhatIsProvenTakesNoOtherFearAway(t *testing.T) {
	proven := Proof{Clean: true, Why: "proven"}
	for name, c := range map[string]struct {
		state v1alpha1.ServerState
		marks []string
		ref   bool
		proof Proof
		want  []Inherited
	}{
		"a lost lifecycle in Available":     {"Available", nil, false, proven, nil},
		"one in Error":                      {"Error", nil, false, proven, nil},
		"the same where it is not proven":   {"Available", nil, false, Proof{Why: "it has no record"}, []Inherited{{"Dirty", "its status was lost: it has no record"}}},
		"a status that was lost as a whole": {"", nil, false, proven, []Inherited{{"Dirty", "its status was lost: proven"}}},
		"a state in which a claim's data is": {"Released", nil, false, proven,
			[]Inherited{{"Dirty", "a machine in state Released may hold a claim's data"}, {"Managed", "a machine in state Released was booted by its operator"}}},
		"a state that we do not know": {"Tainted", nil, false, proven, []Inherited{{"Dirty", "a machine in state Tainted may hold a claim's data"}}},
		"a claim's reference":         {"Available", nil, true, proven, []Inherited{{"Dirty", "it names a claim"}}},
		"a mark in its inventory":     {"Available", []string{"Dirty"}, false, proven, []Inherited{{"Dirty", "its inventory says so"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, inv := pruned(func(s *v1alpha1.Server, custody *policyv1alpha1.Custody) {
				s.Status.State, custody.Marks = c.state, c.marks
				if c.ref {
					s.Spec.ServerClaimRef = &v1alpha1.ObjectReference{Namespace: "shop", Name: "web"}
				}
			})
			if diff := cmp.Diff(c.want, Inheritance(s, inv, c.proof)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestACleanRecordIsEarnedByAWipeOrByALifecycleWithoutAPast(t *testing.T) {
	moves := func(rules ...string) []v1alpha1.LifecycleMove {
		var all []v1alpha1.LifecycleMove
		from := v1alpha1.ServerState("")
		for i := 0; i < len(rules); i += 2 {
			to := v1alpha1.ServerState(rules[i+1])
			all = append(all, v1alpha1.LifecycleMove{From: from, To: to, Rule: rules[i], Entry: int64(i/2 + 1)})
			from = to
		}
		return all
	}
	inspected := moves("Started", "Initial", "ProbeDue", "Discovery", "ProbeReported", "Available")
	again := moves("Started", "Initial", "ProbeDue", "Discovery", "NeverArmed", "Error", "Cleared", "Initial", "ProbeDue", "Discovery", "ProbeReported", "Available")
	claimed := append(inspected[:3:3], moves("Claimed", "Reserved", "ClaimEnded", "Available")...)
	claimed[3].From = "Available"
	dirtied := metav1.NewMicroTime(noon.Add(-time.Hour))
	verified := func(entry int64) *policyv1alpha1.WipeReport {
		return &policyv1alpha1.WipeReport{State: policyv1alpha1.WipeVerified, Entry: entry}
	}
	record := func(cause policyv1alpha1.CleanCause, uid string) *policyv1alpha1.CleanRecord {
		r := &policyv1alpha1.CleanRecord{Since: metav1.NewMicroTime(noon), Cause: cause}
		r.ServerUID = "uid-a"
		if uid != "" {
			r.ServerUID = "uid-old"
		}
		return r
	}
	type custody = policyv1alpha1.Custody
	for name, c := range map[string]struct {
		history []v1alpha1.LifecycleMove
		entry   int64
		marks   []string
		inv     *policyv1alpha1.ServerInventory
		want    *policyv1alpha1.CleanRecord
	}{
		"an inspection without a past":           {inspected, 3, nil, nil, record("NeverBooted", "")},
		"the same after an error on the way":     {again, 6, nil, &policyv1alpha1.ServerInventory{}, record("NeverBooted", "")},
		"a wipe in the entry before":             {claimed, 8, nil, &policyv1alpha1.ServerInventory{Wipe: verified(7), Custody: &custody{Marks: []string{"Dirty"}, DirtiedAt: &dirtied}}, record("Wiped", "")},
		"a Server made anew for a clean machine": {inspected, 9, nil, &policyv1alpha1.ServerInventory{Custody: &custody{Clean: record("Wiped", "old")}}, record("Wiped", "")},
		"nothing new beside a record that holds": {inspected, 3, nil, &policyv1alpha1.ServerInventory{Custody: &custody{Clean: record("Wiped", "")}}, nil},
		"a waiver, beside an older wipe":         {claimed, 8, nil, &policyv1alpha1.ServerInventory{Wipe: verified(3), Custody: &custody{Marks: []string{"Dirty"}, DirtiedAt: &dirtied}}, nil},
		"the same once the waiver is forgotten":  {claimed, 8, nil, &policyv1alpha1.ServerInventory{Wipe: verified(3), Custody: &custody{DirtiedAt: &dirtied, TimesClaimed: 1}}, nil},
		"a wipe that failed":                     {claimed, 8, nil, &policyv1alpha1.ServerInventory{Wipe: &policyv1alpha1.WipeReport{State: policyv1alpha1.WipeFailed, Entry: 7}}, nil},
		"the mark Dirty":                         {inspected, 3, []string{"Dirty"}, nil, nil},
		"a fear of data in its past":             {inspected, 3, nil, &policyv1alpha1.ServerInventory{Custody: &custody{DirtiedAt: &dirtied}}, nil},
		"a claim in its past":                    {inspected, 3, nil, &policyv1alpha1.ServerInventory{Custody: &custody{TimesClaimed: 1}}, nil},
		"an adoption":                            {moves("Adopted", "Available"), 1, nil, nil, nil},
		"a forced move":                          {moves("Started", "Initial", "Forced", "Available"), 2, nil, nil, nil},
		"a machine that was found running":       {moves("FoundRunning", "Observing", "Consented", "Initial"), 2, nil, nil, nil},
		"a history whose beginning is forgotten": {claimed[1:3], 12, nil, nil, nil},
		"no history":                             {nil, 1, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.Server{ObjectMeta: metav1.ObjectMeta{UID: "uid-a"}}
			s.Status.Lifecycle = &v1alpha1.LifecycleStatus{History: c.history, Entry: c.entry, Marks: c.marks}
			if diff := cmp.Diff(c.want, NextCleanRecord(s, c.inv, noon)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// FuzzProofOf holds that no managed fields but well-formed ones prove anything, and that a foreign owner of the status never passes.
func FuzzProofOf(f *testing.F) {
	for _, fields := range []string{specOfOurs, statusOfOurs, aLabel, `{"f:status":{}}`, `{"f:`, ``} {
		f.Add("metalaw", "Update", fields)
		f.Add("kubectl", "Apply", fields)
	}
	f.Fuzz(func(t *testing.T, manager, operation, fields string) {
		s, inv := pruned(func(s *v1alpha1.Server, _ *policyv1alpha1.Custody) {
			s.ManagedFields = []metav1.ManagedFieldsEntry{entry(manager, metav1.ManagedFieldsOperationType(operation), "status", 5, fields)}
		})
		if got := ProofOf(s, inv); got.Clean && (manager != "metalaw" || operation != "Update") {
			t.Errorf("%q by %q with %q proves it clean", operation, manager, fields)
		}
	})
}
