// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
)

// text prints a certificate for each disk, and then whether the chain holds.
func (s *sanitization) text(t *terminal.Terminal) {
	for i := range s.Records {
		r := &s.Records[i]
		if by := s.voidedBy(r); by != "" {
			t.Printf("VOID: record %s takes back what follows; it proves nothing.\n", terminal.Plain(by))
		}
		for k := range r.Spec.Media {
			certificate(t, r, &r.Spec.Media[k])
		}
		if len(r.Spec.Media) == 0 {
			wipeWithoutDisks(t, r)
		}
	}
	switch {
	case s.Chain.Records == 0:
		t.Printf("No wipe is recorded for %s.\n", terminal.Plain(s.Name))
	case s.Chain.Holds:
		t.Printf("Chain: holds, %s checked.\n", terminal.Count(s.Chain.Records, "record"))
	default:
		t.Printf("Chain: does NOT hold.\n")
		for _, problem := range s.Chain.Problems {
			t.Printf("  %s\n", terminal.Plain(problem))
		}
	}
	t.Notes(s.Chain.Notes)
}

// voidedBy names the record that takes another one back; empty where none does.
func (s *sanitization) voidedBy(r *policyv1alpha1.SanitizationRecord) string {
	for i := range s.Records {
		if v := s.Records[i].Spec.Voids; v != nil && v.Name == r.Name && v.Hash == r.Spec.Hash {
			return s.Records[i].Name
		}
	}
	return ""
}

// row is one line of a certificate; it is left out where text is empty.
type row struct{ name, text string }

func printRows(t *terminal.Terminal, rows []row) {
	for _, r := range rows {
		if r.text != "" {
			t.Printf("  %-14s %s\n", r.name, terminal.Plain(r.text))
		}
	}
	t.Printf("\n")
}

func certificate(t *terminal.Terminal, r *policyv1alpha1.SanitizationRecord, m *policyv1alpha1.DiskWipe) {
	t.Printf("Certificate of sanitization: %s\n", terminal.Plain(cmp.Or(m.Serial, m.WWID, m.Path)))
	rows := []row{
		{"Result", outcomeOf(m)},
		{"NIST SP 800-88", cmp.Or(string(m.Term), "no term")},
		{"Disk", words(m.Manufacturer, m.Model, string(m.MediaType), size(m.SizeBytes))},
		{"Serial", m.Serial},
		{"WWID", m.WWID},
		{"Firmware", m.Firmware},
		{"Slot", m.Slot},
		{"Path", words(m.Path, m.Transport)},
		{"Method", m.Method},
	}
	for _, step := range m.Steps {
		rows = append(rows, row{"Step", words(step.Method, step.Parameters, string(step.Result), quoted(step.Answer))})
	}
	if v := m.Verification; v != nil {
		passed := "did not pass"
		if v.Passed {
			passed = "passed"
		}
		rows = append(rows, row{"Verification", fmt.Sprintf("%s, %s, %s", v.Kind, share(v.ReadBytes, m.SizeBytes), passed)}, row{"Limits", v.Limits})
	}
	if m.StartedAt != nil && m.FinishedAt != nil {
		rows = append(rows, row{"Erased", fmt.Sprintf("%s to %s, by the agent's clock", moment(m.StartedAt.Time), moment(m.FinishedAt.Time))})
	}
	rows = append(rows, row{"Message", m.Message})
	printRows(t, append(rows, wipe(r)...))
}

func wipeWithoutDisks(t *terminal.Terminal, r *policyv1alpha1.SanitizationRecord) {
	t.Printf("Wipe without a disk\n")
	printRows(t, append([]row{{"Result", string(r.Spec.State)}}, wipe(r)...))
}

// wipe are the lines about the wipe that all its disks share.
func wipe(r *policyv1alpha1.SanitizationRecord) []row {
	s := &r.Spec
	rows := []row{
		{"Machine", words(s.Machine.Manufacturer, s.Machine.Model, serial(s.Machine.SerialNumber), "UUID "+s.Machine.SystemUUID)},
		{"Server", s.Machine.ServerName},
	}
	if s.Holder != nil {
		rows = append(rows, row{"Holder", words("claim", s.Holder.Namespace+"/"+s.Holder.Name, "UID", string(s.Holder.UID))},
			row{"Claim ended by", cmp.Or(s.EndedBy, "not known")})
	}
	policy := s.PolicyRevision
	if s.PolicyDigest != "" {
		policy += " (" + s.PolicyDigest + ")"
	}
	rows = append(rows,
		row{"Asked by", s.RequestedBy},
		row{"Reason", s.Reason},
		row{"Wipe", fmt.Sprintf("%s, entry %d, %s to %s", s.State, s.Entry, moment(s.StartedAt.Time), moment(s.RecordedAt.Time))},
		row{"Says", s.Message},
		row{"Voids", voids(s.Voids)},
		row{"Policy", policy},
		row{"Agent", words(s.AgentVersion, s.AgentImage)},
	)
	for _, skipped := range s.Skipped {
		rows = append(rows, row{"Left alone", words(skipped.Path, serial(skipped.Serial), skipped.Reason)})
	}
	for i := range s.Attested {
		rows = append(rows, row{"Not erased", attested(&s.Attested[i])})
	}
	return append(rows, row{"Record", fmt.Sprintf("%s, SHA-256 %s", r.Name, s.Hash)})
}

// voids names the record that another one takes back.
func voids(ref *policyv1alpha1.RecordReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// attested says which disk was not erased, and who answers for it.
func attested(d *policyv1alpha1.AttestedDisk) string {
	became := "destroyed"
	if d.Method == policyv1alpha1.AttestRemoved {
		became = "taken out of the machine"
	}
	return fmt.Sprintf("disk %s: %s, as %s answers since %s: %s", cmp.Or(d.Serial, d.WWID, d.Name), became, d.By, moment(d.At.Time), d.Reason)
}

func outcomeOf(m *policyv1alpha1.DiskWipe) string {
	if m.State == policyv1alpha1.DiskVerified {
		return "erased and checked"
	}
	return "NOT proved to be erased (" + string(m.State) + ")"
}

func serial(number string) string {
	if number == "" {
		return ""
	}
	return "serial " + number
}

func quoted(answer string) string {
	if answer == "" {
		return ""
	}
	return fmt.Sprintf("(%s)", answer)
}

func words(all ...string) string {
	var said []string
	for _, word := range all {
		if word != "" {
			said = append(said, word)
		}
	}
	return strings.Join(said, " ")
}

func size(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
}

// share is how much of a disk was read back.
func share(read, of int64) string {
	switch {
	case of == 0:
		return fmt.Sprintf("%d bytes read", read)
	case read >= of:
		return "all of it read"
	}
	return fmt.Sprintf("%.2f %% read", 100*float64(read)/float64(of))
}

func moment(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }
