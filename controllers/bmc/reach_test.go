// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/redfish"
)

var (
	errSilent    = &redfish.UnreachableError{Err: errors.New("connection refused")}
	errLeftAlone = &redfish.UnreachableError{Err: errors.New("left alone"), RetryAt: time.Unix(1, 0)}
	errNotPinned = &redfish.UnreachableError{Err: &redfish.CertificateError{Shown: "a", Trusted: "b", Err: errors.New("another certificate")}}
	errUntrusted = &redfish.UnreachableError{Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}
)

func TestUnreachableTellsSinceWhenNothingAnswers(t *testing.T) {
	inWorld(t, func(w *world) {
		d := w.devices["b"]
		fail := func(err error) { d.change(func(d *device) { d.fails = err }) }
		w.rest("b")
		fail(&redfish.AuthError{Status: 401})
		w.pass("b", time.Hour)
		w.expect("b", "Ready", "False AuthenticationFailed")
		w.expect("b", "Unreachable", "")
		fail(errSilent)
		lost := time.Now()
		w.pass("b", 5*time.Minute)
		w.expect("b", "Ready", "False ConnectionFailed")
		w.expect("b", "Unreachable", "True ConnectionFailed")
		if since := w.since("b", "Unreachable"); since.Before(lost.Truncate(time.Second)) {
			t.Errorf("unreachable since %s, which is before %s", since, lost)
		}
		since := w.since("b", "Unreachable")
		fail(errLeftAlone)
		w.pass("b", 5*time.Minute)
		if !w.since("b", "Unreachable").Equal(since) {
			t.Error("a BMC that is left alone seems to have answered")
		}
		fail(errUntrusted)
		w.pass("b", 5*time.Minute)
		w.expect("b", "Ready", "False ConnectionFailed")
		w.expect("b", "Unreachable", "")
		fail(errSilent)
		w.pass("b", 5*time.Minute)
		w.expect("b", "Unreachable", "True ConnectionFailed")
		fail(nil)
		w.pass("b", 5*time.Minute)
		w.expect("b", "Ready", "True Connected")
		w.expect("b", "Unreachable", "")
	})
}

func TestHowLongABMCHasBeenLost(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	for name, c := range map[string]struct {
		condition string // type, status
		since     int    // minutes ago
		ignored   bool
		seen      bool // by this process
		absent    time.Duration
		want      time.Duration
	}{
		"it answers":                              {"", 0, false, false, 0, 0},
		"it was unreachable":                      {v1alpha1.ConditionUnreachable, 30, false, true, 0, 30 * time.Minute},
		"it is not Ready for whatever reason":     {v1alpha1.ConditionReady, 30, false, true, 0, 0},
		"nobody asks it":                          {v1alpha1.ConditionUnreachable, 30, true, true, 0, 0},
		"no manager was running in between":       {v1alpha1.ConditionUnreachable, 30, false, true, 25 * time.Minute, 5 * time.Minute},
		"it was lost a moment ago":                {v1alpha1.ConditionUnreachable, 0, false, true, 0, 1},
		"another process saw it":                  {v1alpha1.ConditionUnreachable, 30, false, false, 0, 10*time.Minute - time.Second},
		"another process saw it for a short time": {v1alpha1.ConditionUnreachable, 3, false, false, 0, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.BMC{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
			if c.condition != "" {
				status := metav1.ConditionFalse
				if c.condition == v1alpha1.ConditionUnreachable {
					status = metav1.ConditionTrue
				}
				meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: c.condition, Status: status,
					Reason: v1alpha1.ReasonConnectionFailed, LastTransitionTime: metav1.NewTime(ago(c.since))})
			}
			if c.ignored {
				b.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationIgnore}
			}
			s := newSubject(Options{Absent: func(from, until time.Time) time.Duration {
				if !from.Equal(ago(c.since)) || !until.Equal(now) {
					t.Errorf("asked for the absence between %s and %s", from, until)
				}
				return c.absent
			}}.withDefaults(), func(string) {})
			s.silent.put("b", c.seen)
			if got := s.lostFor(b, now); got != c.want {
				t.Errorf("lost for %s, want %s", got, c.want)
			}
		})
	}
}

func TestAServerIsTakenOverOnlyOnceItsBMCWasUnreachableForLong(t *testing.T) {
	inWorld(t, func(w *world) {
		fail := func(err error) { w.devices["b"].change(func(d *device) { d.fails = err }) }
		pass := func(during time.Duration) {
			for end := time.Now().Add(during); time.Now().Before(end); {
				w.pass("b", 30*time.Second)
				w.rest("c")
			}
		}
		w.rest("b")
		fail(&redfish.AuthError{Status: 401})
		w.devices["c"] = newDevice(uuid1)
		w.addBMC("c")
		pass(time.Hour)
		w.expectServers("b-system-0 b")
		fail(errSilent)
		pass(5 * time.Minute)
		w.expectServers("b-system-0 b")

		down := time.Now() // the manager is down for an hour
		time.Sleep(time.Hour)
		up := time.Now()
		w.start()
		w.subject.Absent = func(from, until time.Time) time.Duration {
			if from.After(down) || until.Before(up) {
				return 0
			}
			return up.Sub(down)
		}
		w.rest("c") // before the incumbent was asked
		w.expectServers("b-system-0 b")
		pass(3 * time.Minute)
		w.expectServers("b-system-0 b")
		pass(4 * time.Minute)
		w.expectServers("b-system-0 c")
	})
}

func TestABMCWhoseCertificateIsRefusedLosesNoServer(t *testing.T) {
	for name, refused := range map[string]error{"one of no trusted authority": errUntrusted, "another one than is pinned": errNotPinned} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.rest("b")
				w.devices["b"].change(func(d *device) { d.fails = refused })
				w.devices["c"] = newDevice(uuid1)
				w.addBMC("c")
				for end := time.Now().Add(time.Hour); time.Now().Before(end); {
					w.pass("b", 30*time.Second)
					w.rest("c")
				}
				w.expect("b", "Unreachable", "")
				w.expectServers("b-system-0 b")
			})
		})
	}
}

func TestThatABMCAnswersIsNewsOnlyAfterItDidNot(t *testing.T) {
	inWorld(t, func(w *world) {
		connected := func() int {
			count := 0
			for _, e := range w.events() {
				if strings.HasPrefix(e, "Normal Connected ") {
					count++
				}
			}
			return count
		}
		w.pass("b", 5*time.Minute)
		w.expect("b", "Ready", "True Connected")
		if got := connected(); got != 0 {
			t.Errorf("%d events at the first answer", got)
		}
		w.devices["b"].change(func(d *device) { d.fails = errSilent })
		w.pass("b", 5*time.Minute)
		w.devices["b"].change(func(d *device) { d.fails = nil })
		w.pass("b", 5*time.Minute)
		if got := connected(); got != 1 {
			t.Errorf("%d events when it answers again, want 1", got)
		}
	})
}
