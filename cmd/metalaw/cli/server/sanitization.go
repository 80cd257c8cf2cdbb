// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/access"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/metalprobe/registry/record"
)

// Words of flag --format.
const (
	asTable = "table"
	asJSON  = "json"
)

// sanitizationCommand is `metalaw server sanitization`.
func sanitizationCommand(flags *access.Flags) *cobra.Command {
	var since, format string
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "sanitization NAME",
		Short: "Print what was done to each disk of a machine, and whether the records are whole",
		Long: "Prints a certificate for each disk of each recorded wipe: machine, holder, method, verification and the term of " +
			"NIST SP 800-88. NAME is a Server, or the UUID of a machine whose Server is gone.\n\n" +
			"The records of a machine are a chain: each holds the hash of the one before. The command checks all of them, " +
			"and compares the last with what the ServerInventory remembers.\n\n" +
			"Exit codes: 0 printed, and the chain holds; so it does for a machine without a record. " +
			"1 the chain does not hold, nothing is known by that name, or something could not be read. " +
			"2 the command line makes no sense.",
		Example: "  {{.}} server sanitization node-1 --since 30d\n" +
			"  {{.}} server sanitization 4c4c4544-0042-3510-8054-b7c04f4d4d32 -o json",
		Args: usage.OneArg("name one server, or the UUID of a machine"),
		RunE: flags.Run(func(ctx context.Context, t *terminal.Terminal, c client.WithWatch, args []string) error {
			age, err := parseAge(since)
			if err != nil {
				return usage.Errorf("--since %q: %v", since, err)
			}
			switch format {
			case "", asTable:
			case asJSON:
				output = terminal.OutputAs(terminal.AsJSON)
			default:
				return usage.Errorf("--format %q: it is table or json", format)
			}
			found, err := sanitizations(ctx, c, args[0])
			if err != nil {
				return err
			}
			found.keepSince(t.Now, age)
			output.Show(t, found, func() { found.text(t) })
			if !found.Chain.Holds {
				return terminal.ErrIncomplete
			}
			return nil
		}),
		ValidArgsFunction: flags.Complete(1, serverNames),
	}
	cmd.Flags().StringVar(&since, "since", "", "only wipes that were recorded in this time, such as 30d or 12h; empty shows all")
	output.Register(cmd)
	cmd.Flags().StringVar(&format, "format", "", "the former word for -o: table or json")
	_ = cmd.Flags().MarkHidden("format") // the error is about a flag that does not exist
	return cmd
}

// parseAge reads a duration that may be of days; zero where the text is empty.
func parseAge(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	const day = 24 * time.Hour
	age, err := time.ParseDuration(text)
	if days, is := strings.CutSuffix(text, "d"); is {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		age = time.Duration(n) * day
	}
	if err != nil || age <= 0 {
		return 0, errors.New("write a time such as 30d, 12h or 90m")
	}
	return age, nil
}

// sanitization is what is recorded of one or more machines.
type sanitization struct {
	Name  string `json:"name"`
	Chain chain  `json:"chain"`
	// Records are in the order of their chains.
	Records []policyv1alpha1.SanitizationRecord `json:"records"`
}

// chain says whether the records are whole.
type chain struct {
	Holds    bool     `json:"holds"`
	Records  int      `json:"records"`
	Problems []string `json:"problems,omitempty"`
	// Notes say what could not be checked.
	Notes []string `json:"notes,omitempty"`
}

// sanitizations reads and checks the records of a Server, or of a machine by its UUID.
func sanitizations(ctx context.Context, c client.Reader, name string) (*sanitization, error) {
	records, err := recordsOf(ctx, c, name)
	if err == nil && len(records) == 0 {
		err = known(ctx, c, name)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(records, func(a, b policyv1alpha1.SanitizationRecord) int {
		return cmp.Or(strings.Compare(a.Spec.Machine.SystemUUID, b.Spec.Machine.SystemUUID), cmp.Compare(a.Spec.Sequence, b.Spec.Sequence))
	})
	s := &sanitization{Name: name, Records: records, Chain: chain{Records: len(records)}}
	wrong := []error{record.Verify(slices.Clone(records))}
	for _, machine := range machines(records) {
		wrong = append(wrong, s.compare(ctx, c, machine, records))
	}
	if err := errors.Join(wrong...); err != nil {
		s.Chain.Problems = strings.Split(err.Error(), "\n")
	}
	s.Chain.Holds = len(s.Chain.Problems) == 0
	return s, nil
}

// compare holds the last record of a machine against what its inventory remembers.
func (s *sanitization) compare(ctx context.Context, c client.Reader, machine string, records []policyv1alpha1.SanitizationRecord) error {
	var own []policyv1alpha1.SanitizationRecord
	for i := range records {
		if records[i].Spec.Machine.SystemUUID == machine {
			own = append(own, records[i])
		}
	}
	var inventory policyv1alpha1.ServerInventory
	if err := c.Get(ctx, types.NamespacedName{Name: machine}, &inventory); err != nil {
		s.Chain.Notes = append(s.Chain.Notes, fmt.Sprintf(
			"ServerInventory %s could not be read (%v): whether the last record is missing cannot be told", machine, err))
		return nil
	}
	return record.Reaches(own, inventory.LastRecord)
}

func machines(records []policyv1alpha1.SanitizationRecord) []string {
	var found []string
	for i := range records {
		found = append(found, records[i].Spec.Machine.SystemUUID)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// recordsOf finds records by the machine of a Server, by the UUID of a machine, or by the name of a Server that is gone.
func recordsOf(ctx context.Context, c client.Reader, name string) ([]policyv1alpha1.SanitizationRecord, error) {
	uuid := name
	var server v1alpha1.Server
	switch err := c.Get(ctx, types.NamespacedName{Name: name}, &server); {
	case err == nil && server.Spec.SystemUUID != "":
		uuid = server.Spec.SystemUUID
	case err != nil && !apierrors.IsNotFound(err):
		return nil, err
	}
	found, err := labelled(ctx, c, policyv1alpha1.RecordMachineLabel, uuids.Spellings(uuid)...)
	if err == nil && len(found) == 0 && uuid == name {
		found, err = labelled(ctx, c, policyv1alpha1.RecordServerLabel, name)
	}
	if err != nil || uuid != name || len(found) == 0 {
		return found, err
	}
	// A chain is whole only with the records that the machine has under other names.
	var spellings []string
	for _, machine := range machines(found) {
		spellings = append(spellings, uuids.Spellings(machine)...)
	}
	return labelled(ctx, c, policyv1alpha1.RecordMachineLabel, spellings...)
}

// known is nil for a name of which no record is there, and that a Server or a ServerInventory has.
func known(ctx context.Context, c client.Reader, name string) error {
	err := c.Get(ctx, types.NamespacedName{Name: name}, &v1alpha1.Server{})
	for _, uuid := range uuids.Spellings(name) {
		if !apierrors.IsNotFound(err) {
			break
		}
		err = access.Explain(c.Get(ctx, types.NamespacedName{Name: uuid}, &policyv1alpha1.ServerInventory{}), "get", access.Inventories)
	}
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no server or machine %q: neither a Server nor a ServerInventory has this name, and no record of a wipe; "+
			"see kubectl get servers,serverinventories", name)
	}
	return err
}

func labelled(ctx context.Context, c client.Reader, label string, values ...string) ([]policyv1alpha1.SanitizationRecord, error) {
	is, err := labels.NewRequirement(label, selection.In, values)
	if err != nil {
		return nil, usage.Errorf("%q is neither the name of a server nor the UUID of a machine", values[0])
	}
	var list policyv1alpha1.SanitizationRecordList
	err = c.List(ctx, &list, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*is)})
	return list.Items, err
}

// keepSince leaves out what was recorded earlier. The chain was checked with it.
func (s *sanitization) keepSince(now time.Time, age time.Duration) {
	if age == 0 {
		return
	}
	s.Records = slices.DeleteFunc(s.Records, func(r policyv1alpha1.SanitizationRecord) bool {
		return r.Spec.RecordedAt.Time.Before(now.Add(-age))
	})
}
