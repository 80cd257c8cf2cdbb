// SPDX-License-Identifier: Apache-2.0

package metalprobe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
)

// Report is the body of POST /register.
type Report struct {
	// SystemUUID names the server, in either byte order of its first three groups and in any case.
	SystemUUID string `json:"systemUUID"`
	// AgentVersion is the version of the agent that sent the report; agents of others leave it out.
	AgentVersion string `json:"agentVersion,omitempty"`
	Data         Data   `json:"data"`
}

// BootStateReport is the body of POST /bootstate.
type BootStateReport struct {
	SystemUUID string `json:"systemUUID"`
	// Booted is true once the operating system is up.
	Booted bool `json:"booted"`
}

// Data describes the hardware as the running system sees it: the API's ProbeData, and what agents of others spell in
// more than one way. What could not be read is left out.
type Data struct {
	Timestamp         Timestamp                              `json:"timestamp,omitzero"`
	SystemInfo        policyv1alpha1.SystemInfo              `json:"systemInfo,omitzero"`
	CPU               []CPU                                  `json:"cpu,omitempty"`
	NetworkInterfaces []policyv1alpha1.ProbeNetworkInterface `json:"networkInterfaces,omitempty"`
	LLDP              LLDPInterfaces                         `json:"lldp,omitempty"`
	Storage           []policyv1alpha1.BlockDevice           `json:"storage,omitempty"`
	Memory            []policyv1alpha1.MemoryDevice          `json:"memory,omitempty"`
	NICs              []policyv1alpha1.NIC                   `json:"nics,omitempty"`
	PCIDevices        []policyv1alpha1.PCIDevice             `json:"pciDevices,omitempty"`
	// Hidden is storage that the machine has and that no disk shows; HiddenKnown says that the agent looked for it.
	Hidden      []policyv1alpha1.HiddenStorage `json:"hidden,omitempty"`
	HiddenKnown bool                           `json:"hiddenKnown,omitempty"`
	// Problems are what could not be read or loaded; the data is incomplete to that extent.
	Problems []policyv1alpha1.ProbeProblem `json:"problems,omitempty"`
}

// Digest is the hex SHA-256 of the hardware that the data describes. It leaves out what changes while the machine runs: times,
// addresses, links, the words of neighbours and of problems.
func (d Data) Digest() string {
	d.Timestamp = Timestamp{}
	d.NetworkInterfaces = slices.Clone(d.NetworkInterfaces)
	for i := range d.NetworkInterfaces {
		d.NetworkInterfaces[i].IPAddresses, d.NetworkInterfaces[i].CarrierStatus = nil, ""
	}
	d.NICs = slices.Clone(d.NICs)
	for i := range d.NICs {
		d.NICs[i].Speed = ""
	}
	d.Storage = slices.Clone(d.Storage)
	for i := range d.Storage {
		d.Storage[i].ContentFound = ""
	}
	d.Hidden = slices.Clone(d.Hidden)
	for i := range d.Hidden {
		d.Hidden[i].Reason = "" // a drive words its failure anew each time
	}
	d.LLDP = ports(d.LLDP)
	d.Problems = slices.Clone(d.Problems)
	for i := range d.Problems {
		d.Problems[i].Message = ""
	}
	text, err := json.Marshal(d)
	if err != nil {
		// Data holds only strings, numbers and booleans, which always marshal.
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ports keeps of the neighbours which port of which chassis each one is.
func ports(neighbours LLDPInterfaces) LLDPInterfaces {
	kept := slices.Clone(neighbours)
	for i := range kept {
		kept[i].Neighbors = slices.Clone(kept[i].Neighbors)
		for j, n := range kept[i].Neighbors {
			kept[i].Neighbors[j] = policyv1alpha1.LLDPNeighbor{ChassisID: n.ChassisID, PortID: n.PortID}
		}
	}
	return kept
}

// CPU is one processor package (socket). Unlike the API's, it always names its number, also 0.
type CPU struct {
	ID                   int32    `json:"id"`
	TotalCores           int32    `json:"totalCores,omitempty"`
	TotalHardwareThreads int32    `json:"totalHardwareThreads,omitempty"`
	Vendor               string   `json:"vendor,omitempty"`
	Model                string   `json:"model,omitempty"`
	Capabilities         []string `json:"capabilities,omitempty"`
}

// LLDPInterfaces reads both spellings in use: a list, and an object that holds the list under "interfaces".
type LLDPInterfaces []policyv1alpha1.LLDPInterface

// UnmarshalJSON implements json.Unmarshaler.
func (l *LLDPInterfaces) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return json.Unmarshal(text, (*[]policyv1alpha1.LLDPInterface)(l))
	}
	var object struct {
		Interfaces []policyv1alpha1.LLDPInterface `json:"interfaces"`
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	*l = object.Interfaces
	return nil
}

// Timestamp is when the agent read the hardware, by the server's own clock, which may be wrong.
type Timestamp struct{ time.Time }

// microseconds is RFC 3339 with exactly six digits, which every reader of Kubernetes times accepts.
const microseconds = "2006-01-02T15:04:05.000000Z07:00"

// MarshalJSON implements json.Marshaler.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.UTC().Format(microseconds))
}

// UnmarshalJSON reads RFC 3339 text or a number of seconds since 1970; null and "" mean not known.
func (t *Timestamp) UnmarshalJSON(text []byte) error {
	*t = Timestamp{}
	if string(text) == "null" || string(text) == `""` {
		return nil
	}
	if len(text) > 0 && text[0] != '"' {
		seconds, err := strconv.ParseFloat(string(text), 64)
		if err != nil || seconds < 0 || seconds > 253402300799 { // the year 9999
			return fmt.Errorf("timestamp %.40s: not a number of seconds since 1970", text)
		}
		t.Time = time.Unix(int64(seconds), 0).UTC()
		return nil
	}
	var word string
	if err := json.Unmarshal(text, &word); err != nil {
		return err
	}
	parsed, err := time.Parse(time.RFC3339, word)
	if err != nil {
		return fmt.Errorf("timestamp %.40q: not in the form 2006-01-02T15:04:05Z", word)
	}
	if year := parsed.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("timestamp %.40q: the year is out of range", word)
	}
	t.Time = parsed
	return nil
}
