// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/webhooks/bundles"
)

const (
	fleetHead    = "name: fleet\nversion: 1.0.0\n"
	fleetDigest  = "sha256:f000000000000000000000000000000000000000000000000000000000000000"
	missingState = `lifecycle.yaml:3:7: error: Claimed: there is no state "Nowhere" (write the name of a state) [lifecycle-state]`
	mayNotFleet  = `Forbidden: user "jane" may not change by what bundle "fleet" governs: that takes the verb activate on ` +
		`policyrevisions.policy.metalaw.dev of this name, which ClusterRole metalaw-policy-activator gives`
	stageField = "metadata.labels[policy.metalaw.dev/stage]: "
)

// bundleCase is a change of a ConfigMap by jane. stored is what there is besides.
type bundleCase struct {
	stored        []client.Object
	before, after *corev1.ConfigMap
	// may says that she may activate the bundle.
	may      bool
	want     string
	warnings []string
	// compiled is how many bundles are compiled for it.
	compiled int
}

func (c bundleCase) run(t *testing.T) {
	t.Helper()
	w, a := bundleWorld(t, c.stored...)
	var before, after client.Object
	op := admissionv1.Update
	if c.after != nil {
		after = c.after
	} else {
		op = admissionv1.Delete
	}
	if c.before != nil {
		before = c.before
	} else {
		op = admissionv1.Create
	}
	var edits []func(*admissionv1.AdmissionRequest)
	if c.may {
		edits = append(edits, activates)
	}
	got, warnings := w.ask(PathValidateBundle, user, op, before, after, edits...)
	if diff := cmp.Diff(c.want, got) + cmp.Diff(c.warnings, warnings) + cmp.Diff(c.compiled, a.times); diff != "" {
		t.Error(diff)
	}
}

func TestWhatABundleHolds(t *testing.T) {
	broken, doubtful := holds("lifecycle.yaml", "broken"), holds("lifecycle.yaml", "doubtful")
	another := bundleHead(holds("lifecycle.yaml", "other"))
	other := revisionOf(t, another)
	for name, c := range map[string]bundleCase{
		"a draft passes":                       {after: bundleHead(), compiled: 1},
		"a draft may be broken and is told so": {after: bundleHead(broken), compiled: 1, warnings: []string{"bundle fleet is stored as a draft, and would not be accepted: 1 error", missingState}},
		"a draft that is labelled so as well":  {after: bundleHead(broken, staged("draft")), compiled: 1, warnings: []string{"bundle fleet is stored as a draft, and would not be accepted: 1 error", missingState}},
		"a draft of which much is wrong is told the first lines": {after: bundleHead(holds("lifecycle.yaml", strings.Repeat("broken", 30))), compiled: 1,
			warnings: append(append([]string{"bundle fleet is stored as a draft, and would not be accepted: 30 errors"}, numbered(12)...),
				"and 18 more: run metalaw policy verify -f on the files to see all")},
		"a draft that takes too long is stored": {after: bundleHead(holds("lifecycle.yaml", "endless")), compiled: 1,
			warnings: []string{`the bundle is stored as a draft, and checking it took longer than 13s: bundle "fleet" could not be checked: context deadline exceeded`}},
		"a draft by another name than its own is told": {after: bundleHead(withLabel(policyv1alpha1.BundleLabel, "other")), compiled: 1,
			warnings: []string{`metadata.labels[policy.metalaw.dev/bundle]: Invalid value: "other": bundle.yaml names the bundle "fleet"; write the same name in both`}},
		"a draft of a version that exists is told": {stored: []client.Object{other}, after: bundleHead(), compiled: 1,
			warnings: []string{`data[bundle.yaml]: Invalid value: "1.0.0": version 1.0.0 of bundle fleet exists with another content (PolicyRevision ` + other.Name + `); raise version`}},
		"a draft with binary files is told":               {after: bundleHead(binary("x.rego")), compiled: 1, warnings: []string{"binaryData[x.rego]: the files of a bundle are text in UTF-8; store it under data"}},
		"a shadow passes, and anybody may store it":       {after: bundleHead(staged("shadow")), compiled: 1},
		"a shadow of which something is doubtful is told": {after: bundleHead(staged("shadow"), doubtful), compiled: 1, warnings: []string{"lifecycle.yaml:1:1: warning: it never fires [w]"}},
		"a broken shadow is refused with all that is wrong": {after: bundleHead(staged("shadow"), holds("lifecycle.yaml", "broken broken doubtful")), compiled: 1,
			want: "Invalid\ndata: bundle fleet is not accepted for stage shadow: 2 errors, 1 warning\n" +
				missingState + "\n" + strings.Replace(missingState, ":3:", ":4:", 1) + "\nlifecycle.yaml:1:1: warning: it never fires [w]"},
		"a draft that is broken cannot become a shadow": {before: bundleHead(broken), after: bundleHead(broken, staged("shadow")), compiled: 1,
			want: "Invalid\ndata: bundle fleet is not accepted for stage shadow: 1 error\n" + missingState},
		"a shadow that cannot be checked is refused": {after: bundleHead(staged("shadow"), holds("lifecycle.yaml", "endless")), compiled: 1,
			want: `bundle "fleet" could not be checked: context deadline exceeded`},
		"a shadow by another name than its own is refused": {after: bundleHead(staged("shadow"), withLabel(policyv1alpha1.BundleLabel, "other")), compiled: 1,
			want: "Invalid\n" + `metadata.labels[policy.metalaw.dev/bundle]: Invalid value: "other": bundle.yaml names the bundle "fleet"; write the same name in both`},
		"a shadow of a version that exists is refused": {stored: []client.Object{other}, after: bundleHead(staged("shadow")), compiled: 1,
			want: "Invalid\n" + `data[bundle.yaml]: Invalid value: "1.0.0": version 1.0.0 of bundle fleet exists with another content (PolicyRevision ` + other.Name + `); raise version`},
		"a shadow of another version passes": {stored: []client.Object{other}, after: bundleHead(staged("shadow"), holds("bundle.yaml", "1.1.0")), compiled: 1},
		"a shadow with binary files is refused": {after: bundleHead(staged("shadow"), binary("x.rego")), compiled: 1,
			want: "Forbidden\nbinaryData[x.rego]: Forbidden: the files of a bundle are text in UTF-8; store it under data"},
		"a word that is no stage is refused": {after: bundleHead(staged("production")), compiled: 1,
			want: "Invalid\n" + stageField + `Unsupported value: "production": supported values: "draft", "shadow", "canary", "active"`},
		"the content of a shadow stays": {before: bundleHead(staged("shadow")), after: bundleHead(staged("shadow"), holds("lifecycle.yaml", "other"), holds("bundle.yaml", "1.1.0")), compiled: 1,
			want: "Forbidden\ndata: Forbidden: bundle.yaml, lifecycle.yaml would change, and the files of a bundle of stage shadow stay as they are. " +
				"A change is a new version: raise version in bundle.yaml and store it in a ConfigMap of another name"},
		"binary content of a shadow stays": {before: bundleHead(staged("shadow")), after: bundleHead(staged("draft"), binary("x")), compiled: 1,
			want: "Forbidden\ndata: Forbidden: x would change, and the files of a bundle of stage shadow stay as they are. " +
				"A change is a new version: raise version in bundle.yaml and store it in a ConfigMap of another name",
			warnings: []string{"binaryData[x]: the files of a bundle are text in UTF-8; store it under data"}},
		"the content of a draft may change":           {before: bundleHead(), after: bundleHead(holds("lifecycle.yaml", "other")), compiled: 1},
		"a shadow may become a draft":                 {before: bundleHead(staged("shadow")), after: bundleHead(), compiled: 1},
		"what has nothing to do with it is not asked": {before: bundleHead(broken), after: bundleHead(broken, noted("example.com/note", "x"))},
		"a ConfigMap elsewhere is told that it does not count": {after: bundleHead(inNamespace("team-a"), staged("active"), broken),
			warnings: []string{"label policy.metalaw.dev/bundle means nothing in namespace team-a: policy bundles count in namespace metalaw-system only"}},
		"a ConfigMap elsewhere may go": {before: bundleHead(inNamespace("team-a"), staged("active"))},
	} {
		t.Run(name, c.run)
	}
}

// numbered are the lines of an error that is there again and again.
func numbered(n int) []string {
	var lines []string
	for i := range n {
		lines = append(lines, strings.Replace(missingState, ":3:", fmt.Sprintf(":%d:", 3+i), 1))
	}
	return lines
}

func TestWhoLetsABundleGovern(t *testing.T) {
	head := bundleHead(staged("shadow"))
	proven := revisionOf(t, head)
	inForce := revisionOf(t, head, atStage(policyv1alpha1.StageActive))
	canary := revisionOf(t, head, atStage(policyv1alpha1.StageCanary))
	stays := "revision " + inForce.Name + " stays in force, as the last good one, until another is promoted: label another version of the bundle policy.metalaw.dev/stage=active"
	ends := "revision " + inForce.Name + " is a canary, which ends: no further server adopts it, and those under it adopt what is in force in their next stable state"
	paused := revisionOf(t, head, atStage(policyv1alpha1.StageCanary), func(r *policyv1alpha1.PolicyRevision) {
		r.Status.Canary = &policyv1alpha1.CanaryStatus{Paused: true, Errors: 2, MaxHalts: new(int32), MaxErrors: new(int32)}
	})
	unfit := "revision " + paused.Name + " is a canary that has paused itself: 0 servers were halted under it (its budget is 0) and 2 entered Error (its budget is 0). " +
		"Promoted as it is, it governs the whole fleet; to end the canary instead, label ConfigMap fleet-1 policy.metalaw.dev/stage=shadow, then mend the bundle, and try the new version"
	on := func(objects ...client.Object) []client.Object { return objects }
	for name, c := range map[string]bundleCase{
		"who may, promotes a canary":                             {stored: on(canary), before: bundleHead(staged("canary"), rackCanary), after: bundleHead(staged("active"), rackCanary, activated), may: true},
		"who may, promotes one that has paused itself, is told":  {stored: on(paused), before: bundleHead(staged("canary"), rackCanary), after: bundleHead(staged("active"), activated), may: true, warnings: []string{unfit}},
		"who may, ends one that has paused itself, and is told":  {stored: on(paused), before: bundleHead(staged("canary"), rackCanary), after: bundleHead(staged("shadow")), may: true, warnings: []string{ends}},
		"who may, promotes what is in force under another label": {stored: on(inForce), before: head, after: bundleHead(staged("active"), activated), may: true},
		"who may, promotes":                                      {before: head, after: bundleHead(staged("active"), activated), may: true, compiled: 1},
		"what a revision holds already is not compiled again":    {stored: on(proven), before: head, after: bundleHead(staged("active"), activated), may: true},
		"a revision that lost its status is":                     {stored: on(revisionOf(t, head, unproven)), before: head, after: bundleHead(staged("active"), activated), may: true, compiled: 1},
		"nor is it where the draft goes up at once":              {stored: on(proven), before: bundleHead(), after: bundleHead(staged("active"), activated), may: true},
		"nor is one that had other files filled in":              {stored: on(filledOtherwise(t, head)), before: head, after: bundleHead(staged("active"), noted(policyv1alpha1.ActivatedByAnnotation, "jane "+filledOtherwise(t, head).Spec.Digest+" 2027-01-15T08:00:00Z")), may: true},
		"nor does it change where it has to be compiled again":   {stored: on(filledOtherwise(t, head, unproven)), before: head, after: bundleHead(staged("active"), noted(policyv1alpha1.ActivatedByAnnotation, "jane "+filledOtherwise(t, head).Spec.Digest+" 2027-01-15T08:00:00Z")), may: true, compiled: 1},
		"one of another engine is compiled again":                {stored: on(revisionOf(t, head, byEngine("0.0.1"))), before: head, after: bundleHead(staged("active"), activated), may: true, compiled: 1},
		"unless a manager of this one has done so":               {stored: on(revisionOf(t, head, byEngine("0.0.1"), loadedHere)), before: head, after: bundleHead(staged("active"), activated), may: true},
		"who may, restores one, and is told": {after: bundleHead(staged("active"), activated, func(cm *corev1.ConfigMap) {
			cm.Annotations[policyv1alpha1.ActivatedByAnnotation] += policyv1alpha1.ActivationRestored
		}), may: true, compiled: 1, warnings: []string{"the ConfigMap bears the record of a former activation, as one from a backup does. Where its PolicyRevision " +
			"came from a backup too, that revision's promotion says what is in force, and this label is none. To promote it: metalaw policy promote fleet-1"}},
		"who may not, does not":                               {before: head, after: bundleHead(staged("active"), activated), compiled: 1, want: "Forbidden\n" + stageField + mayNotFleet + bundles.StoreElsewise},
		"nor creates one that is active":                      {after: bundleHead(staged("active"), activated), compiled: 1, want: "Forbidden\n" + stageField + mayNotFleet + bundles.StoreElsewise},
		"nor a canary":                                        {before: head, after: bundleHead(staged("canary"), rackCanary, activated), compiled: 1, want: "Forbidden\n" + stageField + mayNotFleet + bundles.StoreElsewise},
		"nor widens a canary":                                 {stored: on(canary), before: bundleHead(staged("canary"), rackCanary), after: bundleHead(staged("canary"), noted(policyv1alpha1.CanaryPercentAnnotation, "50"), activated), want: "Forbidden\n" + "metadata.annotations[policy.metalaw.dev/servers]: " + mayNotFleet + bundles.StoreElsewise},
		"who may, widens it":                                  {stored: on(canary), before: bundleHead(staged("canary"), rackCanary), after: bundleHead(staged("canary"), noted(policyv1alpha1.CanaryPercentAnnotation, "50"), activated), may: true},
		"nor takes the stage away":                            {stored: on(inForce), before: bundleHead(staged("active")), after: bundleHead(), want: "Forbidden\n" + stageField + mayNotFleet, warnings: []string{stays}},
		"who may, takes the stage away, and is told":          {stored: on(inForce), before: bundleHead(staged("active")), after: bundleHead(), may: true, warnings: []string{stays}},
		"who may, ends a canary, and is told":                 {stored: on(canary), before: bundleHead(staged("canary"), rackCanary), after: bundleHead(staged("shadow")), may: true, warnings: []string{ends}},
		"nor does he delete what is in force":                 {stored: on(inForce), before: bundleHead(staged("active")), want: "Forbidden\n" + mayNotFleet, warnings: []string{stays}},
		"whatever its label says":                             {stored: on(inForce), before: bundleHead(), want: "Forbidden\n" + mayNotFleet, warnings: []string{stays}},
		"also where only the number of its promotion is left": {stored: on(revisionOf(t, head, unproven, promoted("7"))), before: bundleHead(), want: "Forbidden\n" + mayNotFleet, warnings: []string{stays}},
		"who may, deletes it, and is told":                    {stored: on(inForce), before: bundleHead(staged("active")), may: true, warnings: []string{stays}},
		"nor one that waits for a manager":                    {stored: on(proven), before: bundleHead(staged("active")), want: "Forbidden\n" + mayNotFleet},
		"nor another ConfigMap that holds it":                 {stored: on(revisionOf(t, head, atStage(policyv1alpha1.StageActive), heldIn("fleet-b"))), before: bundleHead(called("fleet-b")), want: "Forbidden\n" + mayNotFleet, warnings: []string{stays}},
		"nor one whose revision nobody knows yet":             {before: bundleHead(staged("active")), want: "Forbidden\n" + mayNotFleet},
		"nor does he unlabel it":                              {stored: on(inForce), before: bundleHead(staged("active")), after: bundleHead(staged("active"), withoutLabel(policyv1alpha1.BundleLabel)), want: "Forbidden\n" + mayNotFleet, warnings: []string{stays}},
		"nor what holds the same anew":                        {stored: on(revisionOf(t, head, atStage(policyv1alpha1.StageActive), deleted)), before: bundleHead(withUID("2")), want: "Forbidden\n" + mayNotFleet, warnings: []string{stays}},
		"nor what was changed while nobody asked":             {stored: on(revisionOf(t, head, atStage(policyv1alpha1.StageActive), deleted)), before: bundleHead(withUID("1"), holds("lifecycle.yaml", "other")), want: "Forbidden\n" + mayNotFleet, warnings: []string{stays}},
		"nor what may hold the same in parts":                 {stored: on(revisionOf(t, head, atStage(policyv1alpha1.StageActive), deleted)), before: bundleHead(withUID("2"), lists("lifecycle.yaml", "fleet-1-a", "long")), want: "Forbidden\n" + mayNotFleet, warnings: []string{stays}},
		"anybody deletes a draft under a name that was freed": {stored: on(revisionOf(t, head, atStage(policyv1alpha1.StageActive), deleted)), before: bundleHead(withUID("2"), holds("bundle.yaml", "1.1.0"))},
		"anybody deletes what was superseded":                 {stored: on(revisionOf(t, head, atStage(policyv1alpha1.StageSuperseded))), before: bundleHead(staged("active"))},
		"anybody deletes a shadow":                            {stored: on(revisionOf(t, head, atStage(policyv1alpha1.StageShadow))), before: head},
		"a promotion in somebody else's name is refused":      {before: head, after: bundleHead(staged("active"), noted(policyv1alpha1.ActivatedByAnnotation, "root "+fleetDigest+" 2027-01-15T08:00:00Z")), may: true, compiled: 1, want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/activated-by]: Forbidden: admission writes who activates; leave it out"},
		"a record that is taken away is refused":              {before: bundleHead(staged("active"), activated), after: bundleHead(staged("active")), want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/activated-by]: Forbidden: admission writes who activates; keep it as it is stored"},
		"a record that is made up is refused":                 {after: bundleHead(activated), compiled: 1, want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/activated-by]: Forbidden: admission writes who activates; keep it as it is stored"},
		"nor a larger share": {before: bundleHead(staged("canary"), noted(policyv1alpha1.CanaryPercentAnnotation, "5")), after: bundleHead(staged("canary"), noted(policyv1alpha1.CanaryPercentAnnotation, "50"), activated), compiled: 1,
			want: "Forbidden\n" + "metadata.annotations[policy.metalaw.dev/percent]: " + mayNotFleet + bundles.StoreElsewise},
		"a canary says whom it governs":                {before: head, after: bundleHead(staged("canary"), activated), may: true, compiled: 1, want: "Invalid\nmetadata.annotations[policy.metalaw.dev/servers]: Required value: a canary says whom it governs: a label selector here, such as rack in (r1, r2), or a share in policy.metalaw.dev/percent, or both"},
		"a canary of what no selector says is refused": {before: head, after: bundleHead(staged("canary"), noted(policyv1alpha1.CanaryServersAnnotation, "rack ~ r1"), activated), may: true, compiled: 1, want: "Invalid\n" + `metadata.annotations[policy.metalaw.dev/servers]: Invalid value: "rack ~ r1": it is no label selector, such as rack in (r1, r2): unable to parse requirement: found '~', expected: in, notin, =, ==, !=, gt, lt`},
		"a canary of a selector that no revision holds is refused": {before: head, after: bundleHead(staged("canary"), noted(policyv1alpha1.CanaryServersAnnotation,
			"rack in ("+strings.Repeat("r1,", 1500)+"r1)"), activated), may: true, compiled: 1, want: "Invalid\n" + `metadata.annotations[policy.metalaw.dev/servers]: ` +
			`Invalid value: "rack in (` + strings.Repeat("r1,", 18) + `r...": the selector has 4512 characters, and 4096 are the most; give the servers a label of their ` +
			`own to select by, or write a share in policy.metalaw.dev/percent`},
		"a canary of all by selector is refused":                 {before: head, after: bundleHead(staged("canary"), noted(policyv1alpha1.CanaryServersAnnotation, " "), activated), may: true, compiled: 1, want: "Invalid\n" + `metadata.annotations[policy.metalaw.dev/servers]: Invalid value: " ": it selects every server; to govern all, label the bundle policy.metalaw.dev/stage=active, and for a share of all leave this annotation out and write policy.metalaw.dev/percent`},
		"a canary of no share is refused":                        {before: head, after: bundleHead(staged("canary"), noted(policyv1alpha1.CanaryPercentAnnotation, "+5"), activated), may: true, compiled: 1, want: "Invalid\n" + `metadata.annotations[policy.metalaw.dev/percent]: Invalid value: "+5": it is no share; write a whole number from 1 to 100, without a sign`},
		"who may promote, must not promote what is broken":       {before: head, after: bundleHead(staged("active"), holds("lifecycle.yaml", "broken")), may: true, compiled: 1, want: "Invalid\ndata: Forbidden: lifecycle.yaml would change, and the files of a bundle of stage shadow stay as they are. A change is a new version: raise version in bundle.yaml and store it in a ConfigMap of another name\ndata: bundle fleet is not accepted for stage active: 1 error\n" + missingState},
		"the scope of one that is no canary is nobody's concern": {stored: on(inForce), before: bundleHead(staged("active")), after: bundleHead(staged("active"), rackCanary)},
	} {
		t.Run(name, c.run)
	}
}

func TestTheFilesOfALargeBundle(t *testing.T) {
	listed := lists("lifecycle.yaml", "fleet-1-a", "long")
	there, changed := part("fleet-1-a", "lifecycle.yaml", "long"), part("fleet-1-a", "lifecycle.yaml", "other")
	unlabelled := part("fleet-1-a", "lifecycle.yaml", "long")
	unlabelled.Labels = nil
	both := part("fleet-1-a", "lifecycle.yaml", "long")
	both.Labels[policyv1alpha1.BundleLabel] = "fleet"
	kept := "Forbidden\ndata: Forbidden: ConfigMap fleet-1, of stage shadow, lists lifecycle.yaml here by digest, so that it stays as it is, with label policy.metalaw.dev/bundle-part. " +
		"A change is a new version in ConfigMaps of other names, and what is not used any more goes after its head"
	gap := "manifest.yaml:4:3: error: lifecycle.yaml: ConfigMap fleet-1-a does not hold lifecycle.yaml (apply it, in the same namespace and with the label policy.metalaw.dev/bundle-part) [manifest-part-missing]"
	draft := []string{"bundle fleet is stored as a draft that is not whole; nothing is checked until it is: 1 error", gap}
	on := func(objects ...client.Object) []client.Object { return objects }
	for name, c := range map[string]bundleCase{
		"one whose parts are there passes":      {stored: on(there), after: bundleHead(staged("shadow"), listed), compiled: 1},
		"a draft waits for its parts":           {after: bundleHead(listed), warnings: draft},
		"a shadow does not":                     {after: bundleHead(staged("shadow"), listed), want: "Invalid\ndata: bundle fleet is not whole, as stage shadow wants it; store its parts first, or this one as a draft: 1 error\n" + gap},
		"a part that anybody could change":      {stored: on(unlabelled), after: bundleHead(listed), warnings: draft},
		"a manifest that cannot be read":        {after: bundleHead(staged("shadow"), holds("manifest.yaml", "files: {}")), want: "Invalid\ndata: bundle fleet is not accepted for stage shadow: 1 error\nmanifest.yaml:1:8: error: files must be a list (write a list) [yaml-type]"},
		"a part comes":                          {after: there},
		"a part of a draft changes":             {stored: on(bundleHead(listed)), before: there, after: changed},
		"a part of a shadow stays":              {stored: on(bundleHead(staged("shadow"), listed)), before: there, after: changed, want: kept},
		"a part of a shadow is not deleted":     {stored: on(bundleHead(staged("shadow"), listed)), before: there, want: kept},
		"a part of a shadow is not unlabelled":  {stored: on(bundleHead(staged("shadow"), listed)), before: there, after: unlabelled, want: kept},
		"a part of a shadow may get more files": {stored: on(bundleHead(staged("shadow"), listed)), before: there, after: func() *corev1.ConfigMap { p := there.DeepCopy(); p.Data["x"] = "y"; return p }()},
		"what is wrong may be put right":        {stored: on(bundleHead(staged("shadow"), listed)), before: changed, after: there},
		"what nobody lists may go":              {stored: on(bundleHead(staged("shadow"))), before: there},
		"a head and a part in one is refused":   {after: both, compiled: 1, want: "Forbidden\nmetadata.labels[policy.metalaw.dev/bundle-part]: Forbidden: a ConfigMap is the head of a bundle (policy.metalaw.dev/bundle) or holds a part of one, and not both; take one of the labels away"},
		"the stage of a part means nothing":     {after: func() *corev1.ConfigMap { p := there.DeepCopy(); staged("active")(p); return p }(), warnings: []string{"label policy.metalaw.dev/stage: active means nothing on a part of a bundle: the stage of its head counts"}},
	} {
		t.Run(name, c.run)
	}
}

func TestWhoActivatesIsWritten(t *testing.T) {
	digest := filled(bundle.Files{"bundle.yaml": []byte(fleetHead)}).Digest()
	byJane := "jane " + digest + " 2027-01-15T08:00:00Z"
	earlier := noted(policyv1alpha1.ActivatedByAnnotation, "root "+fleetDigest+" 2026-01-01T00:00:00Z")
	add := `[{"op":"add","path":"/metadata/annotations/policy.metalaw.dev~1activated-by","value":"` + byJane + `"}]`
	took := `[{"op":"remove","path":"/metadata/annotations/policy.metalaw.dev~1activated-by"}]`
	for name, c := range map[string]struct {
		before, after *corev1.ConfigMap
		want          string
	}{
		"on a promotion":                    {bundleHead(staged("shadow"), noted("a", "b")), bundleHead(staged("active"), noted("a", "b")), add},
		"also where there is no annotation": {nil, bundleHead(staged("active")), `[{"op":"add","path":"/metadata/annotations","value":{"policy.metalaw.dev/activated-by":"` + byJane + `"}}]`},
		"whatever is written there":         {bundleHead(), bundleHead(staged("active"), earlier), add},
		"with a word on one from a backup": {nil, bundleHead(staged("active"), noted(policyv1alpha1.ActivatedByAnnotation, "root "+digest+" 2026-01-01T00:00:00Z")),
			strings.Replace(add, byJane, byJane+" restored", 1)},
		"also on one that came from a backup before": {nil, bundleHead(staged("active"), noted(policyv1alpha1.ActivatedByAnnotation, "root "+digest+" 2026-01-01T00:00:00Z restored")),
			strings.Replace(add, byJane, byJane+" restored", 1)},
		"without it once it is promoted here": {bundleHead(staged("shadow"), noted(policyv1alpha1.ActivatedByAnnotation, byJane+" restored")),
			bundleHead(staged("active"), noted(policyv1alpha1.ActivatedByAnnotation, "root "+digest+" 2026-01-01T00:00:00Z")), add},
		"on a canary of other servers":       {bundleHead(staged("canary"), rackCanary, earlier), bundleHead(staged("canary"), noted(policyv1alpha1.CanaryPercentAnnotation, "5"), earlier), add},
		"not on a shadow":                    {nil, bundleHead(staged("shadow")), ""},
		"not on what is active already":      {bundleHead(staged("active"), earlier), bundleHead(staged("active"), earlier, noted("a", "b")), ""},
		"it stays when it is taken away":     {bundleHead(staged("active"), earlier), bundleHead(staged("active"), noted("a", "b")), `[{"op":"add","path":"/metadata/annotations/policy.metalaw.dev~1activated-by","value":"root ` + fleetDigest + ` 2026-01-01T00:00:00Z"}]`},
		"it stays when the stage is lowered": {bundleHead(staged("active"), earlier), bundleHead(earlier), ""},
		"what was made up goes":              {bundleHead(withoutLabel(policyv1alpha1.BundleLabel), earlier), bundleHead(earlier), took},
		"what is broken is left for refusal": {nil, bundleHead(staged("active"), holds("lifecycle.yaml", "broken")), ""},
		"elsewhere nothing is written":       {nil, bundleHead(staged("active"), inNamespace("team-a")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := bundleWorld(t)
			req := admissionv1.AdmissionRequest{UserInfo: authenticationv1.UserInfo{Username: user}}
			req.Object.Raw = raw(t, c.after)
			if c.before != nil {
				req.OldObject.Raw = raw(t, c.before)
			}
			got := w.hooks[PathMutateBundle].Handle(t.Context(), admission.Request{AdmissionRequest: req})
			if diff := cmp.Diff(c.want, string(got.Patch)); !got.Allowed || diff != "" {
				t.Error(got.Result, diff)
			}
		})
	}
}

func TestAPromotionIsToldToTheAuditLog(t *testing.T) {
	w, a := bundleWorld(t)
	after := bundleHead(staged("canary"), rackCanary, activated)
	req := admissionv1.AdmissionRequest{Operation: admissionv1.Create, UserInfo: authenticationv1.UserInfo{Username: user}}
	activates(&req)
	req.Object.Raw = raw(t, after)
	for _, path := range []string{PathMutateBundle, PathValidateBundle} {
		got := w.hooks[path].Handle(t.Context(), admission.Request{AdmissionRequest: req})
		if path == PathMutateBundle {
			continue
		}
		want := map[string]string{"activated-by": "jane", "bundle": "fleet", "stage": "canary", "servers": "rack in (r1, r2)", "digest": filled(filesOf(after)).Digest()}
		if diff := cmp.Diff(want, got.AuditAnnotations); diff != "" {
			t.Error(got.Result, diff)
		}
	}
	if a.times != 1 {
		t.Errorf("it was compiled %d times for one request", a.times)
	}
}

func TestLimitsOfSizeAreToldBeforeTheAPIServerRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		after *corev1.ConfigMap
		want  []string
	}{
		"a small one":                 {bundleHead(noted(bundles.LastApplied, "{}")), nil},
		"a copy that is near it":      {bundleHead(noted(bundles.LastApplied, strings.Repeat("x", 200<<10))), []string{"fleet-1: kubectl apply keeps a copy of the object in an annotation, and 200 KiB of the 256 KiB that annotations may take are taken. Use kubectl apply --server-side, which keeps none"}},
		"a large one without a copy":  {bundleHead(holds("x_test.rego", strings.Repeat("x", 300<<10))), nil},
		"one that is near the object": {bundleHead(holds("x_test.rego", strings.Repeat("x", 900<<10))), []string{"fleet-1: the files take 900 KiB of the 1024 KiB that a ConfigMap can hold. Keep some in ConfigMaps labelled policy.metalaw.dev/bundle-part, and list them with their digests in manifest.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := bundleWorld(t)
			_, got := w.ask(PathMutateBundle, user, admissionv1.Create, nil, c.after)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARefusalOfABundleIsReadLineByLine(t *testing.T) {
	w, _ := bundleWorld(t)
	req := admissionv1.AdmissionRequest{Operation: admissionv1.Create, Name: "fleet-1", UserInfo: authenticationv1.UserInfo{Username: user}}
	req.Object.Raw = raw(t, bundleHead(staged("shadow"), holds("lifecycle.yaml", strings.Repeat("broken", 130))))
	got := w.hooks[PathValidateBundle].Handle(t.Context(), admission.Request{AdmissionRequest: req})
	want := `ConfigMap "fleet-1": is invalid: data: bundle fleet is not accepted for stage shadow: 130 errors` + "\n" +
		strings.Join(numbered(100), "\n") + "\nand 30 more: run metalaw policy verify -f on the files to see all"
	if diff := cmp.Diff(want, got.Result.Message); diff != "" {
		t.Error(diff)
	}
	if whole, err := json.Marshal(got.Result); err != nil || len(whole) > 64<<10 {
		t.Errorf("the status takes %d bytes: %v", len(whole), err)
	}
}

func TestNothingIsLetGovernWhereRightsCannotBeAsked(t *testing.T) {
	w, a := bundleWorld(t)
	hooks, err := handlers(Options{Bundles: revisions{active: defaults(t)}, Client: w.cached, Reader: w.stored, ManagerUser: manager,
		Namespace: "metalaw-system", Registry: prometheus.NewRegistry(), Rights: deaf{}, Accept: a.accept}, w.clock)
	if err != nil {
		t.Fatal(err)
	}
	w.hooks = hooks
	got, _ := w.ask(PathValidateBundle, user, admissionv1.Create, nil, bundleHead(staged("active"), activated))
	if want := `whether user "jane" may activate policyrevisions cannot be told: the API server is down`; got != want {
		t.Error(got)
	}
}

type deaf struct{ client.Writer }

func (deaf) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errors.New("the API server is down")
}

func TestTwoActivationsWithinASecondHaveRecordsOfTheirOwn(t *testing.T) {
	jane, at := authenticationv1.UserInfo{Username: "jane"}, time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	first, second := bundles.Record(jane, "sha256:0", at), bundles.Record(jane, "sha256:0", at.Add(time.Millisecond))
	if first == second || !bundles.Records(first, jane, "sha256:0") || !bundles.Records(second, jane, "sha256:0") {
		t.Errorf("the records are %q and %q", first, second)
	}
}
