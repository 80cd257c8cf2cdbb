// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"
)

// systemDoc is what we read of a ComputerSystem. Its fields never fail to decode.
type systemDoc struct {
	ODataID                 text `json:"@odata.id"`
	ETag                    text `json:"@odata.etag"`
	ID                      text `json:"Id"`
	UUID                    text
	SerialNumber            text
	Manufacturer            text
	Model                   text
	SKU                     text
	BiosVersion             text
	PowerState              text
	IndicatorLED            text
	LocationIndicatorActive flag
	Status                  object[struct{ Health, HealthRollup text }]
	MemorySummary           object[struct{ TotalSystemMemoryGiB number }]
	ProcessorSummary        object[struct {
		Count number
		Model text
	}]
	Boot               object[bootDoc]
	BootProgress       object[struct{ LastState, LastStateTime text }]
	Actions            object[systemActions]
	EthernetInterfaces link
	VirtualMedia       link
	Storage            link
	Links              object[struct{ ManagedBy list[link] }]
	Settings           object[struct{ SettingsObject link }] `json:"@Redfish.Settings"`
}

type systemActions struct {
	Reset object[resetAction] `json:"#ComputerSystem.Reset"`
}

type resetAction struct {
	Target     link       `json:"target"`
	Allowed    list[text] `json:"ResetType@Redfish.AllowableValues"`
	ActionInfo link       `json:"@Redfish.ActionInfo"`
}

// System implements Reader.
func (c *client) System(ctx context.Context, uri string) (SystemSnapshot, error) {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return SystemSnapshot{}, err
	}
	defer cancel()
	_, snapshot, err := op.system(uri)
	return snapshot, err
}

// system reads one system. A 404 of a remembered URI makes the next Manager look for the system anew; it does not say
// that the system is gone, because a BMC that boots gives 404 as well.
func (o *operation) system(uri string) (*systemDoc, SystemSnapshot, error) {
	doc := &systemDoc{}
	got, err := o.get(uri, doc)
	if err != nil {
		if statusIs(err, http.StatusNotFound) {
			o.c.forgetTopology()
		}
		return nil, SystemSnapshot{}, err
	}
	if doc.ODataID == "" && doc.ID == "" && doc.PowerState == "" && doc.UUID == "" {
		return nil, SystemSnapshot{}, o.bad(http.MethodGet, uri, got.status, "the answer describes no system")
	}
	doc.ETag = cmp.Or(text(got.header.Get("ETag")), doc.ETag)
	snapshot := doc.snapshot(uri)
	if len(snapshot.ResetTypes) == 0 {
		snapshot.ResetTypes = o.c.knownResetTypes(string(doc.Actions.Value.Reset.Value.ActionInfo))
	}
	return doc, o.withParts(snapshot, got.body), nil
}

func (d *systemDoc) snapshot(uri string) SystemSnapshot {
	return SystemSnapshot{
		URI: uri,
		Identity: Identity{
			UUID:         cleanUUID(string(d.UUID)),
			SerialNumber: cleanSerial(string(d.SerialNumber)),
			Manufacturer: string(d.Manufacturer),
			Model:        string(d.Model),
			SKU:          string(d.SKU),
		},
		Power:       powerState(d.PowerState),
		Health:      health(d.Status.Value.HealthRollup, d.Status.Value.Health),
		LED:         d.led(),
		BIOSVersion: string(d.BiosVersion),
		MemoryBytes: gibibytes(d.MemorySummary.Value.TotalSystemMemoryGiB),
		CPUCount:    count(d.ProcessorSummary.Value.Count),
		CPUModel:    string(d.ProcessorSummary.Value.Model),
		Boot: BootOverride{
			Enabled: string(d.Boot.Value.Enabled),
			Target:  string(d.Boot.Value.Target),
			Allowed: words(d.Boot.Value.Allowed),
			Missing: d.withoutOverride(),
		},
		BootProgress: BootProgress{
			LastState:     string(d.BootProgress.Value.LastState),
			LastStateTime: string(d.BootProgress.Value.LastStateTime),
		},
		BootOrder:  words(d.Boot.Value.Order),
		ResetTypes: words(d.Actions.Value.Reset.Value.Allowed),
		TakenAt:    time.Now(),
	}
}

// resettable reports whether a member of the systems collection is a host, and not a GPU tray or the like.
func (d *systemDoc) resettable(uri string) bool {
	if isTray(uri) {
		return false
	}
	if d.Actions.Value.Reset.Value.Target != "" {
		return true
	}
	return d.PowerState != "" && (d.Boot.Present || cleanUUID(string(d.UUID)) != "")
}

// oneOf returns the word that t is in any case of letters, else otherwise.
func oneOf[T ~string](t text, otherwise T, words ...T) T {
	for _, word := range words {
		if strings.EqualFold(string(t), string(word)) {
			return word
		}
	}
	return otherwise
}

func powerState(t text) PowerState {
	return oneOf(t, PowerUnknown, PowerOn, PowerOff, PowerPaused, PowerPoweringOn, PowerPoweringOff)
}

// health takes the roll-up, and the system's own health where there is none.
func health(rollup, own text) Health {
	known := []Health{HealthOK, HealthWarning, HealthCritical}
	return oneOf(rollup, oneOf(own, HealthUnknown, known...), known...)
}

func (d *systemDoc) led() IndicatorLED {
	otherwise := LEDUnknown
	if d.LocationIndicatorActive.Present {
		otherwise = switched(d.LocationIndicatorActive.Value)
	}
	return oneOf(d.IndicatorLED, otherwise, LEDLit, LEDBlinking, LEDOff)
}

func switched(on bool) IndicatorLED {
	if on {
		return LEDLit
	}
	return LEDOff
}

// gibibytes bounds what a BMC claims to something that fits (1 EiB).
func gibibytes(n number) int64 {
	if n <= 0 || n > 1<<30 {
		return 0
	}
	return int64(float64(n) * (1 << 30))
}

func count(n number) int {
	if n <= 0 || n > 1<<16 {
		return 0
	}
	return int(n)
}
