// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// MediaSlot is one device of virtual media.
type MediaSlot struct {
	ID string
	// Types are its MediaTypes: CD, DVD, USBStick, Floppy.
	Types []string
}

// MediaOffer is what virtual media a make offers, and how.
type MediaOffer struct {
	// OnSystem and OnManager are the slots that the system and the BMC list. Slots of one ID are one device.
	OnSystem, OnManager []MediaSlot
	// SystemLinksManager has the system link the BMC's collection. Evidence: Supermicro 821GE.
	SystemLinksManager bool
	// Empty shows a collection without members on the manager. Evidence: DGX H100, which enables slots by an action of its own.
	Empty bool
	// ByPatch: there are no actions; a change of Image inserts and ejects. Evidence: Lenovo XCC.
	ByPatch bool
	// EjectWhenInserted shows EjectMedia only while something is inserted. Evidence: Supermicro 821GE.
	EjectWhenInserted bool
	// KeepsImage goes on showing Image after an eject, with ConnectedVia NotConnected. Evidence: community.general pull
	// request 7470 (Supermicro).
	KeepsImage bool
	// WantsProtocol refuses an insert without TransferProtocolType, and OnlyImage one that has more than Image.
	WantsProtocol, OnlyImage bool
}

func (o *MediaOffer) clone() MediaOffer {
	c := *o
	c.OnSystem, c.OnManager = slices.Clone(o.OnSystem), slices.Clone(o.OnManager)
	return c
}

// takesCD reports whether what is inserted into the slot can be booted as a CD.
func (s *MediaSlot) takesCD() bool {
	return slices.Contains(s.Types, "CD") || slices.Contains(s.Types, "DVD")
}

// medium is what a slot holds.
type medium struct {
	slot     MediaSlot
	image    string
	inserted bool
}

// mediumAt is what a slot holds, by its ID or, of a captured tree, by its URI. bmc.mu is held.
func (m *Machine) mediumAt(key string, slot MediaSlot) *medium {
	key = strings.ToLower(key)
	if m.media == nil {
		m.media = map[string]*medium{}
	}
	if m.media[key] == nil {
		m.media[key] = &medium{slot: slot}
	}
	return m.media[key]
}

// insertedCD is the image of the first slot with a CD in it; empty where there is none. bmc.mu is held.
func (m *Machine) insertedCD() string {
	keys := make([]string, 0, len(m.media))
	for key, held := range m.media {
		if held.inserted && held.slot.takesCD() {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return m.media[slices.Min(keys)].image
}

// Media lists the images that are inserted, by slot.
func (m *Machine) Media() map[string]string {
	m.bmc.mu.Lock()
	defer m.bmc.mu.Unlock()
	inserted := map[string]string{}
	for key, held := range m.media {
		if held.inserted {
			inserted[key] = held.image
		}
	}
	return inserted
}

// mediaInput is what an insert may say.
type mediaInput struct {
	Image                                *string
	Inserted, WriteProtected             *bool
	TransferProtocolType, TransferMethod *string
	UserName, Password                   *string
}

// more reports whether the input says anything besides Image.
func (in *mediaInput) more() bool {
	return in.Inserted != nil || in.WriteProtected != nil || in.TransferProtocolType != nil || in.TransferMethod != nil
}

// insert puts an image into a slot. It refuses one that holds another, as iDRAC does. bmc.mu is held.
func (m *Machine) insert(held *medium, in *mediaInput) *answer {
	offer := &m.bmc.profile.Media
	refuse := func(a answer) *answer { return &a }
	switch {
	case in.Image == nil || *in.Image == "":
		return refuse(failure(http.StatusBadRequest, "ActionParameterMissing", "The action InsertMedia requires the parameter Image."))
	case offer.OnlyImage && in.more():
		return refuse(failure(http.StatusBadRequest, "ActionParameterUnknown", "The action InsertMedia takes no parameter but Image."))
	case offer.WantsProtocol && in.TransferProtocolType == nil:
		return refuse(failure(http.StatusBadRequest, "ActionParameterMissing",
			"The action InsertMedia requires the parameter TransferProtocolType to be present in the request body."))
	case !strings.HasPrefix(*in.Image, "http://") && !strings.HasPrefix(*in.Image, "https://"):
		return refuse(failure(http.StatusBadRequest, "ActionParameterValueFormatError", "Image is no URL that this service can open."))
	case held.inserted && held.image != *in.Image:
		return refuse(failure(http.StatusBadRequest, "ResourceInUse", "The virtual media is in use: eject it first."))
	}
	held.image, held.inserted = *in.Image, true
	m.bmc.notify()
	return nil
}

// eject empties a slot. bmc.mu is held.
func (m *Machine) eject(held *medium) {
	held.inserted = false
	if !m.bmc.profile.Media.KeepsImage {
		held.image = ""
	}
	m.bmc.notify()
}

// show fills in what a slot holds.
func (h *medium) show(body doc) {
	body["Inserted"], body["ConnectedVia"], body["Image"], body["ImageName"] = h.inserted, "NotConnected", nil, nil
	if h.inserted {
		body["ConnectedVia"] = "URI"
	}
	if h.image != "" {
		body["Image"], body["ImageName"] = h.image, h.image[strings.LastIndexByte(h.image, '/')+1:]
	}
}

// mediaPath is where a slot's collection is: below the system or the manager that the path names; nil where neither has one.
func (x *exchange) mediaPath() (m *Machine, path string, slots []MediaSlot) {
	offer := &x.bmc.profile.Media
	if x.params["system"] != "" {
		if m = x.machine(); m != nil && len(offer.OnSystem) > 0 {
			return m, m.systemPath() + "/VirtualMedia", offer.OnSystem
		}
		return nil, "", nil
	}
	if x.isManager() && (len(offer.OnManager) > 0 || offer.Empty) {
		return x.bmc.machines[0], x.bmc.managerPath() + "/VirtualMedia", offer.OnManager
	}
	return nil, "", nil
}

func getMediaCollection(x *exchange) answer {
	m, path, slots := x.mediaPath()
	if m == nil {
		return notFound(x.path)
	}
	var members []string
	for _, slot := range slots {
		members = append(members, path+"/"+slot.ID)
	}
	return ok(x.bmc.collection(path, "VirtualMediaCollection", "Virtual Media", members))
}

// medium is the slot that the path names; nil where there is none.
func (x *exchange) medium() (m *Machine, held *medium, path string) {
	m, path, slots := x.mediaPath()
	for _, slot := range slots {
		if m != nil && strings.EqualFold(slot.ID, x.params["medium"]) {
			held = m.mediumAt(slot.ID, slot)
			return m, held, path + "/" + slot.ID
		}
	}
	return nil, nil, ""
}

func (x *exchange) mediumBody(held *medium, path string) doc {
	offer := &x.bmc.profile.Media
	body := x.bmc.resource(path, "VirtualMedia.v1_4_0", held.slot.ID, "Virtual Media "+held.slot.ID)
	body["MediaTypes"], body["WriteProtected"] = held.slot.Types, true
	held.show(body)
	if offer.ByPatch {
		return body
	}
	actions := doc{"#VirtualMedia.InsertMedia": doc{"target": path + "/Actions/VirtualMedia.InsertMedia"}}
	if held.inserted || !offer.EjectWhenInserted {
		actions["#VirtualMedia.EjectMedia"] = doc{"target": path + "/Actions/VirtualMedia.EjectMedia"}
	}
	body["Actions"] = actions
	return body
}

func getMedium(x *exchange) answer {
	_, held, path := x.medium()
	if held == nil {
		return notFound(x.path)
	}
	return ok(x.mediumBody(held, path))
}

func postInsertMedia(x *exchange) answer {
	m, held, _ := x.medium()
	if held == nil || x.bmc.profile.Media.ByPatch {
		return notFound(x.path)
	}
	return x.insertMedium(m, held)
}

func (x *exchange) insertMedium(m *Machine, held *medium) answer {
	if x.bmc.profile.ActionRefusesIfMatch && x.req.Header.Get("If-Match") != "" {
		return failure(http.StatusPreconditionFailed, "PreconditionFailed", "An action takes no If-Match.")
	}
	var in mediaInput
	if bad := x.decode(&in); bad != nil {
		return *bad
	}
	if refused := m.insert(held, &in); refused != nil {
		return *refused
	}
	return success(cmp.Or(x.bmc.profile.ResetStatus, http.StatusNoContent))
}

func postEjectMedia(x *exchange) answer {
	m, held, _ := x.medium()
	if held == nil || x.bmc.profile.Media.ByPatch {
		return notFound(x.path)
	}
	m.eject(held)
	return success(cmp.Or(x.bmc.profile.ResetStatus, http.StatusNoContent))
}

// patchMedium inserts by Image where the make has no action, and ejects by null.
func patchMedium(x *exchange) answer {
	m, held, path := x.medium()
	switch {
	case held == nil:
		return notFound(x.path)
	case !x.bmc.profile.Media.ByPatch:
		return failure(http.StatusMethodNotAllowed, "OperationNotAllowed", "Use the actions InsertMedia and EjectMedia.")
	}
	if refused := x.bmc.profile.precondition(x.req, x.mediumBody(held, path)); refused != nil {
		return *refused
	}
	return x.changeMedium(m, held, func() doc { return x.mediumBody(held, path) })
}

func (x *exchange) changeMedium(m *Machine, held *medium, body func() doc) answer {
	var in mediaInput
	if bad := x.decode(&in); bad != nil {
		return *bad
	}
	if in.Image == nil || *in.Image == "" {
		m.eject(held)
	} else if refused := m.insert(held, &in); refused != nil {
		return *refused
	}
	if x.bmc.profile.PatchStatus == http.StatusNoContent {
		return noContent()
	}
	return ok(body())
}
