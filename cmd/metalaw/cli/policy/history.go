// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/lists"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

func historyCommand() *cobra.Command {
	flags := &access.Flags{}
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the revisions, the one in force first",
		Long: "Lists the PolicyRevisions by their promotions: version, stage, what a promotion waits for, servers, who put it there and since " +
			"when, and the ConfigMap that it came from.\n\nExit codes: 0 listed. 1 the cluster did not answer. 2 the command line makes no sense.",
		Example: "  {{.}} policy history",
		Args:    usage.NoArgs,
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, _ []string) error {
			all, err := revisions(ctx, c)
			if err != nil {
				return err
			}
			lines := past(all)
			output.Show(t, lines, func() {
				t.Table([]string{"REVISION", "PROMOTION", "STAGE", "SINCE", "SERVERS", "BY", "CONFIGMAP", "WHY"},
					lists.Map(lines, func(e *entry) []string { return e.row(t) }))
			})
			return nil
		}),
	}
	flags.Register(cmd)
	output.Register(cmd)
	return cmd
}

type entry struct {
	Revision  string `json:"revision"`
	Bundle    string `json:"bundle"`
	Version   string `json:"version"`
	Promotion int    `json:"promotion,omitempty"`
	Stage     string `json:"stage"`
	InForce   bool   `json:"inForce"`
	// AwaitsStage is the stage that it was promoted to and waits for.
	AwaitsStage string     `json:"awaitsStage,omitempty"`
	Since       *time.Time `json:"since,omitempty"`
	Servers     int32      `json:"servers"`
	By          string     `json:"by,omitempty"`
	ConfigMap   string     `json:"configMap,omitempty"`
	Why         string     `json:"why,omitempty"`
}

func past(all []policyv1alpha1.PolicyRevision) []entry {
	lines := []entry{}
	for i := range all {
		r := &all[i]
		e := entry{Revision: r.Name, Bundle: r.Spec.Bundle, Version: r.Spec.Version, Promotion: promotion(r), Stage: string(r.Status.Stage),
			Servers: r.Status.Servers, By: r.Status.ActivatedBy, ConfigMap: r.Status.Head}
		if r.Status.StageSince != nil {
			e.Since = &r.Status.StageSince.Time
		}
		if active := meta.FindStatusCondition(r.Status.Conditions, policyv1alpha1.ConditionActive); active != nil {
			e.InForce, e.Why = active.Status == metav1.ConditionTrue, active.Message
			if active.Reason == policyv1alpha1.ReasonAwaitingReplicas {
				e.AwaitsStage = string(r.Status.LabelledStage)
			}
		}
		lines = append(lines, e)
	}
	return lines
}

// activation is the end of a record of who activated what: the digest, whose beginning the revision's name has already, and when.
var activation = regexp.MustCompile(` sha256:[0-9a-f]{64} (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z`)

func (e entry) row(t *terminal.Terminal) []string {
	number, since := "", ""
	if e.Promotion > 0 {
		number = strconv.Itoa(e.Promotion)
	}
	if e.Since != nil {
		since = t.Ago(*e.Since) + " ago"
	}
	stage := e.Stage
	if e.InForce && stage != string(policyv1alpha1.StageActive) {
		stage += ", in force"
	}
	if e.AwaitsStage != "" {
		stage += ", waits to be " + e.AwaitsStage
	}
	return []string{e.Revision, number, stage, since, fmt.Sprint(e.Servers), activation.ReplaceAllString(e.By, " ${1}Z"), e.ConfigMap, e.Why}
}
