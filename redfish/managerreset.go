// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"net/http"
)

// ResetManager implements ManagerReset.
func (c *client) ResetManager(ctx context.Context, want ManagerIdentity, graceful bool) error {
	op, cancel, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	uri, doc, err := op.provenManager()
	if err != nil {
		return err
	}
	action, hint := ActionForceRestart, "a graceful restart may be offered"
	if graceful {
		action, hint = ActionGracefulRestart, "a forced restart may be offered"
	}
	reset := doc.Actions.Value.Reset.Value
	word, err := op.resetWord(uri, action, reset, hint)
	if err != nil {
		return err
	}
	if err := op.meant(uri, want, doc); err != nil {
		return err
	}
	op.about = func(path, other string) error {
		at := placeThere(uri, path, other)
		there, err := op.managerAt(at)
		if err != nil {
			return err
		}
		return op.meant(at, want, there)
	}
	if err := op.post(string(reset.Target), string(doc.ETag), map[string]string{"ResetType": word}); err != nil {
		return err
	}
	// Sessions end with the BMC's process, and what it lists may differ afterwards.
	c.login.dropSession(op)
	c.forgetTopology()
	return nil
}

// provenManager reads the manager that links prove to be the BMC's. Any other is refused: it may be that of a GPU board.
func (o *operation) provenManager() (string, *managerDoc, error) {
	if known := o.c.recall(); known.managerProven {
		doc, err := o.managerAt(known.managerURI)
		if !statusIs(err, http.StatusNotFound) {
			return known.managerURI, doc, err
		}
		o.c.forgetTopology()
	}
	systems, err := o.listSystems()
	if err != nil {
		return "", nil, err
	}
	found, err := o.chooseManager(systems)
	if err != nil {
		return "", nil, err
	}
	if found.doubt != "" {
		return "", nil, &UnsupportedError{URI: found.uri, Wanted: "a restart of the BMC", Hint: found.doubt}
	}
	return found.uri, found.doc, nil
}

// meant proves that the BMC is the one that want names. What the BMC says of itself must not contradict; the proof is a
// system behind it where one is known, because those tell who they are more often than BMCs do.
func (o *operation) meant(uri string, want ManagerIdentity, doc *managerDoc) error {
	self := Identity{UUID: want.UUID, SerialNumber: want.SerialNumber}
	got := Identity{UUID: string(doc.UUID), SerialNumber: string(doc.SerialNumber)}
	proven, contradicted := SameManager(self, got)
	if contradicted || !proven && len(want.Systems) == 0 {
		return &IdentityError{URI: uri, Want: self, Got: got}
	}
	var last *IdentityError
	for _, known := range want.Systems {
		_, snapshot, err := o.systemFor(known.URI, known.Identity)
		switch {
		case err == nil && Shows(known.Identity, snapshot):
			return nil
		case err == nil:
			last = &IdentityError{URI: known.URI, Want: known.Identity, Got: snapshot.Identity}
		case statusIs(err, http.StatusNotFound):
			last = &IdentityError{URI: known.URI, Want: known.Identity}
		default:
			return err
		}
	}
	if last != nil {
		return last
	}
	return nil
}

// SameManager compares what two reads of a BMC say of the BMC itself. proven says that they name one and the same;
// contradicted that they cannot be the same. Where one of them says too little, both are false.
func SameManager(want, got Identity) (proven, contradicted bool) {
	compare := func(known bool, want, got Identity) {
		same := SameSystem(want, got)
		proven = proven || known && same
		contradicted = contradicted || known && !same
	}
	wantUUID, gotUUID := cleanUUID(want.UUID), cleanUUID(got.UUID)
	compare(wantUUID != "" && gotUUID != "", Identity{UUID: wantUUID}, Identity{UUID: gotUUID})
	wantSerial, gotSerial := cleanSerial(want.SerialNumber), cleanSerial(got.SerialNumber)
	compare(wantSerial != "" && gotSerial != "", Identity{SerialNumber: wantSerial}, Identity{SerialNumber: gotSerial})
	return proven && !contradicted, contradicted
}
