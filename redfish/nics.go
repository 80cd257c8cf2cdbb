// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"strings"
)

type nicDoc struct {
	ID                  text `json:"Id"`
	Name                text
	MACAddress          text
	PermanentMACAddress text
	LinkStatus          text
	Links               object[struct{ HostInterface link }]
}

// SystemDetail implements Reader.
func (c *client) SystemDetail(ctx context.Context, uri string) (SystemSnapshot, error) {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return SystemSnapshot{}, err
	}
	defer cancel()
	doc, snapshot := c.justListed(uri)
	if doc == nil {
		doc, snapshot, err = op.system(uri)
	}
	if err != nil {
		return snapshot, err
	}
	if snapshot.NICs, snapshot.NICsIncomplete, err = op.hostNICs(doc); err != nil {
		return SystemSnapshot{}, err
	}
	return snapshot, nil
}

// hostNICs reads the interfaces of a system. A system without such a collection has none to show.
func (o *operation) hostNICs(doc *systemDoc) (nics []NIC, incomplete bool, err error) {
	if doc.EthernetInterfaces == "" {
		return nil, false, nil
	}
	members, err := o.members(string(doc.EthernetInterfaces))
	if statusIs(err, http.StatusNotFound) { // a link to a collection that the BMC does not have
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if err := readAgain(o, members); err != nil {
		return nil, false, err
	}
	nics, incomplete = hostNICs(members)
	return nics, incomplete, nil
}

// readAgain reads once more the members that could not be read: a BMC that is busy fails one request among many.
func readAgain(o *operation, members []member) error {
	for i := range members {
		m := &members[i]
		if m.err == nil || m.URI == "" {
			continue
		}
		if _, m.err = o.get(m.URI, &m.raw); m.err != nil && o.fatal(m.err) {
			return m.err
		}
	}
	return nil
}

// hostNICs keeps the host's own interfaces with a usable MAC address, each address once.
func hostNICs(members []member) (nics []NIC, incomplete bool) {
	seen := map[string]bool{}
	for _, m := range members {
		var doc nicDoc
		if m.err != nil || json.Unmarshal(m.raw, &doc) != nil {
			incomplete = true
			continue
		}
		if doc.Links.Value.HostInterface != "" || leadsToBMC(string(doc.ID)) || leadsToBMC(lastSegment(m.URI)) {
			continue
		}
		mac, ok := cleanMAC(string(doc.MACAddress))
		if !ok {
			mac, ok = cleanMAC(string(doc.PermanentMACAddress))
		}
		if !ok || seen[mac] {
			continue
		}
		seen[mac] = true
		nics = append(nics, NIC{
			Name:       cmp.Or(string(doc.ID), lastSegment(m.URI), string(doc.Name)),
			MACAddress: mac,
			LinkUp:     strings.EqualFold(string(doc.LinkStatus), "LinkUp"),
		})
	}
	return nics, incomplete
}

var macDigits = strings.NewReplacer(":", "", "-", "", ".", "", " ", "")

// cleanMAC brings an EUI-48 address to lower case with colons. Group addresses, all zeros and anything else are refused.
func cleanMAC(raw string) (string, bool) {
	digits := macDigits.Replace(raw)
	octets, err := hex.DecodeString(digits)
	if err != nil || len(octets) != 6 || octets[0]&1 != 0 {
		return "", false
	}
	mac := net.HardwareAddr(octets).String()
	return mac, mac != "00:00:00:00:00:00"
}
