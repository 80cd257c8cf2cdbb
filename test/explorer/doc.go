// SPDX-License-Identifier: Apache-2.0

// Package explorer is a second, independent opinion on a lifecycle. It reads lifecycle.yaml by itself and plays it on a
// model of one machine with a truth of its own: what runs, whose data is on the disks, what was released. Whatever users,
// hardware and agents may do at any moment is an event. What the lifecycle then does is judged by that truth, never by
// the facts that the lifecycle was shown.
//
// It shares no code with the engine, so that a mistake there does not repeat itself here, and it leaves out the engine's
// safety guards, because those would hide what a bundle does wrong. What the engine and the shell do whatever the bundle
// says is part of the model (see world.go):
//   - the marks Dirty and Managed are stored before the first boot for a claim, and Managed with a power-on from off;
//   - the mark Stranger is kept from when a machine is seen running that is not ours, until it is ours, a claim's or consented
//     to, also where the status is lost;
//   - PowerOn waits while the boot of a claim stands;
//   - a server whose status is lost while it is in Parked begins in Parked, and is halted where there is no such state;
//   - every move counts the entry, and boots, reports and wipes of a former entry prove nothing;
//   - no agent's boot is prepared while nobody can tell whether the machine is off or on;
//   - nothing is written to a BMC that is silent or answers for another machine, and an ignored server is not visited;
//   - an operation that the state does not list is refused, and a release by hand while the claim exists.
package explorer
