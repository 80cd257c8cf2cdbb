// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/webhooks/review"
)

const (
	otherUUID = "38947555-7742-3448-3784-823347823835"
	thirdUUID = "38947555-7742-3448-3784-823347823836"
	// swappedUUID and otherSwapped name the same machines as uuid and otherUUID in the other byte order.
	swappedUUID  = "55759438-4277-4834-3784-823347823834"
	otherSwapped = "55759438-4277-4834-3784-823347823835"
)

func standingFor(uuid string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Spec.SystemUUID = uuid }
}

func tainted(taints ...v1alpha1.Taint) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) { s.Spec.Taints = taints }
}

func booting(devices ...string) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		for i, d := range devices {
			s.Spec.BootOrder = append(s.Spec.BootOrder, v1alpha1.BootOrder{Name: d, Priority: int32(i), Device: d})
		}
	}
}

// reachedBy has no system's URI.
func reachedBy(bmc string, access *v1alpha1.BMCAccess) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Spec.SystemURI, s.Spec.BMCRef, s.Spec.BMC = "", nil, access
		if bmc != "" {
			s.Spec.BMCRef = &corev1.LocalObjectReference{Name: bmc}
		}
	}
}

func withoutFinalizer(s *v1alpha1.Server) { s.Finalizers = nil }

// attestedInventory is the inventory of a machine with data for whose only disk a person answers.
func attestedInventory() *policyv1alpha1.ServerInventory {
	i := dirtyInventory()
	disk := policyv1alpha1.CustodyDisk{WWID: "w"}
	i.Custody.Disks = []policyv1alpha1.CustodyDisk{disk}
	i.Custody.Attested = []policyv1alpha1.AttestedDisk{{CustodyDisk: disk, Method: policyv1alpha1.AttestDestroy, By: "jane", Reason: "r"}}
	return i
}

func TestServer(t *testing.T) {
	const keep = "only the manager changes it; keep it as it is stored"
	const release = "only the manager changes it; delete the claim, or where it is gone already set annotation metal.ironcore.dev/operation: release"
	const remedy = "to let it go all the same, set annotation policy.metalaw.dev/delete-data: \"true\" first"
	const noUUID = "it is no UUID like 4c4c4544-0051-3610-8052-b4c04f4d4d32. Write the one that the BMC shows for the system (UUID at its Redfish URI), " +
		"in either byte order. Or leave the Server to be made when its BMC is read"
	unknown := []string{`spec.systemUUID: "rack-7" is no UUID, and no ServerInventory of that name exists. As the Server bears what the manager writes, ` +
		"it is taken to come out of a backup. Restore ServerInventories before Servers, or metalaw does not know what data is on the disks"}
	textOnly := []string{`spec.systemUUID: "rack-7" is no UUID like 4c4c4544-0051-3610-8052-b4c04f4d4d32. Nothing is written to a BMC until it shows ` +
		"a system by this very text. Write the UUID that the BMC shows for the system (UUID at its Redfish URI)"}
	const giveUp = "to give the Server up, delete it, with annotation policy.metalaw.dev/delete-data: \"true\" where it holds data"
	const another = "spec.systemUUID: Forbidden: the server stands for machine " + uuid + " and cannot stand for another; a machine that was exchanged behind its BMC " +
		"becomes a Server of its own: set annotation policy.metalaw.dev/accept-system: NEW-UUID on the BMC; " + giveUp
	other := server(serverNamed("other"), standingFor(otherUUID))
	for name, c := range map[string]struct {
		before, after *v1alpha1.Server
		stored        []client.Object
		who           string
		want          string
		warnings      []string
	}{
		"a taint that evicts is warned about": {after: server(tainted(v1alpha1.Taint{Key: "a", Effect: "NoBind"}, v1alpha1.Taint{Key: "b", Effect: "Evict"})),
			warnings: []string{"spec.taints[1].effect: the effect Evict does nothing in this version: it ends no claim and keeps none away; to keep new claims away use the effect NoBind"}},
		"a stored taint that evicts is not warned about again": {before: server(tainted(v1alpha1.Taint{Key: "b", Effect: "Evict"})),
			after: server(tainted(v1alpha1.Taint{Key: "a", Effect: "NoBind"}, v1alpha1.Taint{Key: "b", Effect: "Evict"}))},
		"a taint whose key is no name is refused": {after: server(tainted(v1alpha1.Taint{Key: "b@d", Effect: "NoBind"})),
			want: "Invalid\nspec.taints[0].key: Invalid value: \"b@d\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
				"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
		"a taint with a prefix passes": {after: server(tainted(v1alpha1.Taint{Key: "example.com/gpu", Effect: "NoBind"}))},
		"a stored key that is no name does not keep the rest from changing": {before: server(tainted(v1alpha1.Taint{Key: "b@d", Effect: "NoBind"})),
			after: server(tainted(v1alpha1.Taint{Key: "b@d", Value: "x", Effect: "NoBind"}), booting("Boot0001"))},
		"a device that is booted twice is refused": {after: server(booting("Boot0001", "Boot0002", "Boot0001")),
			want: "Invalid\nspec.bootOrder[2].device: Duplicate value: \"Boot0001\": spec.bootOrder[0] names it already, and a device has one place in the boot order; take one of the two out"},
		"a stored boot order does not keep the rest from changing": {before: server(booting("Boot0001", "Boot0001")), after: server(booting("Boot0002", "Boot0001", "Boot0001"))},
		"a machine of its own passes":                              {after: server()},
		"the machine of another is refused":                        {after: server(standingFor(otherUUID)), want: "Invalid\nspec.systemUUID: Duplicate value: \"" + otherUUID + "\": Server \"other\" has it"},
		"a change to the machine of another, too":                  {before: server(), after: server(standingFor(otherUUID)), want: "Invalid\nspec.systemUUID: Duplicate value: \"" + otherUUID + "\": Server \"other\" has it\n" + another},
		"the machine of another in the other byte order, too":      {after: server(standingFor(otherSwapped)), want: "Invalid\nspec.systemUUID: Duplicate value: \"" + otherSwapped + "\": Server \"other\" has it"},
		"the other byte order of its own UUID is no change":        {before: server(dirty), after: server(dirty, standingFor(swappedUUID))},
		"an empty server stands for no other machine":              {before: server(), after: server(standingFor(thirdUUID)), want: "Forbidden\n" + another},
		"the manager lets it":                                      {before: server(), after: server(standingFor(thirdUUID)), who: manager},
		"not where it has data":                                    {before: server(dirty), after: server(dirty, standingFor(thirdUUID)), who: manager, want: "Forbidden\nspec.systemUUID: Forbidden: the server stands for machine " + uuid + ", and it was not wiped since its last holder (mark Dirty); it cannot stand for another"},
		"a held server stands for no other":                        {before: server(heldBy("a", "b")), after: server(heldBy("a", "b"), standingFor(thirdUUID)), want: "Forbidden\n" + another},
		"another spelling of the UUID is no change":                {before: server(dirty), after: server(dirty, standingFor("38947555-7742-3448-3784-823347823834"))},
		"a reference to a claim may be set":                        {before: server(), after: server(heldBy("a", "b"))},
		"consent may be given":                                     {before: server(), after: server(annotated(v1alpha1.ConsentAnnotation, v1alpha1.ConsentTakeOver))},
		"a forged release is refused":                              {before: server(), after: server(annotated(v1alpha1.ReleasedClaimAnnotation, "u"), annotated(v1alpha1.ReleasedAtAnnotation, "x")), want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/released-at]: Forbidden: " + release + "\nmetadata.annotations[policy.metalaw.dev/released-claim]: Forbidden: " + release},
		"a forged holder is refused":                               {before: server(annotated(v1alpha1.ClaimUIDAnnotation, "u")), after: server(annotated(v1alpha1.ClaimUIDAnnotation, "v")), want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/claim-uid]: Forbidden: " + keep},
		"a holder that is taken away, too":                         {before: server(annotated(v1alpha1.ClaimUIDAnnotation, "u")), after: server(), want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/claim-uid]: Forbidden: " + keep},
		"a record of a binding that is made up":                    {before: server(), after: server(annotated(v1alpha1.BindingAnnotation, "{}")), want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/binding]: Forbidden: " + keep},
		"a decommission that is made up": {before: server(), after: server(annotated(v1alpha1.DecommissionAnnotation, "r")),
			want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/decommission]: Forbidden: only the manager changes it; set annotation metal.ironcore.dev/operation: decommission or recommission"},
		"the state before it was parked is made up": {before: server(), after: server(annotated(v1alpha1.PreParkStateAnnotation, "Available")),
			want: "Forbidden\nmetadata.annotations[metal.ironcore.dev/pre-park-state]: Forbidden: only the manager changes it; set annotation metal.ironcore.dev/operation: park or unpark"},
		"the state before it was parked is taken away": {before: server(annotated(v1alpha1.PreParkStateAnnotation, "Error")), after: server(),
			want: "Forbidden\nmetadata.annotations[metal.ironcore.dev/pre-park-state]: Forbidden: only the manager changes it; set annotation metal.ironcore.dev/operation: park or unpark"},
		"a request to park is taken away": {before: server(annotated(v1alpha1.ParkRequestedAnnotation, "{}")), after: server(),
			want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/park-requested]: Forbidden: only the manager changes it; set annotation metal.ironcore.dev/operation: park or unpark"},
		"the manager keeps a request to park":                     {before: server(), after: server(annotated(v1alpha1.ParkRequestedAnnotation, "{}")), who: manager},
		"a backup brings a parked server":                         {after: server(annotated(v1alpha1.ParkedAnnotation, "true"), annotated(v1alpha1.PreParkStateAnnotation, "Error"))},
		"the manager records a decommission":                      {before: server(), after: server(annotated(v1alpha1.DecommissionAnnotation, "r")), who: manager},
		"the manager records a release":                           {before: server(), after: server(annotated(v1alpha1.ReleasedClaimAnnotation, "u")), who: manager},
		"a namesake in another namespace is not it":               {before: server(), after: server(annotated(v1alpha1.ReleasedClaimAnnotation, "u")), who: "system:serviceaccount:other:metalaw-manager", want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/released-claim]: Forbidden: " + release},
		"a backup brings a server with its holder":                {after: server(heldBy("a", "b"), annotated(v1alpha1.ClaimUIDAnnotation, "u"), annotated(v1alpha1.BindingAnnotation, "{}"))},
		"a backup cannot bring a release record":                  {after: server(annotated(v1alpha1.ReleasedClaimAnnotation, "u")), want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/released-claim]: Forbidden: a release record leads to a wipe and cannot come with a new server; leave it out, and where the claim has ended set annotation metal.ironcore.dev/operation: release afterwards"},
		"an empty server may lose its finalizer":                  {before: server(), after: server(withoutFinalizer)},
		"a server with data keeps its finalizer":                  {before: server(dirty), after: server(dirty, withoutFinalizer), want: "Forbidden\nmetadata.finalizers: Forbidden: metal.ironcore.dev/server keeps what is known of the server's data, and it was not wiped since its last holder (mark Dirty); " + remedy},
		"the manager takes its finalizer":                         {before: server(dirty), after: server(dirty, withoutFinalizer), who: manager},
		"with the annotation the finalizer may go":                {before: server(dirty), after: server(dirty, withoutFinalizer, annotated(v1alpha1.DeleteDataAnnotation, "true"))},
		"a UUID that is none passes with a warning":               {after: server(standingFor("rack-7"), withoutFinalizer), warnings: textOnly},
		"a text that names no object is refused":                  {after: server(standingFor("rack 7"), withoutFinalizer), want: "Invalid\nspec.systemUUID: Invalid value: \"rack 7\": " + noUUID},
		"so is a UUID with its dashes in other places":            {after: server(standingFor("4c4c-45440051-3610-8052-b4c04f4d4d32"), withoutFinalizer), want: "Invalid\nspec.systemUUID: Invalid value: \"4c4c-45440051-3610-8052-b4c04f4d4d32\": " + noUUID},
		"a change to a text that is none is refused as any other": {before: server(), after: server(standingFor("rack-7")), want: "Forbidden\n" + another, warnings: textOnly},
		"a UUID without dashes is refused": {after: server(standingFor("4c4c4544005136108052b4c04f4d4d32"), withoutFinalizer),
			want: "Invalid\nspec.systemUUID: Invalid value: \"4c4c4544005136108052b4c04f4d4d32\": " + noUUID},
		"a UUID that firmware shows without one is refused": {after: server(standingFor("00000000-0000-0000-0000-000000000000")),
			want: "Invalid\nspec.systemUUID: Invalid value: \"00000000-0000-0000-0000-000000000000\": it is what firmware shows that was never given a UUID, " +
				"and tells no machine from another; give the machine a UUID in its firmware"},
		"the manager registers what a BMC shows":                                               {after: server(standingFor("rack-7")), who: manager},
		"one that bears our finalizer comes out of a backup, and its inventory may come later": {after: server(standingFor("rack-7")), warnings: unknown},
		"so does one that bears the record of a holder":                                        {after: server(standingFor("rack-7"), withoutFinalizer, annotated(v1alpha1.ClaimUIDAnnotation, "uid")), warnings: unknown},
		"a machine that was known by other text may come back": {after: server(standingFor("rack-7"), withoutFinalizer), stored: []client.Object{
			&policyv1alpha1.ServerInventory{ObjectMeta: metav1.ObjectMeta{Name: "rack-7"}, Spec: policyv1alpha1.ServerInventorySpec{SystemUUID: "rack-7"}}}},
		"a stored text that is no UUID does not keep the rest from changing": {before: server(standingFor("rack-7")), after: server(standingFor("rack-7"), booting("Boot0001"))},
		"a server without a URI is told what fills it in": {after: server(reachedBy("b1", nil)),
			warnings: []string{"spec.systemURI is empty; until BMC b1 shows a system with this systemUUID, nothing is known of the machine"}},
		"one with an access of its own, that nothing does": {after: server(reachedBy("", &v1alpha1.BMCAccess{Address: "10.0.0.7"})),
			warnings: []string{"spec.systemURI is empty, and nothing fills it in beside spec.bmc; write the URI of the system at its BMC, like /redfish/v1/Systems/1"}},
		"one that names no BMC, what it lacks": {after: server(reachedBy("", nil)),
			warnings: []string{"the Server names no BMC (spec.bmcRef or spec.bmc); until a BMC object whose BMC shows its systemUUID fills that in, nothing is known of the machine"}},
		"a consent that is none is refused": {before: server(), after: server(annotated(v1alpha1.ConsentAnnotation, "sure")),
			want: "Invalid\nmetadata.annotations[policy.metalaw.dev/consent]: Unsupported value: \"sure\": supported values: \"take-over\"; to say no, leave the annotation out"},
		"an answer that is neither yes nor no is refused": {before: server(), after: server(annotated(v1alpha1.DisklessAnnotation, "perhaps"), annotated(v1alpha1.DeleteDataAnnotation, "yes")),
			want: "Invalid\nmetadata.annotations[policy.metalaw.dev/delete-data]: Unsupported value: \"yes\": supported values: \"true\", \"false\"; to say no, leave the annotation out\n" +
				"metadata.annotations[policy.metalaw.dev/diskless]: Unsupported value: \"perhaps\": supported values: \"true\", \"false\"; to say no, leave the annotation out"},
		"an answer that is one passes": {before: server(), after: server(annotated(v1alpha1.DisklessAnnotation, "true"), annotated(v1alpha1.DeleteDataAnnotation, "false"))},
		"a stored answer that is none does not keep the rest from changing": {before: server(annotated(v1alpha1.DisklessAnnotation, "perhaps")),
			after: server(annotated(v1alpha1.DisklessAnnotation, "perhaps"), booting("Boot0001"))},
		"an empty server is deleted":                                         {before: server()},
		"a held server is not deleted":                                       {before: server(heldBy("a", "b")), want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/delete-data]: Forbidden: the server holds data: it is held by a claim (spec.serverClaimRef); " + remedy},
		"a dirty server is not deleted":                                      {before: server(dirty), want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/delete-data]: Forbidden: the server holds data: it was not wiped since its last holder (mark Dirty); " + remedy},
		"nor where only the inventory knows":                                 {before: server(), stored: []client.Object{dirtyInventory()}, want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/delete-data]: Forbidden: the server holds data: its ServerInventory says that it was not wiped since its last holder (mark Dirty); " + remedy},
		"one out of service is deleted where a person answers for each disk": {before: server(dirty, in("Decommissioned")), stored: []client.Object{attestedInventory()}},
		"but not from another state":                                         {before: server(dirty, in("Error")), stored: []client.Object{attestedInventory()}, want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/delete-data]: Forbidden: the server holds data: it was not wiped since its last holder (mark Dirty); " + remedy},
		"nor where nobody answers":                                           {before: server(dirty, in("Decommissioned")), stored: []client.Object{dirtyInventory()}, want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/delete-data]: Forbidden: the server holds data: it was not wiped since its last holder (mark Dirty); " + remedy},
		"another value of the annotation is no word":                         {before: server(dirty, annotated(v1alpha1.DeleteDataAnnotation, "yes")), want: "Forbidden\nmetadata.annotations[policy.metalaw.dev/delete-data]: Forbidden: the server holds data: it was not wiped since its last holder (mark Dirty); " + remedy},
		"with the annotation it is deleted": {before: server(dirty, annotated(v1alpha1.DeleteDataAnnotation, "true")),
			warnings: []string{"nothing erases the disks of machine " + uuid + ": it was not wiped since its last holder (mark Dirty), and its ServerInventory goes on saying so"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, defaults(t), append(c.stored, other)...)
			if c.who == "" {
				c.who = user
			}
			var got string
			var warnings []string
			switch {
			case c.before == nil:
				got, warnings = w.ask(PathValidateServer, c.who, admissionv1.Create, nil, c.after)
			case c.after == nil:
				got, warnings = w.ask(PathValidateServer, c.who, admissionv1.Delete, c.before, nil)
			default:
				got, warnings = w.ask(PathValidateServer, c.who, admissionv1.Update, c.before, c.after)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.warnings, warnings); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnInventoryThatWasCleanedAMomentAgoKeepsNoServer(t *testing.T) {
	w := newWorld(t, defaults(t), dirtyInventory())
	w.onlyCached(dirtyInventory())
	if got, _ := w.ask(PathValidateServer, user, admissionv1.Delete, server(), nil); got != "" {
		t.Error(got)
	}
}

// small leads from Initial to Available, to Reserved and back.
const small = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Initial
define:
  held: server.claimRefSet
states:
  Initial:
    means: Starting.
    exits:
    - {rule: Started, to: Available, when: "!held"}
    - {rule: Late, to: Available, after: 5m}
  Available:
    means: Free.
    stable: true
    exits:
    - {rule: Claimed, to: Reserved, when: held}
  Reserved:
    means: Held.
    stable: true
    exits:
    - {rule: Lost, to: Initial, when: "!held"}
`

func TestServerState(t *testing.T) {
	inForce := withFiles(t, map[string]string{bundle.LifecycleFile: small})
	name := inForce.Revision.Name
	const record = "status.lifecycle: Forbidden: only the manager writes it; leave it as it is stored"
	const lost = "status.state: Forbidden: policy revision lost, which governs the server, cannot be loaded; no move can be checked against it"
	nowhere := func(to, from, instead string) string {
		return "Invalid\nstatus.state: Unsupported value: \"" + to + "\": policy revision " + name + " has no rule that leads from " + from +
			" to it; supported values: " + instead
	}
	for desc, c := range map[string]struct {
		before, after *v1alpha1.Server
		who           string
		want          string
	}{
		"a status without a move passes":             {before: server(in("Available")), after: server(in("Available"), func(s *v1alpha1.Server) { s.Status.PowerState = "On" })},
		"a server begins in the initial state":       {before: server(), after: server(in("Initial"))},
		"a server begins where that leads":           {before: server(), after: server(in("Available"))},
		"a server with a claim begins in Reserved":   {before: server(), after: server(in("Reserved"))},
		"a server begins nowhere else":               {before: server(), after: server(in("Error")), want: nowhere("Error", "no state", `"Available", "Initial", "Reserved"`)},
		"a move along an edge passes":                {before: server(in("Available")), after: server(in("Reserved"))},
		"a move along no edge is refused":            {before: server(in("Reserved")), after: server(in("Available")), want: nowhere("Available", "Reserved", `"Initial"`)},
		"it is refused to the manager, too":          {before: server(in("Reserved")), after: server(in("Available")), who: manager, want: nowhere("Available", "Reserved", `"Initial"`)},
		"a state cannot be taken away":               {before: server(in("Reserved")), after: server(), want: nowhere("", "Reserved", `"Initial"`)},
		"the lifecycle is the manager's":             {before: server(governedBy(name)), after: server(governedBy("forged")), want: "Forbidden\n" + record},
		"the lifecycle cannot be taken away":         {before: server(dirty), after: server(), want: "Forbidden\n" + record},
		"the manager writes the lifecycle":           {before: server(), after: server(dirty), who: manager},
		"a revision that cannot be loaded halts":     {before: server(in("Available"), governedBy("lost")), after: server(in("Reserved"), governedBy("lost")), want: "Forbidden\n" + lost},
		"the manager adopts another revision":        {before: server(in("Available"), governedBy("lost")), after: server(in("Reserved"), governedBy(name)), who: manager},
		"a forced move needs no rule":                {before: server(in("Reserved")), after: server(in("Available"), forcedTo("Available")), who: manager},
		"nor does a server that was declared clean":  {before: server(in("Error")), after: server(in("Available"), forcedTo("Available"), declared), who: manager},
		"a forced move is the manager's":             {before: server(in("Reserved")), after: server(in("Available"), forcedTo("Available")), want: "Invalid\n" + record + "\n" + nowhere("Available", "Reserved", `"Initial"`)[len("Invalid\n"):]},
		"a forced move leads where there is a state": {before: server(in("Reserved")), after: server(in("Error"), forcedTo("Error")), who: manager, want: nowhere("Error", "Reserved", `"Initial"`)},
		"a forced move leads where it was asked to":  {before: server(in("Reserved")), after: server(in("Available"), forcedTo("Initial")), who: manager, want: nowhere("Available", "Reserved", `"Initial"`)},
		"a forced move is asked for":                 {before: server(in("Reserved")), after: server(in("Available"), forcedTo("Available"), func(s *v1alpha1.Server) { s.Status.Operation.Name = "park" }), who: manager, want: nowhere("Available", "Reserved", `"Initial"`)},
		"a move after a forced one needs a rule":     {before: server(in("Reserved"), forcedTo("Reserved")), after: server(in("Available"), forcedTo("Available"), func(s *v1alpha1.Server) { s.Status.Lifecycle.Rule = "Claimed" }), who: manager, want: nowhere("Available", "Reserved", `"Initial"`)},
		"a forced move offers nothing dirty":         {before: server(in("Reserved")), after: server(in("Available"), forcedTo("Available"), func(s *v1alpha1.Server) { s.Status.Lifecycle.Marks = []string{"Dirty"} }), who: manager, want: "Forbidden\nstatus.state: Forbidden: the server may hold somebody's data (mark Dirty) and is never offered before it was wiped"},
		"a forced move under what cannot be loaded":  {before: server(in("Available")), after: server(in("Reserved"), forcedTo("Reserved"), func(s *v1alpha1.Server) { s.Status.Lifecycle.Revision = "lost" }), who: manager, want: "Forbidden\n" + lost},
		"the same state under another revision":      {before: server(in("Elsewhere"), governedBy("lost")), after: server(in("Elsewhere"), governedBy(name), func(s *v1alpha1.Server) { s.Status.Lifecycle.Rule, s.Status.Lifecycle.Entry = "Adopted", 1 }), who: manager},
		"everything that is wrong is said":           {before: server(in("Available"), governedBy(name)), after: server(in("Reserved"), governedBy("lost")), want: "Forbidden\n" + record + "\n" + lost},
	} {
		t.Run(desc, func(t *testing.T) {
			if c.who == "" {
				c.who = user
			}
			got, _ := newWorld(t, inForce).ask(PathValidateServer, c.who, admissionv1.Update, c.before, c.after, inStatus)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// forcedTo is the record of a move that was forced, as the manager writes it.
func forcedTo(state v1alpha1.ServerState) func(*v1alpha1.Server) {
	return func(s *v1alpha1.Server) {
		s.Status.Lifecycle = &v1alpha1.LifecycleStatus{Rule: v1alpha1.RuleForced, Entry: 1}
		s.Status.Operation = &v1alpha1.OperationStatus{Name: v1alpha1.OperationForce, State: v1alpha1.OperationSucceeded, To: state}
	}
}

func declared(s *v1alpha1.Server) { s.Status.Operation.Name = v1alpha1.OperationDeclareClean }

// Every edge of the shipped lifecycle is open, and a server may begin as it asks for.
func TestEveryEdgeOfTheShippedLifecycleIsOpen(t *testing.T) {
	w := newWorld(t, defaults(t))
	for _, e := range defaults(t).Lifecycle.Edges() {
		before, after := server(in(v1alpha1.ServerState(e.From))), server(in(v1alpha1.ServerState(e.To)))
		if got, _ := w.ask(PathValidateServer, manager, admissionv1.Update, before, after, inStatus); got != "" {
			t.Error(got)
		}
	}
}

func TestAMoveIsHeldAgainstTheRevisionThatItRecords(t *testing.T) {
	inForce := defaults(t)
	pinned := *inForce
	pinned.Revision.Name = "pinned"
	pinned.Lifecycle = withFiles(t, map[string]string{bundle.LifecycleFile: twoStates}).Lifecycle
	l := &serverRules{&lookup{bundles: revisions{inForce, map[string]*bundle.Bundle{"pinned": &pinned}}}}
	for name, c := range map[string]struct {
		revision string
		from, to v1alpha1.ServerState
		pass     bool
	}{
		"an edge of the revision that governs":       {"pinned", "Initial", "Resting", true},
		"an edge of another revision":                {"pinned", "Initial", "Discovery", false},
		"a state that this revision migrates":        {"pinned", "Available", "Resting", true},
		"the revision in force where none is stored": {"", "Initial", "Discovery", true},
	} {
		t.Run(name, func(t *testing.T) {
			undo := []func(){}
			var got review.Findings
			l.judgeStatus(review.Change[v1alpha1.Server]{Old: server(in(c.from), governedBy(c.revision)), New: server(in(c.to), governedBy(c.revision)), Undo: &undo}, &got)
			if got.Pass() != c.pass {
				t.Error(got.Text())
			}
		})
	}
}

const twoStates = `apiVersion: policy.metalaw.dev/v1alpha1
kind: Lifecycle
initial: Initial
define:
  held: server.claimRefSet
migrate: {Available: Resting}
states:
  Initial:
    means: Starting.
    exits:
    - {rule: Rested, to: Resting, when: "!held"}
    - {rule: Late, to: Resting, after: 5m}
  Resting:
    means: Resting.
    stable: true
    exits:
    - {rule: Woken, to: Initial, when: held}
`

func TestStatusIsNotAskedOfThePolicy(t *testing.T) {
	b := withFiles(t, map[string]string{"admission.rego": `package metalaw.admission
deny contains {"code": "no", "message": "never"}
`, "admission_test.rego": "package metalaw.admission_test\n"})
	w := newWorld(t, b)
	if got, _ := w.ask(PathValidateServer, user, admissionv1.Update, server(in("Available")), server(in("Reserved")), inStatus); got != "" {
		t.Error(got)
	}
	if got, _ := w.ask(PathValidateServer, user, admissionv1.Update, server(), server(func(s *v1alpha1.Server) { s.Labels = map[string]string{"a": "b"} })); got != "Forbidden\nnever" {
		t.Error(got)
	}
}

func TestAReadinessRuleWhoseTaintEvictsIsWarnedAbout(t *testing.T) {
	conditions := conditionsOf(t)
	for effect, want := range map[v1alpha1.TaintEffect][]string{
		v1alpha1.TaintEffectEvict: {"spec.taint.effect: the effect Evict does nothing in this version: it ends no claim and keeps none away; " +
			"to keep new claims away use the effect NoBind"},
		v1alpha1.TaintEffectNoBind: nil,
		"":                         nil,
	} {
		rule := &v1alpha1.ServerReadinessRule{Spec: v1alpha1.ServerReadinessRuleSpec{Taint: v1alpha1.Taint{Key: "a", Effect: effect}}}
		got, warnings := newWorld(t, defaults(t)).ask(PathValidateReadiness, user, admissionv1.Create, nil, rule)
		if diff := cmp.Diff(want, warnings); got != "" || diff != "" {
			t.Error(effect, got, diff)
		}
		hooks := hooksAsked(t, conditions, []string{"serverreadinessrule.validate.metalaw.dev"}, user, "CREATE", rule, rule)
		if asked := len(hooks) > 0; asked != (want != nil) {
			t.Errorf("effect %q: the hook is asked: %t", effect, asked)
		}
	}
}
