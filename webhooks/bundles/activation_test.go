// SPDX-License-Identifier: Apache-2.0

package bundles

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

var jane = authenticationv1.UserInfo{Username: "jane"}

func TestWhatARevisionIsUsedFor(t *testing.T) {
	for name, c := range map[string]struct {
		r    policyv1alpha1.PolicyRevision
		want string
	}{
		"one that was promoted last":       {aRevision("last", policyv1alpha1.StageSuperseded), useInForce},
		"one whose status says Active":     {aRevision("a", policyv1alpha1.StageActive), useInForce},
		"the one that is built in":         {aRevision("a", policyv1alpha1.StageEmbedded), useInForce},
		"one whose condition says it":      {aRevision("a", policyv1alpha1.StageShadow, activeCondition), useInForce},
		"a canary":                         {aRevision("a", policyv1alpha1.StageCanary), useCanary},
		"a shadow":                         {aRevision("a", policyv1alpha1.StageShadow), useShadow},
		"a draft is used for nothing":      {aRevision("a", policyv1alpha1.StageDraft), ""},
		"a superseded is used for nothing": {aRevision("a", policyv1alpha1.StageSuperseded), ""},
	} {
		if got := use(&c.r, "last"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func activeCondition(r *policyv1alpha1.PolicyRevision) {
	r.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.ConditionActive, Status: metav1.ConditionTrue}}
}

func fromAnother(r *policyv1alpha1.PolicyRevision) {
	r.Spec.Source, r.Status.Head = &policyv1alpha1.PolicySource{Name: "fleet-2", UID: "uid-fleet-2"}, "fleet-2"
}

func TestWhatAHeadGovernsBy(t *testing.T) {
	active := aRevision("fleet-a", policyv1alpha1.StageActive)
	for name, c := range map[string]struct {
		head *head
		all  []policyv1alpha1.PolicyRevision
		want string
	}{
		"an active revision of its own":          {aHead("fleet-1", "active"), []policyv1alpha1.PolicyRevision{active}, "active [fleet-a] canary [] pending false"},
		"also without the label":                 {aHead("fleet-1", ""), []policyv1alpha1.PolicyRevision{active}, "active [fleet-a] canary [] pending false"},
		"a canary of its own":                    {aHead("fleet-1", "canary"), []policyv1alpha1.PolicyRevision{aRevision("c", policyv1alpha1.StageCanary)}, "active [] canary [c] pending false"},
		"not that of another ConfigMap":          {aHead("fleet-1", "draft"), []policyv1alpha1.PolicyRevision{aRevision("a", policyv1alpha1.StageActive, fromAnother)}, "active [] canary [] pending false"},
		"not that of another bundle":             {aHead("fleet-1", "draft"), []policyv1alpha1.PolicyRevision{aRevision("a", policyv1alpha1.StageActive, ofAnother("prod"))}, "active [] canary [] pending false"},
		"what the label asks for and is not yet": {aHead("fleet-1", "active"), nil, "active [] canary [] pending true"},
		"nothing once it was superseded":         {aHead("fleet-1", "active"), []policyv1alpha1.PolicyRevision{aRevision("a", policyv1alpha1.StageSuperseded)}, "active [] canary [] pending false"},
		"nothing as a shadow":                    {aHead("fleet-1", "shadow"), nil, "active [] canary [] pending false"},
	} {
		g := governing(c.head, c.all)
		if got := fmt.Sprintf("active [%s] canary [%s] pending %t", names(g.active), names(g.canaries), g.pending); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWhichRightsAChangeTakes(t *testing.T) {
	rack, half := annotated(policyv1alpha1.CanaryServersAnnotation, "rack=r1"), annotated(policyv1alpha1.CanaryPercentAnnotation, "50")
	inForce, canary := aRevision("fleet-a", policyv1alpha1.StageActive), aRevision("fleet-c", policyv1alpha1.StageCanary)
	prod := aRevision("prod-a", policyv1alpha1.StageActive, ofAnother("prod"), promoted(7))
	for name, c := range map[string]struct {
		was, is *head
		all     []policyv1alpha1.PolicyRevision
		want    string
	}{
		"a draft takes none":                                   {nil, aHead("fleet-1", ""), nil, ""},
		"a shadow takes none":                                  {nil, aHead("fleet-1", "shadow"), nil, ""},
		"a new one that is active":                             {nil, aHead("fleet-1", "active"), nil, "fleet"},
		"a draft that becomes active":                          {aHead("fleet-1", ""), aHead("fleet-1", "active"), nil, "fleet"},
		"a canary that becomes active":                         {aHead("fleet-1", "canary", rack), aHead("fleet-1", "active"), []policyv1alpha1.PolicyRevision{canary}, "fleet"},
		"a canary that stays as it is takes none":              {aHead("fleet-1", "canary", rack), aHead("fleet-1", "canary", rack), nil, ""},
		"a canary of other servers":                            {aHead("fleet-1", "canary", rack), aHead("fleet-1", "canary", rack, half), nil, "fleet"},
		"an active one that stays so takes none":               {aHead("fleet-1", "active"), aHead("fleet-1", "active", half), nil, ""},
		"an active one that becomes a draft":                   {aHead("fleet-1", "active"), aHead("fleet-1", ""), nil, "fleet"},
		"the end of what governs":                              {aHead("fleet-1", "active"), nil, []policyv1alpha1.PolicyRevision{inForce}, "fleet"},
		"also of one that lost the label":                      {aHead("fleet-1", ""), nil, []policyv1alpha1.PolicyRevision{inForce}, "fleet"},
		"the end of what is about to govern":                   {aHead("fleet-1", "active"), nil, nil, "fleet"},
		"the end of a draft takes none":                        {aHead("fleet-1", ""), nil, nil, ""},
		"one of another bundle in the place of what governs":   {aHead("fleet-1", "active"), aHead("fleet-1", "active", ofBundle("other")), []policyv1alpha1.PolicyRevision{inForce}, "fleet other"},
		"what governs gives way to a bundle of another name":   {nil, aHead("fleet-1", "active"), []policyv1alpha1.PolicyRevision{prod}, "fleet prod"},
		"a canary takes servers from a bundle of another name": {nil, aHead("fleet-1", "canary", rack), []policyv1alpha1.PolicyRevision{prod}, "fleet prod"},
		"a shadow takes servers from none":                     {nil, aHead("fleet-1", "shadow"), []policyv1alpha1.PolicyRevision{prod}, ""},
	} {
		var g governance
		if c.was != nil {
			g = governing(c.was, c.all)
		}
		if puts(c.was, c.is) {
			g.displaced = displaced(c.is, c.all)
		}
		var got []string
		for _, one := range concerned(c.was, c.is, g) {
			got = append(got, one.bundle)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhichRevisionsOfOtherBundlesGiveWay(t *testing.T) {
	waits := func(r *policyv1alpha1.PolicyRevision) {
		r.Status.LabelledStage = policyv1alpha1.LabelledActive
		r.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.ConditionActive, Reason: policyv1alpha1.ReasonAwaitingReplicas}}
	}
	own := aRevision("fleet-a", policyv1alpha1.StageActive)
	for name, c := range map[string]struct {
		all  []policyv1alpha1.PolicyRevision
		want string
	}{
		"one that is in force":                             {[]policyv1alpha1.PolicyRevision{aRevision("p", policyv1alpha1.StageActive, ofAnother("prod"))}, "p"},
		"one that waits for a manager":                     {[]policyv1alpha1.PolicyRevision{aRevision("p", policyv1alpha1.StageShadow, ofAnother("prod"), waits)}, "p"},
		"not one that waits where this bundle is in force": {[]policyv1alpha1.PolicyRevision{own, aRevision("p", policyv1alpha1.StageShadow, ofAnother("prod"), waits)}, ""},
		"not one of this bundle":                           {[]policyv1alpha1.PolicyRevision{own}, ""},
		"not the one that is built in":                     {[]policyv1alpha1.PolicyRevision{aRevision("p", policyv1alpha1.StageEmbedded, ofAnother("default"), shipped)}, ""},
		"not a shadow":                                     {[]policyv1alpha1.PolicyRevision{aRevision("p", policyv1alpha1.StageShadow, ofAnother("prod"))}, ""},
		"the one that was promoted last comes first": {[]policyv1alpha1.PolicyRevision{aRevision("p", policyv1alpha1.StageActive, ofAnother("prod"), promoted(3)),
			aRevision("q", policyv1alpha1.StageActive, ofAnother("test"), promoted(5))}, "q p"},
	} {
		if got := names(displaced(aHead("fleet-2", "active"), c.all)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestTheRecordOfAnActivation(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	const digest = "sha256:ab"
	text := Record(jane, digest, at)
	for name, c := range map[string]struct {
		text, digest string
		user         authenticationv1.UserInfo
		want, some   bool
	}{
		"as it is written":         {text, digest, jane, true, true},
		"of another user":          {text, digest, authenticationv1.UserInfo{Username: "joe"}, false, true},
		"of another content":       {text, "sha256:cd", jane, false, false},
		"with the restored word":   {text + policyv1alpha1.ActivationRestored, digest, jane, true, true},
		"without a time":           {"jane " + digest + " now", digest, jane, false, false},
		"of a user with spaces":    {Record(authenticationv1.UserInfo{Username: "a b"}, digest, at), digest, authenticationv1.UserInfo{Username: "a b"}, true, true},
		"nothing":                  {"", digest, jane, false, false},
		"with something behind it": {text + " x", digest, jane, false, false},
	} {
		if got, some := Records(c.text, c.user, c.digest), recordsSome(c.text, c.digest); got != c.want || some != c.some {
			t.Errorf("%s: %t and %t, want %t and %t", name, got, some, c.want, c.some)
		}
	}
}

func TestAdmissionAloneWritesWhoActivates(t *testing.T) {
	const digest = "sha256:ab"
	by := func(text string) func(*corev1.ConfigMap) {
		return annotated(policyv1alpha1.ActivatedByAnnotation, text)
	}
	mine := by(Record(jane, digest, time.Unix(0, 0)))
	const denied = "denied: metadata.annotations[policy.metalaw.dev/activated-by]: Forbidden: admission writes who activates; "
	for name, c := range map[string]struct {
		was, is *head
		seen    Examined
		want    []string
	}{
		"the record of who asks":                {nil, aHead("fleet-1", "active", mine), Examined{digest: digest}, nil},
		"no record":                             {nil, aHead("fleet-1", "active"), Examined{digest: digest}, []string{denied + "leave it out"}},
		"the record of another user":            {nil, aHead("fleet-1", "active", by(Record(authenticationv1.UserInfo{Username: "joe"}, digest, time.Unix(0, 0)))), Examined{digest: digest}, []string{denied + "leave it out"}},
		"content that is refused has no record": {nil, aHead("fleet-1", "active"), Examined{}, nil},
		"a record that stays":                   {aHead("fleet-1", "active", mine), aHead("fleet-1", "active", mine), Examined{digest: digest}, nil},
		"a record that is written by hand":      {aHead("fleet-1", ""), aHead("fleet-1", "", mine), Examined{digest: digest}, []string{denied + "keep it"}},
		"a record that is taken away":           {aHead("fleet-1", "active", mine), aHead("fleet-1", "active"), Examined{digest: digest}, []string{denied + "keep it"}},
	} {
		t.Run(name, func(t *testing.T) {
			var found review.Findings
			checkRecord(jane, c.was, c.is, &c.seen, &found)
			check(t, &found, c.want...)
		})
	}
}

func TestWhatIsToldOfARevisionThatLosesItsHead(t *testing.T) {
	active, canary := aRevision("a", policyv1alpha1.StageActive), aRevision("c", policyv1alpha1.StageCanary)
	paused := aRevision("p", policyv1alpha1.StageCanary, func(r *policyv1alpha1.PolicyRevision) { r.Status.Canary = &policyv1alpha1.CanaryStatus{Paused: true} })
	var leaving, promoting review.Findings
	checkLeaving(governance{active: []*policyv1alpha1.PolicyRevision{&active}, canaries: []*policyv1alpha1.PolicyRevision{&canary}}, &leaving)
	check(t, &leaving, "warned: revision a stays in force, as the last good one, until another is promoted",
		"warned: revision c is a canary, which ends: no further server adopts it")
	checkPromoted(aHead("fleet-1", "active"), governance{canaries: []*policyv1alpha1.PolicyRevision{&canary, &paused}}, &promoting)
	check(t, &promoting, "warned: revision p is a canary that has paused itself: ")
}
