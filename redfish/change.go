// SPDX-License-Identifier: Apache-2.0

package redfish

import "net/http"

// change is a write to a system: what must hold before it, and what is written.
type change struct {
	want Identity
	// refuse returns an error where nothing may be written; nil refuses nothing.
	refuse func(*systemDoc, SystemSnapshot) error
	// holds reports that nothing has to be written. pending is what the settings resource shows; nil where there is none.
	holds func(current, pending *systemDoc) bool
	// bodies are tried in order; the next only after a 400, which says that nothing was changed.
	bodies func(*systemDoc) []map[string]any
	// throughSettings writes to the settings resource where the system names one that has a Boot object.
	throughSettings bool
	// onlyLater hears that the first body got a 400 and a later one was accepted.
	onlyLater func()
}

// checked reads the system afresh and proves that it is the one meant.
func (o *operation) checked(uri string, want Identity) (*systemDoc, SystemSnapshot, error) {
	doc, snapshot, err := o.systemFor(uri, want)
	if err != nil {
		return nil, snapshot, err
	}
	if !Shows(want, snapshot) {
		return nil, snapshot, &IdentityError{URI: uri, Want: want, Got: snapshot.Identity}
	}
	return doc, snapshot, nil
}

// applied is what came of a change.
type applied struct {
	// doc is the system as it was read for the change.
	doc *systemDoc
	// at is the resource that was written; empty where the change held already.
	at string
	// later says that the BMC took the change as a task (202), so that it may show after a while only.
	later bool
}

// apply makes a change. A refusal for want of the right If-Match (412, 428) is answered once: everything is read and
// checked anew, because it may also mean that somebody else was faster. So it is after a refusal of a busy BMC: what was
// read then shows whether the change was made all the same. Where that cannot be read, the error still says that the change
// may have been made.
func (o *operation) apply(uri string, ch change) (applied, error) {
	var open error // the first write whose outcome is not known
	for again, repeats := false, 0; ; {
		doc, snapshot, err := o.checked(uri, ch.want)
		if err == nil && ch.refuse != nil {
			err = ch.refuse(doc, snapshot)
		}
		if err != nil {
			return applied{}, afterOpen(open, err)
		}
		target, etag := uri, string(doc.ETag)
		var pending *systemDoc
		if ch.throughSettings {
			if pending = o.settings(doc); pending != nil {
				target, etag = string(doc.Settings.Value.SettingsObject), string(pending.ETag)
			}
		}
		if ch.holds(doc, pending) {
			return applied{doc: doc}, nil
		}
		if again {
			etag = strongETag(etag)
		}
		later, err := o.patch(target, etag, ch, doc)
		if o.waitedOut(err, repeats) {
			open = firstOpen(open, err)
			repeats++
			continue
		}
		if again || !statusIs(err, http.StatusPreconditionFailed, http.StatusPreconditionRequired) {
			return applied{doc: doc, at: target, later: later}, err
		}
		if statusIs(err, http.StatusPreconditionRequired) && etag == "" {
			o.c.learn(func(m *memory) { m.habits.patchIfMatch = true })
		}
		again = true
	}
}

// patch sends the bodies in turn, and says whether the one that was accepted was taken as a task.
func (o *operation) patch(target, etag string, ch change, doc *systemDoc) (later bool, err error) {
	if etag == "" && o.c.recall().habits.patchIfMatch {
		etag = "*"
	}
	for i, body := range ch.bodies(doc) {
		var got *answer
		if got, err = o.send(http.MethodPatch, target, body, ifMatch(etag)); err == nil {
			if i > 0 && ch.onlyLater != nil {
				ch.onlyLater()
			}
			return got.status == http.StatusAccepted, nil
		}
		if !statusIs(err, http.StatusBadRequest) {
			return false, err
		}
	}
	return false, err
}

// settings reads the resource that takes changes for the next boot (AMI /SD, Lenovo /Pending, newer iDRAC /Settings),
// which has an ETag of its own. Nil means that there is none that knows Boot: changes go to the system.
func (o *operation) settings(doc *systemDoc) *systemDoc {
	uri := string(doc.Settings.Value.SettingsObject)
	if uri == "" {
		return nil
	}
	pending := &systemDoc{}
	got, err := o.get(uri, pending)
	if err != nil || !pending.Boot.Present {
		return nil
	}
	pending.ETag = text(orElse(got.header.Get("ETag"), string(pending.ETag)))
	return pending
}

// post runs an action. If-Match is left out, since some BMCs refuse it on actions (412), until this one demands it
// (428); either refusal says that nothing was done.
func (o *operation) post(target, etag string, body any) error {
	var header http.Header
	if o.c.recall().habits.postIfMatch {
		header = ifMatch(orElse(strongETag(etag), "*"))
	}
	_, err := o.send(http.MethodPost, target, body, header)
	switch {
	case statusIs(err, http.StatusPreconditionRequired) && header == nil:
		_, err = o.send(http.MethodPost, target, body, ifMatch(orElse(strongETag(etag), "*")))
		if err == nil {
			o.c.learn(func(m *memory) { m.habits.postIfMatch = true })
		}
	case statusIs(err, http.StatusPreconditionFailed) && header != nil:
		o.c.learn(func(m *memory) { m.habits.postIfMatch = false })
		_, err = o.send(http.MethodPost, target, body, nil)
	}
	return err
}
