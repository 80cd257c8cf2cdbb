// SPDX-License-Identifier: Apache-2.0

// Package vm lets machines of the emulator truly boot: power on starts QEMU, power off kills it, and a guest that ends switches its
// machine off. One Description gives both the flags of QEMU and what the BMC shows.
//
//	backend, err := vm.New(vm.Options{ProviderURL: "http://127.0.0.1:8080"})
//	machine := fleet.Add(backend.Machine(vm.Description{Name: "vm-1", UUID: "...", Disks: disks}))
//
// It needs qemu-system-x86_64 and no rights: the network is QEMU's own, in which the host's loopback address is GuestHost.
package vm
