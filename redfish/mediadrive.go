// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// mediaDoc is what we read of a VirtualMedia resource.
type mediaDoc struct {
	ETag         text `json:"@odata.etag"`
	MediaTypes   list[text]
	Image        text
	Inserted     flag
	ConnectedVia text
	Actions      object[struct {
		Insert object[struct {
			Target link `json:"target"`
		}] `json:"#VirtualMedia.InsertMedia"`
		Eject object[struct {
			Target link `json:"target"`
		}] `json:"#VirtualMedia.EjectMedia"`
	}]
}

// mediaDrive is one virtual drive that takes a CD.
type mediaDrive struct {
	uri string
	doc *mediaDoc
}

// mediaBody is one way to ask for an image.
type mediaBody struct {
	properties func(image *url.URL) map[string]any
	// evidence says who takes it.
	evidence string
}

// insertBodies are tried in turn, the next one after a refusal that says that nothing was done.
var insertBodies = []mediaBody{
	{func(image *url.URL) map[string]any {
		return map[string]any{"Image": image.String(), "Inserted": true, "WriteProtected": true}
	}, "DSP2046; iDRAC 9 and 10: dell/terraform-provider-redfish issue 331; XCC by PATCH: lenovo/python-redfish-lenovo pull request 124"},
	{func(image *url.URL) map[string]any {
		return map[string]any{"Image": image.String(), "Inserted": true, "WriteProtected": true,
			"TransferProtocolType": strings.ToUpper(image.Scheme), "TransferMethod": "Stream"}
	}, "iRMC: the provider of Fujitsu for Terraform requires transfer_protocol_type"},
	{func(image *url.URL) map[string]any { return map[string]any{"Image": image.String()} },
		"iLO and Supermicro: ansible-collections/community.general repeats with Image alone for them"},
}

// ejectBodies are those of a PATCH, for BMCs without EjectMedia. The action takes an empty object.
var ejectBodies = []mediaBody{
	{func(*url.URL) map[string]any { return map[string]any{"Image": nil, "Inserted": false} }, "DSP2046"},
	{func(*url.URL) map[string]any { return map[string]any{"Image": nil} }, "XCC: lenovo/python-redfish-lenovo"},
}

// drivesOf lists the drives for CDs of a system: those that the system links, else those of the managers that it names.
// Evidence: iDRAC 9 and XCC list drives at both places and iDRAC asks for those of the system; a Supermicro system links
// those of its BMC; iLO 5 and NVIDIA's BMCs list them below the BMC alone; a DGX H100 lists none until they are enabled.
func drivesOf(o *operation, uri string, system *systemDoc) ([]*mediaDrive, error) {
	if system.VirtualMedia != "" {
		drives, err := drivesIn(o, string(system.VirtualMedia))
		if err != nil || len(drives) > 0 {
			return drives, err
		}
	}
	linked := system.VirtualMedia != ""
	for _, manager := range system.Links.Value.ManagedBy.Values {
		doc, err := o.managerAt(string(manager))
		if err != nil {
			return nil, err
		}
		if doc.VirtualMedia == "" {
			continue
		}
		linked = true
		if hosts := hostsOf(doc); hosts > 1 {
			return nil, &UnsupportedError{URI: uri, Wanted: "virtual media", Hint: "its BMC has the drives of several systems in one list, " +
				"and nothing says whose they are; boot this system from the network"}
		}
		drives, err := drivesIn(o, string(doc.VirtualMedia))
		if err != nil || len(drives) > 0 {
			return drives, err
		}
	}
	hint := "neither it nor its BMC lists virtual drives; boot it from the network"
	if linked {
		hint = "no virtual drive for a CD is listed; enable virtual media in the BMC's settings, or boot it from the network"
	}
	return nil, &UnsupportedError{URI: uri, Wanted: "virtual media", Hint: hint}
}

// hostsOf counts the systems of a manager that are no trays.
func hostsOf(doc *managerDoc) int {
	hosts := 0
	for _, l := range doc.Links.Value.ManagerForServers.Values {
		if !isTray(string(l)) {
			hosts++
		}
	}
	return hosts
}

func drivesIn(o *operation, collection string) ([]*mediaDrive, error) {
	members, err := o.members(collection)
	if statusIs(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var drives []*mediaDrive
	for _, m := range members {
		if m.err != nil {
			return nil, m.err // an image in a drive that cannot be read might be booted
		}
		doc := &mediaDoc{}
		if json.Unmarshal(m.raw, doc) == nil && takesCD(words(doc.MediaTypes)) {
			drives = append(drives, &mediaDrive{uri: m.URI, doc: doc})
		}
	}
	return drives, nil
}

// insertable is the drive that takes an image by its URL: the first, but for XCC, whose RDOC and Remote drives take none
// and may come first (pubs.lenovo.com/xcc-restapi, "Insert/Eject a virtual media").
func insertable(drives []*mediaDrive) *mediaDrive {
	for _, d := range drives {
		id := strings.ToLower(lastSegment(d.uri))
		if !strings.HasPrefix(id, "rdoc") && !strings.HasPrefix(id, "remote") {
			return d
		}
	}
	return drives[0]
}

// inserted reports whether a drive holds an image. Supermicro goes on showing the former Image with NotConnected
// (ansible-collections/community.general pull request 7470).
func (d *mediaDrive) inserted() bool {
	if strings.EqualFold(string(d.doc.ConnectedVia), "NotConnected") {
		return false
	}
	return d.doc.Inserted.Present && d.doc.Inserted.Value || !d.doc.Inserted.Present && d.doc.Image != ""
}

func (d *mediaDrive) state() MediaState {
	return MediaState{URI: d.uri, Types: words(d.doc.MediaTypes), Inserted: d.inserted(), Image: string(d.doc.Image)}
}

// read looks at the drive once more.
func (d *mediaDrive) read(o *operation) error {
	doc := &mediaDoc{}
	got, err := o.get(d.uri, doc)
	if err != nil {
		return err
	}
	doc.ETag = text(cmp.Or(got.header.Get("ETag"), string(doc.ETag)))
	d.doc = doc
	return nil
}

// insert puts an image into an empty drive and reads it back.
func (d *mediaDrive) insert(o *operation, image string) error {
	parsed, err := url.Parse(image)
	if err != nil {
		return err
	}
	later, err := d.write(o, string(d.doc.Actions.Value.Insert.Value.Target), insertBodies, parsed)
	if err != nil {
		return err
	}
	shown, err := d.becomes(o, func() bool { return d.inserted() && (d.doc.Image == "" || showsImage(string(d.doc.Image), image)) })
	if err != nil || shown {
		return err
	}
	return &MediaError{Address: o.c.base.Host, URI: d.uri, Asked: "insert", Shows: d.shows(), Remedy: remedyInsert, Later: later}
}

// eject empties a drive of the system and reads that back. The system is checked right before the write.
func (d *mediaDrive) eject(o *operation, system string, want Identity) error {
	if _, _, err := o.checked(system, want); err != nil {
		return err
	}
	bodies, target := ejectBodies, string(d.doc.Actions.Value.Eject.Value.Target)
	if target == "" && d.doc.Actions.Value.Insert.Value.Target != "" { // the list may show a drive without it
		if err := d.read(o); err != nil {
			return err
		}
		target = string(d.doc.Actions.Value.Eject.Value.Target)
	}
	if target != "" {
		bodies = []mediaBody{{properties: func(*url.URL) map[string]any { return map[string]any{} }}}
	}
	later, err := d.write(o, target, bodies, nil)
	if err != nil {
		return err
	}
	gone, err := d.becomes(o, func() bool { return !d.inserted() })
	if err != nil || gone {
		return err
	}
	return &MediaError{Address: o.c.base.Host, URI: d.uri, Asked: "eject", Shows: d.shows(), Remedy: remedyEject, Later: later}
}

func (d *mediaDrive) shows() string {
	if !d.inserted() {
		return "no image"
	}
	return shortImage(string(d.doc.Image))
}

// write runs an action, or changes the resource where there is none. later says that it was taken as a task.
func (d *mediaDrive) write(o *operation, action string, bodies []mediaBody, image *url.URL) (later bool, err error) {
	var first error
	for _, body := range bodies {
		later, err := d.ask(o, action, body.properties(image))
		if err == nil {
			return later, nil
		}
		if first == nil {
			first = err
		}
		if !statusIs(err, http.StatusBadRequest) {
			return false, err
		}
	}
	return false, first
}

func (d *mediaDrive) ask(o *operation, action string, body map[string]any) (later bool, err error) {
	if action != "" {
		return false, o.post(action, string(d.doc.ETag), body)
	}
	if d.doc.ETag == "" { // a list may leave it out
		if err := d.read(o); err != nil {
			return false, err
		}
	}
	got, err := o.send(http.MethodPatch, d.uri, body, ifMatch(string(d.doc.ETag)))
	if statusIs(err, http.StatusPreconditionFailed, http.StatusPreconditionRequired) {
		got, err = o.send(http.MethodPatch, d.uri, body, ifMatch(cmp.Or(strongETag(string(d.doc.ETag)), "*")))
	}
	return err == nil && got.status == http.StatusAccepted, err
}

// becomes reads the drive until it shows what is wanted; false where it does not within some seconds.
func (d *mediaDrive) becomes(o *operation, wanted func() bool) (bool, error) {
	for repeats := 0; ; repeats++ {
		if err := d.read(o); err != nil {
			return false, err
		}
		if wanted() {
			return true, nil
		}
		if repeats >= showRepeats || !o.pause(o.c.options.ShowPause<<repeats) {
			return false, nil
		}
	}
}
