// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
)

// maxCause bounds what is quoted of a boot service.
const maxCause = 300

// bootErrorWords quotes what the boot service says of a boot configuration that is the claim's own, in the claim's namespace,
// so that its owner reads nothing here that they could not read there.
func bootErrorWords(boot *v1alpha1.ServerBootConfiguration) string {
	const said = "the boot service reports an error"
	var causes []string
	for _, c := range boot.Status.Conditions {
		if c.Status == metav1.ConditionFalse && c.Message != "" && c.Type != v1alpha1.ConditionBootStateReceived {
			causes = append(causes, fmt.Sprintf("%s: %s", c.Type, loop.Shortened(c.Message, maxCause)))
		}
	}
	slices.Sort(causes)
	if len(causes) == 0 {
		return said + "; see the conditions of the ServerBootConfiguration of the same name"
	}
	return said + " in the ServerBootConfiguration of the same name: " + strings.Join(causes, "; ")
}

// unpreparedWords names the boot configuration that the boot operator has not prepared.
func unpreparedWords(boot *v1alpha1.ServerBootConfiguration) string {
	what := "ServerBootConfiguration " + boot.Namespace + "/" + boot.Name
	if boot.Status.State == v1alpha1.ServerBootConfigurationStateReady {
		return "the boot operator has not prepared the last change of " + what
	}
	return fmt.Sprintf("the boot operator has not prepared %s, which is %s", what,
		cmp.Or(boot.Status.State, v1alpha1.ServerBootConfigurationStatePending))
}

// HeldBack says by what something is held back, by the reason of a condition Withheld, and what ends that. The names of freezes and
// budgets, and the words of those who wrote them, are left to the people who run the fleet.
func HeldBack(reason string) string {
	until := map[string]string{
		v1alpha1.ReasonFrozen:          "by a freeze, until those who run the fleet lift it or it runs out",
		v1alpha1.ReasonBreakerTripped:  "by the fleet's breaker, until those who run the fleet acknowledge that it tripped",
		v1alpha1.ReasonBudgetExhausted: "by a budget, until another machine is done",
		v1alpha1.ReasonStarting:        "until the manager, which has started, has seen the fleet",
		v1alpha1.ReasonObserveOnly:     "by --observe-only, until the manager runs without it",
	}[reason]
	if until == "" {
		return fmt.Sprintf("that is held back at present (%s)", reason)
	}
	return fmt.Sprintf("that is held back %s (%s)", until, reason)
}
