// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"fmt"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/denied"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/server/power"
)

// The kinds that a boot is made of.
const (
	Configuration = "ServerBootConfiguration"
	Secret        = "Secret"
)

// Unwritten is the progress of a boot of which an object was to be written; it holds without an error. The API server
// makes nothing in a namespace that is being deleted, and takes away what is in it, the claim included.
func Unwritten(err error, kind, namespace, name string) loop.Progress {
	if err == nil {
		return loop.Holds()
	}
	if denied.Ends(err) {
		return loop.Waiting(power.WaitsForBoot, fmt.Sprintf("the end of namespace %s, which is being deleted", namespace), time.Minute)
	}
	return denied.Write(err, v1alpha1.ReasonBootConfigurationRefused, fmt.Sprintf("the %s %s/%s", kind, namespace, name))
}
