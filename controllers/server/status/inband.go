// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

// recordPhase says what the agent of this entry is doing. The registry bounds how often it changes.
func (r *record) recordPhase() {
	l := r.s.Status.Lifecycle
	if l == nil {
		return
	}
	phase := policies.LastPhase(r.Inventory, l.Entry)
	if phase == nil {
		r.drop(v1alpha1.ConditionInBandPhase)
		return
	}
	r.condition(v1alpha1.ConditionInBandPhase, metav1.ConditionTrue, phaseReason(phase.Name), phaseWords(phase))
}

// noReason is what the reason of a condition cannot hold.
var noReason = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// phaseReason is the name of a phase as the reason of a condition.
func phaseReason(name string) string {
	reason := strings.Trim(noReason.ReplaceAllString(name, "_"), "_")
	if reason == "" || reason[0] >= '0' && reason[0] <= '9' {
		return strings.TrimSuffix("Phase_"+reason, "_")
	}
	return reason
}

func phaseWords(p *policyv1alpha1.AgentPhase) string {
	words := "The agent is in phase " + p.Name
	if p.Detail != "" {
		words += ", " + p.Detail
	}
	if p.Percent > 0 {
		words += fmt.Sprintf(", %d %%", p.Percent)
	}
	return diag.Shortened(fmt.Sprintf("%s; since %s", words, p.Since.UTC().Format(time.RFC3339)), maxQuote)
}

// inBand is what the agent of the entry before this one had to say that explains why the server came here; empty for nothing.
func (r *record) inBand() string {
	l := r.s.Status.Lifecycle
	if why := wipeFailure(r.Inventory, l.Entry-1); why != "" {
		return " The agent says: " + why
	}
	if found := r.dataWords(); found != "" {
		return " Found: " + found + "."
	}
	phase := policies.LastPhase(r.Inventory, l.Entry-1)
	if phase == nil {
		return ""
	}
	words := " The last phase heard was " + phase.Name
	if phase.Detail != "" {
		words += " (" + phase.Detail + ")"
	}
	return diag.Shortened(fmt.Sprintf("%s, since %s", words, phase.Since.UTC().Format(time.RFC3339)), maxQuote) + "."
}

// dataWords names the disks for which the server was marked Dirty in the entry before this one.
func (r *record) dataWords() string {
	inv, l := r.Inventory, r.s.Status.Lifecycle
	if inv == nil || inv.Custody == nil || inv.Custody.DataFound == nil || inv.Report == nil || inv.Report.Entry != l.Entry-1 {
		return ""
	}
	return diag.Shortened(strings.Join(inv.Custody.DataFound.Disks, ", "), maxQuote)
}
