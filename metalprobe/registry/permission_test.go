// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// The token is right in every case; what permits the erase is not.
func TestAWipeMayNotGoOn(t *testing.T) {
	annotated := func(name, value string) func(*metalv1alpha1.Server) {
		return func(s *metalv1alpha1.Server) { s.Annotations[name] = value }
	}
	for name, c := range map[string]struct {
		change func(*metalv1alpha1.Server)
		says   string
	}{
		"when a claim holds the server": {func(s *metalv1alpha1.Server) {
			s.Spec.ServerClaimRef = &metalv1alpha1.ObjectReference{Namespace: "a", Name: "b"}
		}, "a claim holds the server"},
		"when the release record vanished":      {func(s *metalv1alpha1.Server) { delete(s.Annotations, metalv1alpha1.ReleasedClaimAnnotation) }, "no release record"},
		"when the release record names another": {annotated(metalv1alpha1.ReleasedClaimAnnotation, "former"), "no release record"},
		"when nobody is known to have held it":  {func(s *metalv1alpha1.Server) { s.Annotations = nil }, "no release record"},
		"when holder and record are empty": {func(s *metalv1alpha1.Server) {
			annotated(metalv1alpha1.ClaimUIDAnnotation, "")(s)
			annotated(metalv1alpha1.ReleasedClaimAnnotation, "")(s)
		}, "no release record"},
		"when the server is to be left alone":          {annotated(metalv1alpha1.OperationAnnotation, "ignore"), "left alone"},
		"when it is so by the old word":                {annotated(metalv1alpha1.OperationAnnotation, "ignore-reconciliation"), "left alone"},
		"when it is so by a word of a release to come": {annotated(metalv1alpha1.OperationAnnotation, "ignore-for-audit"), "left alone"},
		"when its BMC asks for that":                   {annotated(metalv1alpha1.HeldByBMCAnnotation, "b1"), "left alone"},
		"when the server is being deleted": {func(s *metalv1alpha1.Server) {
			s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: start}, []string{"f"}
		}, "being deleted"},
		"when the server has moved on":               {func(s *metalv1alpha1.Server) { s.Status.Lifecycle.Entry++ }, "earlier entry"},
		"when the credential was withdrawn":          {func(s *metalv1alpha1.Server) { s.Status.Lifecycle.Credential = nil }, "no valid credential"},
		"when the server is another of this name":    {func(s *metalv1alpha1.Server) { s.UID = "another" }, "no valid credential"},
		"when the server stands for another machine": {func(s *metalv1alpha1.Server) { s.Spec.SystemUUID = otherUUID }, "no valid credential"},
	} {
		t.Run(name+", though the cache does not know yet", func(t *testing.T) {
			current := serverOf("srv", uuid, "mine", metalv1alpha1.ProbePurposeWipe)
			asWipe(current, nil)
			c.change(current)
			f := newFleet(t, asWipe)
			f.registry.options.Live = fakeClient(current)
			if got := f.do("GET", "/wipe/"+uuid, "mine", ""); got.Code < 400 || got.Code >= 500 ||
				strings.Contains(got.Body.String(), `"current":true`) || !strings.Contains(got.Body.String(), c.says) {
				t.Errorf("may it go on? %d %s", got.Code, got.Body)
			}
			if got := f.do("POST", "/wipe", "mine", running); got.Code < 400 || len(f.stored()) != 0 {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		})
	}
}

func TestAWipeGoesOnWhenAnotherOperationIsAskedFor(t *testing.T) {
	f := newFleet(t, func(s *metalv1alpha1.Server, o *Options) {
		asWipe(s, o)
		s.Annotations[metalv1alpha1.OperationAnnotation] = "retry"
	})
	if got := f.do("GET", "/wipe/"+uuid, "mine", ""); got.Code != http.StatusOK {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

func control(change func(*policyv1alpha1.FleetControl)) *policyv1alpha1.FleetControl {
	c := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
	change(c)
	return c
}

func frozen(level policyv1alpha1.FreezeLevel, more ...func(*policyv1alpha1.Freeze)) *policyv1alpha1.FleetControl {
	return control(func(c *policyv1alpha1.FleetControl) {
		f := policyv1alpha1.Freeze{Name: "recall", Level: level, By: "jane", Reason: "bad batch"}
		for _, m := range more {
			m(&f)
		}
		c.Spec.Freezes = []policyv1alpha1.Freeze{f}
	})
}

func rack(name string) func(*policyv1alpha1.Freeze) {
	return func(f *policyv1alpha1.Freeze) {
		f.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": name}}
	}
}

func until(at time.Time) func(*policyv1alpha1.Freeze) {
	return func(f *policyv1alpha1.Freeze) { f.Until = &metav1.Time{Time: at} }
}

func TestAFreezeHoldsTheNextDiskBack(t *testing.T) {
	const by = `freeze \"recall\" (Destructive) by jane: bad batch`
	tripped := func(change func(*policyv1alpha1.FleetControl)) *policyv1alpha1.FleetControl {
		return control(func(c *policyv1alpha1.FleetControl) {
			c.Spec.Breaker = &policyv1alpha1.Breaker{MaxPercent: 5}
			c.Status.Trip = &policyv1alpha1.BreakerTrip{At: metav1.NewMicroTime(start), Servers: 6, Of: 40}
			change(c)
		})
	}
	for name, c := range map[string]struct {
		control *policyv1alpha1.FleetControl
		change  func(*Options)
		says    string
	}{
		"not where there is no FleetControl":    {},
		"not where nothing is frozen":           {control: frozen(policyv1alpha1.FreezeNone)},
		"at level Destructive":                  {control: frozen(policyv1alpha1.FreezeDestructive), says: by},
		"at level All":                          {control: frozen(policyv1alpha1.FreezeAll), says: "(All) by jane"},
		"where its selector matches":            {control: frozen(policyv1alpha1.FreezeDestructive, rack("r1")), says: by},
		"not where its selector does not match": {control: frozen(policyv1alpha1.FreezeDestructive, rack("r2"))},
		"before its end":                        {control: frozen(policyv1alpha1.FreezeDestructive, until(start.Add(time.Second))), says: by},
		"not after its end":                     {control: frozen(policyv1alpha1.FreezeDestructive, until(start))},
		"as the breaker does":                   {control: tripped(func(*policyv1alpha1.FleetControl) {}), says: "the breaker tripped"},
		"not once the breaker's trip is acknowledged": {control: tripped(func(c *policyv1alpha1.FleetControl) {
			c.Spec.Breaker.AcknowledgedAt = &metav1.MicroTime{Time: start.Add(1)}
		})},
		"while no policy governs":              {change: func(o *Options) { o.Ungoverned = func() string { return "no policy governs" } }, says: "no policy governs"},
		"not where one governs":                {change: func(o *Options) { o.Ungoverned = func() string { return "" } }},
		"as a manager does that only observes": {change: func(o *Options) { o.ObserveOnly = true }, says: "observe only"},
	} {
		t.Run(name, func(t *testing.T) {
			var more []client.Object
			if c.control != nil {
				more = append(more, c.control)
			}
			f := newFleet(t, func(s *metalv1alpha1.Server, o *Options) {
				asWipe(s, o)
				s.Labels = map[string]string{"rack": "r1"}
				if c.change != nil {
					c.change(o)
				}
			}, more...)
			got := f.do("GET", "/wipe/"+uuid, "mine", "")
			if c.says == "" {
				if got.Code != http.StatusOK {
					t.Errorf("got %d %s", got.Code, got.Body)
				}
				return
			}
			if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "30" ||
				!strings.Contains(got.Body.String(), `"held":true`) || !strings.Contains(got.Body.String(), c.says) {
				t.Errorf("got %d %v %s", got.Code, got.Header(), got.Body)
			}
			if event := f.heard(); event != "" {
				t.Errorf("a wipe that waits is no refused report: %s", event)
			}
			if got := f.do("POST", "/wipe", "mine", running); got.Code != http.StatusOK {
				t.Errorf("a sign of life: %d %s", got.Code, got.Body)
			}
		})
	}
}

func TestAFreezeIsReadPastTheCache(t *testing.T) {
	server := serverOf("srv", uuid, "mine", metalv1alpha1.ProbePurposeWipe)
	asWipe(server, nil)
	f := newFleet(t, asWipe)
	f.registry.options.Live = fakeClient(server, frozen(policyv1alpha1.FreezeAll))
	if got := f.do("GET", "/wipe/"+uuid, "mine", ""); got.Code != http.StatusServiceUnavailable {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

func TestAFleetControlThatCannotBeReadPermitsNothing(t *testing.T) {
	f := newFleet(t, asWipe)
	f.registry.options.Live = interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*policyv1alpha1.FleetControl); is {
				return errDown
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	got := f.do("GET", "/wipe/"+uuid, "mine", "")
	if got.Code != http.StatusInternalServerError || strings.Contains(got.Body.String(), "down") {
		t.Errorf("got %d %s", got.Code, got.Body)
	}
}

func TestAWipeStopsAsSoonAsTheBMCAsksForIt(t *testing.T) {
	for name, c := range map[string]struct {
		asks   string // the operation annotation of the BMC; empty for a BMC that there is not
		fails  bool
		status int
		says   string
	}{
		"the BMC asks to leave its servers alone":         {asks: "ignore-child", status: http.StatusConflict, says: "leave its servers alone"},
		"the BMC asks so in the old word":                 {asks: "ignore-child-reconciliation", status: http.StatusConflict, says: "leave its servers alone"},
		"the BMC asks so for itself too":                  {asks: "ignore-child-and-self", status: http.StatusConflict, says: "leave its servers alone"},
		"the BMC asks for something else":                 {asks: "ignore", status: http.StatusOK},
		"the BMC does not exist":                          {status: http.StatusOK},
		"the BMC cannot be read, so nothing is permitted": {asks: "none", fails: true, status: http.StatusServiceUnavailable, says: "ask again"},
	} {
		t.Run(name, func(t *testing.T) {
			server := serverOf("srv", uuid, "mine", metalv1alpha1.ProbePurposeWipe)
			asWipe(server, nil)
			server.Spec.BMCRef = &corev1.LocalObjectReference{Name: "b1"}
			objects := []client.Object{server}
			if c.asks != "" {
				objects = append(objects, &metalv1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "b1",
					Annotations: map[string]string{metalv1alpha1.OperationAnnotation: c.asks}}})
			}
			f := newFleet(t, asWipe)
			f.registry.options.Live = interceptor.NewClient(fakeClient(objects...), interceptor.Funcs{
				Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if _, is := o.(*metalv1alpha1.BMC); is && c.fails {
						return errDown
					}
					return api.Get(ctx, key, o, options...)
				},
			})
			got := f.do("GET", "/wipe/"+uuid, "mine", "")
			if got.Code != c.status || !strings.Contains(got.Body.String(), c.says) || strings.Contains(got.Body.String(), errDown.Error()) {
				t.Errorf("may it go on? %d %s", got.Code, got.Body)
			}
			if c.fails && got.Header().Get("Retry-After") == "" {
				t.Error("it is not told when to ask again")
			}
		})
	}
}
