// SPDX-License-Identifier: Apache-2.0

// Package drives compares the drives that a BMC lists with the disks that the agent saw. It is pure.
//
// The signatures that the leader and the registry use:
//
//	type Seen struct{ Serial, WWID, Name string }
//	func Unseen(storage *BMCStorage, seen []Seen) (hidden, covered []HiddenStorage)
//	func Fresh(storage *BMCStorage, entry int64, wanted *metav1.MicroTime) bool
//	func Settled(storage *BMCStorage, entry int64, wanted *metav1.MicroTime) bool
//	func Withheld(storage *BMCStorage) string
//
// The registry asks for a reading by bmcStorageWanted and waits until Settled. Then hidden is what wipe.hidden judges, covered goes
// into the record and fails nothing, and Withheld says what wipe.hidden: Fail holds against a BMC that lists its drives no more.
package drives
