// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// The words of offer.accepts: what may be known of a disk of a machine that is offered to claims.
const (
	// AcceptWiped is a disk that a verified wipe covered since its machine's last claim.
	AcceptWiped = "Wiped"
	// AcceptBlank is a disk on which the agent found nothing.
	AcceptBlank = "Blank"
	// AcceptAttested is a disk for which a person answers.
	AcceptAttested = "Attested"
	// AcceptUnread is a disk that the agent did not read, such as that of metal-operator.
	AcceptUnread = "Unread"
	// AcceptData is a disk that holds data, or that cannot be read.
	AcceptData = "Data"
)

var acceptWords = []string{AcceptWiped, AcceptBlank, AcceptAttested, AcceptUnread, AcceptData}

// Accepts says that a machine may be offered with a disk of which that is known. Where the bundle does not say, a waived wipe
// accepts every disk: what a holder left is offered too.
func (s *Settings) Accepts(what string) bool {
	switch {
	case s.OfferAccepts != nil:
		return slices.Contains(s.OfferAccepts, what)
	case s.Sanitization == SanitizationNone:
		return true
	}
	return what == AcceptWiped || what == AcceptBlank || what == AcceptAttested
}

// The words of wipe.hidden: what becomes of storage that the machine has and that the kernel of the agent does not show.
const (
	// HiddenReport names it in the record, in a condition and in doctor.
	HiddenReport = "Report"
	// HiddenFail fails the wipe and the blank check besides.
	HiddenFail = "Fail"
)

// The words of wipe.removable: what becomes of removable media that are not known to be the BMC's.
const (
	// RemovableLeave leaves them as they are and names them in the record.
	RemovableLeave = "Leave"
	// RemovableErase erases them like fixed disks, or fails the wipe.
	RemovableErase = "Erase"
)

// The words of wipe.identity: what becomes of an agent whose machine neither agrees with the BMC nor contradicts it.
const (
	// IdentityReport lets it erase, and names it in the record, in a condition and in doctor.
	IdentityReport = "Report"
	// IdentityProved refuses its disks.
	IdentityProved = "Proved"
)

// Wipe is how disks are erased.
type Wipe struct {
	// Hidden is HiddenReport or HiddenFail.
	Hidden string
	// Removable is RemovableLeave or RemovableErase.
	Removable string
	// Identity is IdentityReport or IdentityProved.
	Identity string
	// AcceptDriveErase lets a verified erase by the drive's own command stand, without an overwrite after it.
	AcceptDriveErase bool
	// MinimumTerm is the term of NIST SP 800-88 that each disk must reach; empty asks for none.
	MinimumTerm string
	// Namespaces ask for a stronger term for disks that a claim of theirs held.
	Namespaces map[string]string
	// Excused are disks that are left as they are without failing the wipe, by wwid, serial number or model; hidden storage is named by
	// its PCI numbers (1000:0014), its slot or its serial number.
	Excused []string
	// Allowed are disks that are erased although other machines may share them, by wwid, serial number or model.
	Allowed []string
}

// terms are the terms of NIST SP 800-88 that an erase can reach, the weakest first.
var terms = []string{"", "Clear", "Purge"}

// TermFor is the term that each disk must reach which a claim of a namespace held: that of the namespace, and never less than
// that of the fleet.
func (w *Wipe) TermFor(namespace string) string {
	return Stronger(w.MinimumTerm, w.Namespaces[namespace])
}

// Stronger is the stronger of two terms; a word that is no term counts for none.
func Stronger(a, b string) string {
	if slices.Index(terms, b) > slices.Index(terms, a) {
		return b
	}
	return a
}

// defaultWipe is what a bundle asks of a wipe that does not say.
func defaultWipe() Wipe {
	return Wipe{Hidden: HiddenReport, Removable: RemovableLeave, Identity: IdentityReport}
}

const (
	// maxDisks bounds how many disks a setting names.
	maxDisks = 256
	// maxDiskName bounds a wwid, a serial number or a model, in bytes.
	maxDiskName = 256
)

func (w *Wipe) keys() []key {
	return []key{
		{"hidden", word(&w.Hidden, HiddenReport, HiddenFail)},
		{"removable", word(&w.Removable, RemovableLeave, RemovableErase)},
		{"identity", word(&w.Identity, IdentityReport, IdentityProved)},
		{"acceptDriveErase", truth(&w.AcceptDriveErase)},
		{"minimumTerm", word(&w.MinimumTerm, terms...)},
		{"namespaces", w.readNamespaces},
		{"excused", diskNames(&w.Excused)},
		{"allowed", diskNames(&w.Allowed)},
	}
}

func (w *Wipe) readNamespaces(f *yamlpos.File, k yamlpos.Field) {
	w.Namespaces = map[string]string{}
	for _, ns := range f.Fields(k.Value, k.Name) {
		if !namespaceName.MatchString(ns.Name) {
			f.Errorf(ns.Key, "setting-namespace", "", "write the name of a namespace: lower-case letters, digits and dashes, at most 63",
				"%q cannot be a namespace", ns.Name)
			continue
		}
		term := ""
		word(&term, terms[1:]...)(f, ns)
		w.Namespaces[ns.Name] = term
	}
}

// diskNames reads a list of disks.
func diskNames(to *[]string) func(*yamlpos.File, yamlpos.Field) {
	return func(f *yamlpos.File, k yamlpos.Field) {
		*to = texts(f, k.Value, k.Name, func(n *yaml.Node, name string) bool {
			if strings.TrimSpace(name) == "" || len(name) > maxDiskName {
				f.Errorf(n, "setting-word", "", "write a wwid, a serial number or a model, at most 256 bytes", "%s cannot be %q", k.Name, name)
				return false
			}
			return true
		})
		if len(*to) > maxDisks {
			f.Errorf(k.Value, "setting-number", "", "name 256 disks at most; a model stands for all of its kind",
				"%s names %d disks", k.Name, len(*to))
		}
	}
}

// readAccepts reads offer.accepts.
func (s *Settings) readAccepts(f *yamlpos.File, k yamlpos.Field) {
	s.OfferAccepts = texts(f, k.Value, k.Name, func(n *yaml.Node, name string) bool {
		if !slices.Contains(acceptWords, name) {
			f.Errorf(n, "setting-word", "", "write "+strings.Join(acceptWords, ", "), "%s cannot be %q", k.Name, name)
			return false
		}
		return true
	})
}

// texts reads a list of texts, as far as each is right. It is never nil.
func texts(f *yamlpos.File, n *yaml.Node, what string, right func(*yaml.Node, string) bool) []string {
	list := []string{}
	for _, item := range f.Items(n, what) {
		if name := f.Text(item, what); !f.Told(item) && right(item, name) {
			list = append(list, name)
		}
	}
	return list
}
