// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"errors"
	"net/http"
)

// change is a write to a system: what must hold before it, and what is written.
type change struct {
	want Identity
	// refuse returns an error where nothing may be written; nil refuses nothing.
	refuse func(current, pending *systemDoc, s SystemSnapshot) error
	// holds reports that nothing has to be written. pending is what the settings resource shows; nil where there is none.
	holds func(current, pending *systemDoc) bool
	// attempts are made in order; the next only after a refusal that says that nothing was changed.
	attempts func(current, pending *systemDoc) []attempt
	// throughSettings reads the settings resource, where the system names one that has a Boot object.
	throughSettings bool
}

// attempt is one way to make a change.
type attempt struct {
	writes []write
	// after reports whether this attempt may follow a refusal; nil follows any.
	after func(refused error) bool
	// learn hears of the refusal before an attempt that was accepted; nil learns nothing.
	learn func(refused error)
}

// write is one PATCH, of the system or of its settings resource.
type write struct {
	settings bool
	body     map[string]any
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
	o.about = func(path, other string) error {
		at := placeThere(uri, path, other)
		_, there, err := o.systemFor(at, want)
		if err == nil && !Shows(want, there) {
			err = &IdentityError{URI: at, Want: want, Got: there.Identity}
		}
		return err
	}
	return doc, snapshot, nil
}

// applied is what came of a change.
type applied struct {
	// doc is the system as it was read for the change.
	doc *systemDoc
	// wrote is false where the change held already.
	wrote bool
	// settings is the settings resource; empty where nothing was written to one.
	settings string
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
		var pending *systemDoc
		if err == nil && ch.throughSettings {
			pending, err = o.settings(doc)
		}
		if err == nil && ch.refuse != nil {
			err = ch.refuse(doc, pending, snapshot)
		}
		if err != nil {
			return applied{}, afterOpen(open, err)
		}
		if ch.holds(doc, pending) {
			return applied{doc: doc}, nil
		}
		p := patches{o: o, uri: uri, doc: doc, pending: pending, strong: again}
		done, err := p.make(ch.attempts(doc, pending))
		if o.waitedOut(err, repeats) {
			open = firstOpen(open, err)
			repeats++
			continue
		}
		if again || !statusIs(err, http.StatusPreconditionFailed, http.StatusPreconditionRequired) {
			return done, err
		}
		if statusIs(err, http.StatusPreconditionRequired) && p.untagged {
			o.c.learn(func(m *memory) { m.habits.patchIfMatch = true })
		}
		again = true
	}
}

// patches makes attempts at a system that was just read.
type patches struct {
	o            *operation
	uri          string
	doc, pending *systemDoc
	// strong sends entity tags in the form that must be accepted.
	strong bool
	// untagged says that the last write was one of a resource without an entity tag.
	untagged bool
}

// make makes the attempts in turn. Its error is that of the first one, which was the best guess, unless a later one may
// have changed something.
func (p *patches) make(attempts []attempt) (applied, error) {
	var first, last error
	for _, a := range attempts {
		if last != nil && a.after != nil && !a.after(last) {
			continue
		}
		done, err := p.attempt(a)
		if err == nil {
			if last != nil && a.learn != nil {
				a.learn(last)
			}
			return done, nil
		}
		if !statusIs(err, http.StatusBadRequest, http.StatusMethodNotAllowed) {
			return done, err
		}
		if last = err; first == nil {
			first = err
		}
	}
	return applied{doc: p.doc}, first
}

func (p *patches) attempt(a attempt) (applied, error) {
	done := applied{doc: p.doc}
	for _, w := range a.writes {
		target, etag := p.uri, string(p.doc.ETag)
		if w.settings {
			target, etag = string(p.doc.Settings.Value.SettingsObject), string(p.pending.ETag)
			done.settings = target
		}
		if p.strong {
			etag = strongETag(etag)
		}
		if p.untagged = etag == ""; p.untagged && p.o.c.recall().habits.patchIfMatch {
			etag = "*"
		}
		got, err := p.o.send(http.MethodPatch, target, w.body, ifMatch(etag))
		if err != nil {
			return done, err
		}
		done.wrote = true
		done.later = done.later || got.status == http.StatusAccepted
	}
	return done, nil
}

// settings reads the resource that takes changes for the next boot (AMI /SD, Lenovo /Pending, newer iDRAC /Settings),
// which has an ETag of its own. Nil means that there is none that knows Boot. One that cannot be read now is an error,
// because a change that belongs there would go to the system.
func (o *operation) settings(doc *systemDoc) (*systemDoc, error) {
	uri := string(doc.Settings.Value.SettingsObject)
	if uri == "" {
		return nil, nil
	}
	pending := &systemDoc{}
	got, err := o.get(uri, pending)
	if mayShowLater(err) {
		return nil, err
	}
	if err != nil || !pending.Boot.Present {
		return nil, nil //nolint:nilerr // a BMC may name a settings resource that it does not have
	}
	pending.ETag = text(cmp.Or(got.header.Get("ETag"), string(pending.ETag)))
	return pending, nil
}

// mayShowLater reports whether a read failed for another reason than that there is nothing to read.
func mayShowLater(err error) bool {
	refused, answered := errors.AsType[*ResponseError](err)
	return err != nil && (!answered || refused.Status == 0 || busyStatus(refused.Status))
}

// post runs an action. If-Match is left out, since some BMCs refuse it on actions (412), until this one demands it
// (428); either refusal says that nothing was done.
func (o *operation) post(target, etag string, body any) error {
	var header http.Header
	if o.c.recall().habits.postIfMatch {
		header = ifMatch(cmp.Or(strongETag(etag), "*"))
	}
	_, err := o.send(http.MethodPost, target, body, header)
	switch {
	case statusIs(err, http.StatusPreconditionRequired) && header == nil:
		_, err = o.send(http.MethodPost, target, body, ifMatch(cmp.Or(strongETag(etag), "*")))
		if err == nil {
			o.c.learn(func(m *memory) { m.habits.postIfMatch = true })
		}
	case statusIs(err, http.StatusPreconditionFailed) && header != nil:
		o.c.learn(func(m *memory) { m.habits.postIfMatch = false })
		_, err = o.send(http.MethodPost, target, body, nil)
	}
	return err
}
