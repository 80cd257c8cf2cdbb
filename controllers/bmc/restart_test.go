// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/bmc/reset"
	"github.com/metalaw/metalaw/controllers/fleet"
	"github.com/metalaw/metalaw/redfish"
)

const restart = v1alpha1.OperationGracefulRestartBMC

// asked is how often the BMC b was asked to restart.
func (w *world) asked() int {
	d := w.devices["b"]
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.resets)
}

func (w *world) operation() string {
	w.t.Helper()
	return w.bmc("b").Annotations[v1alpha1.OperationAnnotation]
}

func TestAResetIsAskedForOnceItIsRecorded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.rest("b")
		w.annotate("b", restart)
		w.refuses = func() error { return errors.New("the API server is away") }
		for range 3 {
			if _, err := w.look("b"); err == nil {
				t.Fatal("the write did not fail")
			}
		}
		if w.asked() != 0 || w.operation() != restart {
			t.Errorf("asked %d times before it was recorded; annotation %q", w.asked(), w.operation())
		}
		w.refuses = nil
		w.rest("b")
		if w.asked() != 1 || w.operation() != "" {
			t.Errorf("asked %d times; annotation %q", w.asked(), w.operation())
		}
		w.expect("b", "Reset", "True UserRequested")
		w.pass("b", time.Minute)
		w.expect("b", "Reset", "False ResetComplete")
		if w.asked() != 1 {
			t.Errorf("asked %d times", w.asked())
		}
	})
}

func TestTheBMCIsToldWhoIsMeant(t *testing.T) {
	inWorld(t, func(w *world) {
		w.devices["b"].manager.SerialNumber = "B1"
		w.rest("b")
		w.annotate("b", restart)
		w.rest("b")
		want := []redfish.ManagerIdentity{{UUID: uuid2, SerialNumber: "B1", Systems: []redfish.SystemAt{{URI: uri1, Identity: redfish.Identity{UUID: uuid1}}}}}
		if diff := cmp.Diff(want, w.devices["b"].resets); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAResetThatAnotherProcessRecordedIsNotAskedForAgain(t *testing.T) {
	for name, gone := range map[string]bool{"before the annotation went": false, "after the annotation went": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.rest("b")
				w.annotate("b", restart)
				if gone {
					w.rest("b")
				} else if _, err := w.look("b"); err != nil {
					t.Fatal(err)
				}
				asked := w.asked()
				w.start()
				w.pass("b", time.Minute)
				if w.asked() > max(asked, 1) || w.operation() != "" {
					t.Errorf("asked %d times; annotation %q", w.asked(), w.operation())
				}
				w.expect("b", "Reset", "False Interrupted")
			})
		})
	}
}

func TestASecretThatChangesDuringAResetAsksForNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.rest("b")
		w.annotate("b", restart)
		w.devices["b"].answers = func() error { time.Sleep(20 * time.Second); return nil }
		w.rest("b")
		secret := &v1alpha1.BMCSecret{}
		w.must(w.api.Get(t.Context(), types.NamespacedName{Name: "b"}, secret))
		secret.Data["password"] = []byte("new")
		w.must(w.api.Update(t.Context(), secret))
		w.pass("b", 10*time.Second)
		if w.operation() != restart {
			t.Error("the annotation went before the outcome was known")
		}
		w.pass("b", time.Minute)
		if w.asked() != 1 || w.operation() != "" {
			t.Errorf("asked %d times; annotation %q", w.asked(), w.operation())
		}
		w.expect("b", "Reset", "False ResetComplete")
	})
}

func TestHowAResetEnds(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		want   string
	}{
		"the BMC accepted it":           {nil, "False ResetComplete"},
		"another BMC answers":           {&redfish.IdentityError{URI: "/redfish/v1/Managers/1"}, "False ResetFailed"},
		"it is not offered":             {&redfish.UnsupportedError{URI: "/redfish/v1/Managers/1", Wanted: "GracefulRestart"}, "False ResetFailed"},
		"it was not sent":               {&redfish.NotAskedError{What: "POST", Err: errors.New("changed")}, "False ResetFailed"},
		"the answer to it got lost":     {&redfish.UnreachableError{Method: http.MethodPost, Sent: true, Err: context.DeadlineExceeded}, "False ResetComplete"},
		"nobody listened when it began": {&redfish.UnreachableError{Method: http.MethodGet, Err: context.DeadlineExceeded}, "False ResetFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.rest("b")
				w.annotate("b", restart)
				w.devices["b"].answers = func() error { return c.answer }
				w.pass("b", time.Minute)
				w.expect("b", "Reset", c.want)
				if w.asked() != 1 || w.operation() != "" {
					t.Errorf("asked %d times; annotation %q", w.asked(), w.operation())
				}
				w.annotate("b", restart) // whoever asks again is heard again
				w.devices["b"].answers = nil
				w.pass("b", time.Minute)
				w.expect("b", "Reset", "False ResetComplete")
				if w.asked() != 2 {
					t.Errorf("asked %d times after the second annotation", w.asked())
				}
			})
		})
	}
}

func TestTwoResetsInOneSecondAreTwo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.rest("b")
		w.devices["b"].answers = func() error { return &redfish.IdentityError{} }
		for range 2 {
			w.annotate("b", restart)
			w.rest("b")
		}
		if w.asked() != 2 || w.operation() != "" {
			t.Errorf("asked %d times; annotation %q", w.asked(), w.operation())
		}
	})
}

// guard is what runs right before the reset that a BMC records goes out.
func (w *world) guard(b *v1alpha1.BMC) func(context.Context) error {
	r := &scope{subject: w.subject, observed: observed{bmc: b}}
	return r.stillAsked(reset.UnderWay(b.Status.Conditions).LastTransitionTime)
}

func TestAResetIsNotSentForABMCThatChanged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.BMC)
		stands bool
	}{
		"nothing changed": {func(*v1alpha1.BMC) {}, true},
		"a label changed": {func(b *v1alpha1.BMC) { b.Labels = map[string]string{"a": "b"} }, true},
		"the secret":      {func(b *v1alpha1.BMC) { b.Generation++ }, false},
		"it is to be ignored": {func(b *v1alpha1.BMC) {
			b.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}
		}, false},
		"it is to be ignored with its Servers": {func(b *v1alpha1.BMC) {
			b.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnoreChild}
		}, false},
		"the reset was ended": {func(b *v1alpha1.BMC) { b.Status.Conditions = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.rest("b")
				w.annotate("b", restart)
				w.rest("b")
				b := w.bmc("b")
				check := w.guard(b.DeepCopy())
				c.change(b)
				w.must(w.api.Update(t.Context(), b.DeepCopy()))
				stored := w.bmc("b")
				stored.Status = b.Status
				w.must(w.api.Status().Update(t.Context(), stored))
				if err := check(t.Context()); (err == nil) != c.stands {
					t.Errorf("still asked: %v", err)
				}
			})
		})
	}
}

func TestAFreezeThatComesRightBeforeAResetHoldsItBack(t *testing.T) {
	for name, c := range map[string]struct {
		level policyv1alpha1.FreezeLevel
		held  bool
	}{
		"at level All":             {policyv1alpha1.FreezeAll, true},
		"not at level Destructive": {policyv1alpha1.FreezeDestructive, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.must(policyv1alpha1.AddToScheme(w.api.Scheme()))
				w.subject.Gate = &fleet.Gate{Client: w.api, Reader: w.api, Now: time.Now}
				control := &policyv1alpha1.FleetControl{ObjectMeta: metav1.ObjectMeta{Name: policyv1alpha1.FleetControlName}}
				control.Spec.Freezes = []policyv1alpha1.Freeze{{Name: "night", Level: c.level}}
				w.rest("b")
				w.annotate("b", restart)
				sent := 0
				w.devices["b"].answers = func() error { // as the client does right before it sends
					if err := w.guard(w.bmc("b"))(w.t.Context()); err != nil {
						return &redfish.NotAskedError{What: "the restart", Err: err}
					}
					sent++
					return nil
				}
				w.refuses = func() error { // the freeze comes between the decision and its record
					w.refuses = nil
					w.create(control)
					return nil
				}
				w.pass("b", time.Minute)
				if held := sent == 0; held != c.held {
					t.Errorf("the BMC was asked %d times", sent)
				}
				if !c.held {
					return
				}
				w.expect("b", "Reset", "False ResetFailed")
				if w.operation() != restart {
					t.Error("the annotation is gone")
				}
				w.must(w.api.Delete(t.Context(), control))
				w.pass("b", 2*time.Minute)
				w.expect("b", "Reset", "False ResetComplete")
				if sent != 1 || w.operation() != "" {
					t.Errorf("once it is lifted the BMC was asked %d times; annotation %q", sent, w.operation())
				}
			})
		})
	}
}

// shaky is a reader that fails while it is told to.
type shaky struct {
	client.Reader
	fails error
}

func (s *shaky) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if s.fails != nil {
		return s.fails
	}
	return s.Reader.Get(ctx, key, into, options...)
}

func TestAnAPIServerThatFailsRightBeforeAResetOnlyDelaysIt(t *testing.T) {
	for name, of := range map[string]func(w *world, s *shaky){
		"the BMC cannot be read":     func(w *world, s *shaky) { w.subject.Reader = s },
		"the freezes cannot be read": func(w *world, s *shaky) { w.subject.Gate = &fleet.Gate{Client: w.api, Reader: s, Now: time.Now} },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.must(policyv1alpha1.AddToScheme(w.api.Scheme()))
				reader := &shaky{Reader: w.api}
				of(w, reader)
				w.rest("b")
				w.annotate("b", restart)
				sent := 0
				failures := 1
				w.devices["b"].answers = func() error { // as the client does right before it sends
					guard := w.guard(w.bmc("b"))
					if failures--; failures >= 0 {
						reader.fails = errors.New("etcdserver: leader changed")
					}
					err := guard(w.t.Context())
					reader.fails = nil
					if err != nil {
						return &redfish.NotAskedError{What: "the restart", Err: err}
					}
					sent++
					return nil
				}
				w.pass("b", 2*time.Minute)
				w.expect("b", "Reset", "False ResetComplete")
				if sent != 1 || w.asked() != 2 || w.operation() != "" {
					t.Errorf("restarted %d times in %d attempts; annotation %q", sent, w.asked(), w.operation())
				}
			})
		})
	}
}
