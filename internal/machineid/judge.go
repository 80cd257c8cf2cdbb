// SPDX-License-Identifier: Apache-2.0

package machineid

import (
	"fmt"
	"slices"
	"strings"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Kind is how a report stands to what is known of a machine.
type Kind uint8

const (
	// Unproven neither agrees nor contradicts.
	Unproven Kind = iota
	// Agrees is the machine.
	Agrees
	// Contradicts is another machine.
	Contradicts
)

// Other is what another machine shows. Of a rival BMC that shows the same UUID only the serial numbers are known.
type Other struct {
	// Name says which: "Server rack1-07" or "BMC rack1-08".
	Name string
	// Serials and Addresses are those that its BMC shows.
	Serials, Addresses []string
	// Reported are the serial numbers that its agent reported.
	Reported []string
}

// Input is what a report is judged on.
type Input struct {
	// Identity is what is known of the machine; nil where nothing is.
	Identity *policyv1alpha1.MachineIdentity
	// Report is what the agent says.
	Report policyv1alpha1.ReportedIdentity
	// Others are the machines that share something with the report.
	Others []Other
}

// Verdict is what a report proves.
type Verdict struct {
	Kind Kind
	// Reason says what agrees, what contradicts, or why nothing is proved.
	Reason string
	// ByBMC says that what the machine's own BMC shows agrees, and By that a person answers for it.
	ByBMC, ByPerson bool
}

// Proves says that the report is known to be of the machine.
func (v Verdict) Proves() bool { return v.Kind == Agrees }

// Judge holds a report against what is known. Chassis serial numbers are not asked.
func Judge(in Input) Verdict {
	c := newComparison(in)
	if why := c.contradiction(); why != "" {
		return Verdict{Kind: Contradicts, Reason: why}
	}
	switch {
	case in.Identity != nil && in.Identity.Settled != nil:
		return Verdict{Kind: Agrees, ByPerson: true, Reason: in.Identity.Settled.By + " answers for the machine"}
	case c.bmcAddress != "":
		return Verdict{Kind: Agrees, ByBMC: true, Reason: "the BMC shows its address " + c.bmcAddress}
	case c.provedAddress != "":
		return Verdict{Kind: Agrees, Reason: "its address " + c.provedAddress + " was proved before"}
	case (c.bmcSerial != "" || c.provedSerial != "") && c.strangeAddresses():
		return Verdict{Reason: "it shows the serial number of the machine, and no address that the BMC shows"}
	case c.bmcSerial != "":
		return Verdict{Kind: Agrees, ByBMC: true, Reason: "the BMC shows its serial number " + c.bmcSerial}
	case c.provedSerial != "":
		return Verdict{Kind: Agrees, Reason: "its serial number " + c.provedSerial + " was proved before"}
	}
	return Verdict{Reason: c.unproven()}
}

// comparison is a report beside what is known.
type comparison struct {
	Input
	serials, addresses       []string // of the report
	bmcSerials, bmcAddresses []string
	proved                   *policyv1alpha1.ProvedIdentity
	// What agrees; empty where nothing does.
	bmcSerial, bmcAddress, provedSerial, provedAddress string
	// shared is a serial number of the report that counts for nothing, and sharer who shows it too.
	shared, sharer string
}

func newComparison(in Input) *comparison {
	c := &comparison{Input: in, serials: Serials(in.Report.SystemSerial, in.Report.BoardSerial),
		addresses: Addresses(in.Report.PhysicalAddresses...)}
	if id := in.Identity; id != nil {
		if id.BMC != nil {
			c.bmcSerials, c.bmcAddresses = Serials(id.BMC.Serials...), Addresses(id.BMC.PhysicalAddresses...)
		}
		c.proved = id.Proved
	}
	same := c.sameSerials()
	for _, serial := range c.serials {
		all := func(o *Other) []string { return slices.Concat(o.Serials, o.Reported) }
		if sharer := c.showing(all, Serial, serial); sharer != "" {
			c.shared, c.sharer = serial, sharer
			continue
		}
		if slices.Contains(c.bmcSerials, serial) {
			c.bmcSerial = serial
		}
		if same {
			c.provedSerial = serial
		}
	}
	for _, address := range c.addresses {
		if c.showing(func(o *Other) []string { return o.Addresses }, Address, address) != "" {
			continue
		}
		if slices.Contains(c.bmcAddresses, address) {
			c.bmcAddress = address
		}
		if c.proved != nil && slices.Contains(Addresses(c.proved.PhysicalAddresses...), address) {
			c.provedAddress = address
		}
	}
	return c
}

// showing names another machine that shows a value.
func (c *comparison) showing(of func(*Other) []string, clean func(string) string, value string) string {
	for i := range c.Others {
		if slices.ContainsFunc(of(&c.Others[i]), func(text string) bool { return clean(text) == value }) {
			return c.Others[i].Name
		}
	}
	return ""
}

// sameSerials says that both DMI serial numbers are those that were proved.
func (c *comparison) sameSerials() bool {
	return c.proved != nil && Serial(c.Report.SystemSerial) == Serial(c.proved.SystemSerial) &&
		Serial(c.Report.BoardSerial) == Serial(c.proved.BoardSerial)
}

// isOwn says that a serial number is the machine's, by its BMC or by what was proved.
func (c *comparison) isOwn(serial string) bool {
	return slices.Contains(c.bmcSerials, serial) ||
		c.proved != nil && slices.Contains(Serials(c.proved.SystemSerial, c.proved.BoardSerial), serial)
}

// strangeAddresses says that the BMC and the report name addresses and none in common. A list with gaps proves no
// difference.
func (c *comparison) strangeAddresses() bool {
	if len(c.bmcAddresses) == 0 || len(c.addresses) == 0 || c.Identity.BMC.Incomplete || c.provedAddress != "" {
		return false
	}
	return !slices.ContainsFunc(c.addresses, func(a string) bool { return slices.Contains(c.bmcAddresses, a) })
}

// contradiction says what shows that the report is of another machine; empty where nothing does. A person who answers
// for the next report outweighs what was known of this machine, and not what the BMC of another one shows.
func (c *comparison) contradiction() string {
	for _, serial := range c.serials {
		byBMC := func(o *Other) []string { return o.Serials }
		if other := c.showing(byBMC, Serial, serial); other != "" && !c.isOwn(serial) {
			return fmt.Sprintf("serial number %s is that of %s", serial, other)
		}
	}
	serialAgrees := c.bmcSerial != "" || c.provedSerial != ""
	if why := c.otherAddress(); why != "" && !serialAgrees {
		return why
	}
	if c.Identity != nil && c.Identity.Settled != nil {
		return ""
	}
	if why := c.otherSerial(); why != "" && c.bmcAddress == "" && c.provedAddress == "" {
		return why
	}
	if !serialAgrees && c.strangeAddresses() {
		return fmt.Sprintf("the BMC shows the addresses %s, and it has %s", few(c.bmcAddresses), few(c.addresses))
	}
	return ""
}

// otherAddress says that the BMC of another server shows an address of the report, and its own does not.
func (c *comparison) otherAddress() string {
	for _, address := range c.addresses {
		other := c.showing(func(o *Other) []string { return o.Addresses }, Address, address)
		if other != "" && !slices.Contains(c.bmcAddresses, address) {
			return fmt.Sprintf("address %s is that of %s", address, other)
		}
	}
	return ""
}

// otherSerial says that a DMI serial number differs from the one that was proved.
func (c *comparison) otherSerial() string {
	if c.proved == nil {
		return ""
	}
	for _, s := range []struct{ what, was, is string }{
		{"system", Serial(c.proved.SystemSerial), Serial(c.Report.SystemSerial)},
		{"board", Serial(c.proved.BoardSerial), Serial(c.Report.BoardSerial)},
	} {
		if s.was != "" && s.is != "" && s.was != s.is {
			return fmt.Sprintf("its %s has serial number %s, and the one that was proved had %s; no address agrees",
				s.what, s.is, s.was)
		}
	}
	return ""
}

// unproven says why nothing is proved.
func (c *comparison) unproven() string {
	switch {
	case c.Identity == nil || c.Identity.BMC == nil:
		return "what the BMC shows of the machine is not stored yet"
	case len(c.bmcSerials) == 0 && len(c.bmcAddresses) == 0:
		return "the BMC shows neither a serial number nor an address of the machine"
	case len(c.serials) == 0 && len(c.addresses) == 0:
		return "the machine reports neither a serial number nor an address"
	case c.shared != "":
		return fmt.Sprintf("serial number %s is that of %s too, and no address agrees", c.shared, c.sharer)
	}
	return "neither a serial number nor an address of the report is what the BMC shows"
}

// maxNamed bounds the addresses that a reason names.
const maxNamed = 3

func few(all []string) string {
	if len(all) <= maxNamed {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxNamed], ", "), len(all)-maxNamed)
}
