// SPDX-License-Identifier: Apache-2.0

// Package emulator is a fleet of Redfish baseboard management controllers in one process that behave like hardware:
// each has an identity, accounts, sessions, vendor quirks, and a machine behind it that takes time to power on, to
// test itself and to boot. It logs every write that it received and counts every request, and tests script its faults.
//
// A test needs three lines:
//
//	fleet := emulator.New(emulator.Options{})
//	m := fleet.Add(emulator.MachineSpec{Profile: emulator.ProfileDell})
//	err := fleet.Start(ctx) // m.URL() answers from now on
//
// With Options.InMemory no socket is opened, so a fleet also lives inside a testing/synctest bubble:
// use Fleet.Client or Fleet.DialContext to reach it.
package emulator
