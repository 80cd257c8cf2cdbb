// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
)

// bootPatience is how long a boot service may take for a boot configuration.
const bootPatience = 5 * time.Minute

// bootFindings are the boot configurations by what the boot service said of them.
type bootFindings struct {
	ready           int
	waiting, broken []string
	// answered is when the boot service last changed a condition; zero if it writes none.
	answered time.Time
	// ignored says that a configuration waits that was written after that.
	ignored bool
}

func readBoots(v view) bootFindings {
	var f bootFindings
	var asked time.Time
	for i := range v.boots {
		b := &v.boots[i]
		name := b.Namespace + "/" + b.Name
		if at := answeredAt(b); at.After(f.answered) {
			f.answered = at
		}
		switch b.Status.State {
		case metalv1alpha1.ServerBootConfigurationStateReady:
			f.ready++
		case metalv1alpha1.ServerBootConfigurationStateError:
			f.broken = append(f.broken, name)
		default:
			at := askedAt(b)
			if v.now.Sub(at) <= bootPatience {
				continue
			}
			f.waiting = append(f.waiting, name)
			if at.After(asked) {
				asked = at
			}
		}
	}
	f.ignored = len(f.waiting) > 0 && !f.answered.IsZero() && asked.After(f.answered)
	return f
}

// answeredAt is when the boot service last changed a condition of a boot configuration.
func answeredAt(b *metalv1alpha1.ServerBootConfiguration) (at time.Time) {
	for _, c := range b.Status.Conditions {
		if c.Type == metalv1alpha1.ConditionSpecHandedOver || c.Type == metalv1alpha1.ConditionBootStateReceived {
			continue // the manager and its registry write these
		}
		if c.LastTransitionTime.After(at) {
			at = c.LastTransitionTime.Time
		}
	}
	return at
}

// askedAt is when a boot configuration was written last: made, changed, or taken back by the manager.
func askedAt(b *metalv1alpha1.ServerBootConfiguration) time.Time {
	at := b.CreationTimestamp.Time
	for i := range b.ManagedFields {
		if t := b.ManagedFields[i].Time; t != nil && t.After(at) {
			at = t.Time
		}
	}
	return at
}

func checkBootService(v view) finding {
	const check = "boot service"
	if v.bootsErr != nil {
		return unread(check, v.bootsErr)
	}
	f := readBoots(v)
	const look = "see the log of the boot service, and kubectl describe serverbootconfigurations"
	switch {
	case len(v.boots) == 0:
		return finding{check, Unknown, "no ServerBootConfiguration exists yet, so none shows whether a boot " +
			"service answers",
			"look again when a server boots"}
	case f.ready == 0 && f.answered.IsZero() && len(f.waiting) > 0:
		return finding{check, Failed, fmt.Sprintf("no boot service has answered; %d wait: %s", len(f.waiting),
			list(f.waiting)),
			"install a boot service: docs/install.md"}
	case f.ignored:
		return finding{check, Failed, fmt.Sprintf("the boot service has not answered for %s; %d wait: %s",
			v.now.Sub(f.answered).Round(time.Minute), len(f.waiting), list(f.waiting)),
			"see that the boot service runs, and its log"}
	case len(f.broken) > 0:
		return finding{check, Warned, fmt.Sprintf("%d of %d boot configurations are in Error: %s", len(f.broken),
			len(v.boots), list(f.broken)), look}
	case len(f.waiting) > 0:
		return finding{check, Warned, fmt.Sprintf("%d of %d boot configurations wait for more than %s: %s",
			len(f.waiting), len(v.boots), bootPatience, list(f.waiting)), look}
	}
	words := fmt.Sprintf("%d of %d boot configurations are Ready", f.ready, len(v.boots))
	if !f.answered.IsZero() {
		words += fmt.Sprintf("; the boot service last answered %s ago", v.now.Sub(f.answered).Round(time.Second))
	}
	return finding{check, Passed, words, ""}
}
