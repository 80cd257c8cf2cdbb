// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"io"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/controllers/fleet/overview"
	"github.com/metalaw/metalaw/internal/running"
)

var gone = &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone}}

func TestAWatchThatFailsIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		after time.Duration
		told  bool
	}{
		"it cannot be opened":            {errors.New("connection refused"), time.Second, true},
		"it failed a while ago":          {errors.New("connection refused"), 2 * brokenFor, false},
		"it ended, and goes on":          {io.EOF, time.Second, false},
		"its place was given up":         {apierrors.NewResourceExpired("too old"), time.Second, false},
		"its place was given up, as 410": {gone, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &broken{}
			b.note(c.err)
			if got := b.unread(time.Now().Add(c.after)); (len(got) > 0) != c.told {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTheScreenIsShownAnewOnlyIfSomethingChanged(t *testing.T) {
	at := func(d time.Duration) overview.Answers {
		beat := noon.Add(d)
		return overview.Answers{At: beat, Held: overview.Held{Running: running.State{Leading: true, BeatAt: &beat}}}
	}
	if different(at(0), at(time.Minute)) {
		t.Error("time alone is a change")
	}
	changed := at(0)
	changed.Claims.Ready = 1
	if !different(at(0), changed) {
		t.Error("another claim is ready, and that is no change")
	}
}

func TestTheExitCodeOfAVerdict(t *testing.T) {
	for v, want := range map[overview.Verdict]int{overview.Well: 0, overview.NeedsPerson: 1, overview.Unknown: 2} {
		if got := usage.ExitCode(verdict(v)); got != want {
			t.Errorf("%s: %d, want %d", v, got, want)
		}
	}
}
