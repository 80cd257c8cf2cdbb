// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package metalprobe

// SharingOf knows nothing: the agent runs on Linux, elsewhere it is only built and tested.
func SharingOf(string) NVMeSharing { return SharingUnknown }

func reservationReport(string, bool, []byte) error { return errNoAnswer }

// NamespacesOf knows nothing: the agent runs on Linux, elsewhere it is only built and tested.
func NamespacesOf(string) (allocated, active []uint32, err error) { return nil, nil, errNoAnswer }
