// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
)

// retryAccess has the BMC asked again at once, and forgets who its systems were said to be. A repeated call within a
// cool-down asks with refused credentials only once.
func (v *scope) retryAccess() loop.Progress {
	v.dropOperation()
	if v.targetErr != nil {
		return loop.Holds() // what is missing is looked for without being asked
	}
	v.reader.forget(v.target.Key)
	defer v.cache.Refresh(v.name, v.target, anew)
	if done, again := v.Clients.Retry(v.target.Key); !done {
		v.retriedLately = fmt.Sprintf("the credentials were refused or tried again by hand a short while ago and are not tried once more before %s, "+
			"so that no account is locked; correct the BMCSecret, which is then tried at once", again.UTC().Format("15:04:05 MST"))
		return loop.Holds()
	}
	v.cache.Retry(v.name)
	v.wake = time.Millisecond
	return loop.Holds()
}

// anew is an age that no reading has, so that one is begun.
const anew = -time.Nanosecond

// report tells what no difference of the BMC shows.
func (v *scope) report(context.Context) {
	if v.retriedLately != "" {
		v.Recorder.Eventf(v.bmc, nil, corev1.EventTypeWarning, v1alpha1.ReasonRetriedLately, EffectRetryAccess, "%s", v.retriedLately)
	}
	v.tellAcceptance()
	v.tellCertificate()
}
