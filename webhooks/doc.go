// SPDX-License-Identifier: Apache-2.0

// Package webhooks answers the API server's admission reviews: AdmissionReview -> objects and look-ups -> findings ->
// response. Each rule is a pure function in a file of its own; the bundle's admission.rego is asked besides, for every
// kind.
//
// Admission is for the user's sake; reconciling enforces. What that means here:
//
//   - An admission is decided by the cache, a denial is confirmed past it. So the common case costs no request, and a
//     cache that lags never refuses what is right.
//   - Two writes of one value (a MAC address, a BMC address, a system UUID) that arrive at one replica at once are told
//     apart by what this process admitted in the last seconds. Two that arrive at two replicas within the cache's lag are
//     not, and neither is one that races with the manager's own discovery, which is not asked about: then both are stored.
//     Reconciling has to live with that; it must not take uniqueness for granted.
//   - A look-up that fails refuses the request (500) and says what could not be read.
//   - A rule of admission.rego that cannot be evaluated is no permission: the request is refused and the rule named. Only
//     what helps an object to go, a deletion or an update that takes finalizers away and changes nothing else, passes with
//     a warning, so that a broken policy cannot trap an object.
//   - A FleetControl is refused only for what is wrong in it, and never because something cannot be looked up or a rule of
//     admission.rego, which is not asked about it, fails: nothing may keep anyone from freezing the fleet.
//   - A ConfigMap is asked about only where it bears the label of a bundle or of a part of one, in the manager's namespace. The
//     first hook writes who lets it govern, the second decides. Its content is compiled once for both, one bundle at a time.
//     admission.rego is not asked: a bundle has no say in what takes its place. A draft is always stored.
//   - A ServerMaintenance takes rights of its maker, which admission asks for and writes down for the manager to ask again. A Server's
//     record of a grant goes with the reference that it belongs to, when a user changes that. To end a maintenance takes no admission.
//   - The manager's own writes are held against the lifecycle's edges and against uniqueness, and not against
//     admission.rego, which speaks to users. A move that somebody forced needs no edge; the one who asks for it has to
//     hold the right to, at the time when it is asked for.
package webhooks
