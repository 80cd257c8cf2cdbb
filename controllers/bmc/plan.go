// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/trigger"
	"github.com/metalaw/metalaw/internal/bmcsystems"
	"github.com/metalaw/metalaw/redfish"
)

// facts is everything that a decision about the systems behind a BMC depends on.
type facts struct {
	bmc string
	// accepted is the UUID that the accept annotation names; lower case. It is empty where there is none, and until the BMC
	// was read anew after the annotation was seen.
	accepted string
	systems  []System
	// owned are the servers whose bmcRef names the BMC.
	owned []server
	// byUUID are all servers with the UUID of a system, in either byte order.
	byUUID map[string][]server
	// remembered are what an inventory knows of a machine with an assigned UUID that has no Server.
	remembered map[string]server
	// incumbents are the other BMCs that those servers name.
	incumbents map[string]incumbent
	// rivals are the other BMCs that show a system as well, by UUID; left out where the system's Server names this BMC.
	rivals map[string][]string
	// takeOverAfter is how long an incumbent must have been unreachable before its server may be taken over.
	takeOverAfter time.Duration
}

// server is a Server as far as it matters here.
type server struct {
	name, uuid, uri, serial string
	// bmc is the name in bmcRef; empty for none.
	bmc string
	// inline says that the server has a BMC access of its own, and holds that it is held or Dirty.
	inline, holds bool
	// hardware is what it and the inventory of its machine recorded.
	hardware bmcsystems.Record
}

// incumbent is another BMC behind which a system was found before.
type incumbent struct {
	gone bool
	// lost is how long it has been unreachable; 0 where it can be reached, or fails in another way.
	lost time.Duration
}

// stepKind is what is to be done about one system.
type stepKind uint8

const (
	// create makes a Server.
	create stepKind = iota
	// point lets an existing Server name this BMC and the system's URI.
	point
)

type step struct {
	kind   stepKind
	server string // of the existing Server
	uuid   string
	uri    string
	index  int // of the system at its BMC, for the name of a new Server
	// from is the BMC that the server named before; empty where it named none, or this one.
	from string
}

type refusal struct {
	reason, message string
	// uuid is that of the system; empty where it shows none that can be used.
	uuid string
	// incumbent is the BMC whose change may end the refusal.
	incumbent string
}

// plan is what follows from the facts.
type plan struct {
	steps    []step
	refusals []refusal
	// consumed says that the accept annotation has served its purpose, or cannot serve any.
	consumed bool
	// remark says what becomes of the accept annotation where it did not serve to make a Server; empty else.
	remark string
	// requeueAfter is when the passing of time alone may change the plan.
	requeueAfter time.Duration
}

// makePlan is pure. It never takes anything away: a system that is not listed, or cannot be read, changes nothing.
func makePlan(f facts) plan {
	var p plan
	missing := unseen(f)
	for i, s := range f.systems {
		if s.Err != "" {
			continue
		}
		uuid := strings.ToLower(s.Identity.UUID)
		switch {
		case s.Refused != "":
			p.refuse(v1alpha1.ReasonSystemUnidentified, "", "%s", s.Refused)
		case !usableUUID.MatchString(uuid):
			p.refuse(v1alpha1.ReasonSystemUnidentified, "",
				"the system %s shows no usable UUID (%q), so it cannot be told from another; it is not managed",
				s.URI, uuid)
		case f.repeated(i):
			p.refuse(v1alpha1.ReasonSystemConflict, "", "the systems of this BMC share the UUID %s (%s is one); give each its own", uuid, s.URI)
		default:
			p.place(f, i, uuid, missing)
		}
	}
	p.judgeAcceptance(f)
	return p
}

// place decides about one system with an identity.
func (p *plan) place(f facts, index int, uuid string, missing []server) {
	s := f.systems[index]
	known := f.byUUID[uuid]
	switch {
	case len(known) == 0 && moved(f.remembered[uuid], s, f.bmc) != "":
		p.refuse(v1alpha1.ReasonSystemConflict, "", "%s", moved(f.remembered[uuid], s, f.bmc))
	case len(known) == 1 && moved(known[0], s, f.bmc) != "":
		p.refuse(v1alpha1.ReasonSystemConflict, "", "%s", moved(known[0], s, f.bmc))
	case len(known) > 1:
		p.refuse(v1alpha1.ReasonSystemConflict, "", "the Servers %s and %s both stand for the system %s with UUID %s; delete the one that is wrong",
			known[0].name, known[1].name, s.URI, uuid)
	case len(known) == 1 && known[0].bmc == f.bmc:
		if !sameURI(known[0].uri, s.URI) {
			p.steps = append(p.steps, step{kind: point, server: known[0].name, uuid: uuid, uri: s.URI})
		}
	case len(known) == 1:
		p.takeOver(f, known[0], s, uuid)
	case len(missing) > 0 && !accepts(f.accepted, uuid):
		p.refuse(v1alpha1.ReasonSystemUnaccepted, "", "the system %s has the new UUID %s, and %s (UUID %s) is no longer seen here. "+
			"If the hardware was exchanged, set the annotation %s=%s on the BMC",
			s.URI, uuid, missing[0].name, missing[0].uuid, v1alpha1.AcceptSystemAnnotation, uuid)
		p.refusals[len(p.refusals)-1].uuid = uuid
	case p.contested(f, s, uuid, ""):
	default:
		p.steps = append(p.steps, step{kind: create, uuid: uuid, uri: s.URI, index: index})
		p.consumed = p.consumed || accepts(f.accepted, uuid)
	}
}

// deleteWrongBMC is how to go on where one of two BMCs is wrong. One that was made from an Endpoint is made anew for as
// long as that exists.
const deleteWrongBMC = "delete the BMC that is wrong, and first the Endpoint that it was made from, if there is one, because that makes it again"

// contested refuses a system that no BMC holds and that another one shows as well; former is the BMC of its Server before.
func (p *plan) contested(f facts, s System, uuid, former string) bool {
	for _, rival := range f.rivals[uuid] {
		if rival != former {
			p.refuse(v1alpha1.ReasonSystemConflict, rival, "the system %s has the UUID %s, which BMC %s shows as well, as far as is known, "+
				"so that neither is managed. Correct the UUID in the firmware of one, or "+deleteWrongBMC, s.URI, uuid, rival)
			return true
		}
	}
	return false
}

// takeOver decides about a system whose Server names another BMC, or none: a BMC was replaced, or two machines claim to
// be one.
func (p *plan) takeOver(f facts, known server, s System, uuid string) {
	take := step{kind: point, server: known.name, uuid: uuid, uri: s.URI, from: known.bmc}
	where := fmt.Sprintf("the system %s has the UUID %s of Server %s", s.URI, uuid, known.name)
	if known.bmc == "" {
		if known.inline {
			p.refuse(v1alpha1.ReasonSystemConflict, "", "%s, which has a BMC access of its own (spec.bmc); clear it to manage the Server here", where)
			return
		}
		if !p.contested(f, s, uuid, "") {
			p.steps = append(p.steps, take)
		}
		return
	}
	in := f.incumbents[known.bmc]
	serial := s.Identity.SerialNumber
	switch {
	case known.serial != "" && serial != "" && !strings.EqualFold(known.serial, serial):
		p.refuse(v1alpha1.ReasonSystemConflict, known.bmc, "%s behind BMC %s, but the serial number %s and not %s: "+
			"two machines share one UUID; correct it in the firmware of one", where, known.bmc, serial, known.serial)
	case in.gone, in.lost > 0 && in.lost >= f.takeOverAfter:
		if p.contested(f, s, uuid, known.bmc) {
			return
		}
		p.steps = append(p.steps, take)
	case in.lost > 0:
		p.refuse(v1alpha1.ReasonSystemConflict, known.bmc, "%s behind BMC %s, which is unreachable; "+
			"it is taken over once that has lasted %s, or at once when that BMC is deleted", where, known.bmc, f.takeOverAfter)
		p.requeueAfter = trigger.Earlier(p.requeueAfter, f.takeOverAfter-in.lost)
	default:
		p.refuse(v1alpha1.ReasonSystemConflict, known.bmc, "%s behind BMC %s, which is in use and keeps it; "+deleteWrongBMC,
			where, known.bmc)
	}
}

func (p *plan) refuse(reason, incumbent, format string, args ...any) {
	p.refusals = append(p.refusals, refusal{reason: reason, message: fmt.Sprintf(format, args...), incumbent: incumbent})
}

// verdict sums the refusals up for the condition SystemsAccepted.
func (p *plan) verdict() (accepted bool, reason, message string) {
	waits := ""
	if p.remark != "" && !p.consumed {
		waits = "; " + p.remark
	}
	if len(p.refusals) == 0 {
		return true, v1alpha1.ReasonSystemsKnown, "every system behind the BMC that can be read is known" + waits
	}
	messages := make([]string, 0, len(p.refusals))
	for _, r := range p.refusals {
		messages = append(messages, r.message)
	}
	slices.Sort(messages)
	return false, p.refusals[0].reason, strings.Join(messages, "; ") + waits
}

// unseen lists the servers of the BMC that none of its systems is.
func unseen(f facts) []server {
	return slices.DeleteFunc(slices.Clone(f.owned), func(o server) bool {
		return slices.ContainsFunc(f.systems, func(s System) bool { return s.Err == "" && isSystem(o.uuid, s.Identity.UUID) })
	})
}

// repeated says that another system of the BMC has the same UUID, and that no Server says which of them it is.
func (f facts) repeated(index int) bool {
	uuid, twice := f.systems[index].Identity.UUID, false
	for i, s := range f.systems {
		twice = twice || i != index && s.Err == "" && isSystem(uuid, s.Identity.UUID)
	}
	incumbent := func(o server) bool { return isSystem(o.uuid, uuid) && sameURI(o.uri, f.systems[index].URI) }
	return twice && !slices.ContainsFunc(f.owned, incumbent)
}

func (f facts) registered(uuid string) bool {
	return slices.ContainsFunc(f.owned, func(o server) bool { return isSystem(o.uuid, uuid) })
}

func accepts(accepted, uuid string) bool { return accepted != "" && isSystem(accepted, uuid) }

// usableUUID is what the name of a ServerInventory allows.
var usableUUID = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]{0,62}[a-z0-9])?$`)

// sameURI compares links as BMCs write them: case and a trailing slash do not matter.
func sameURI(a, b string) bool { return bmcsystems.Key(a) == bmcsystems.Key(b) }

func isSystem(want, got string) bool {
	return redfish.SameSystem(redfish.Identity{UUID: want}, redfish.Identity{UUID: got})
}
