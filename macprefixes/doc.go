// SPDX-License-Identifier: Apache-2.0

// Package macprefixes reads the MAC-prefix database of a policy bundle (macprefixes.yaml) and answers which row speaks
// for a device. It is pure: no I/O, no clock, and no other package of metalaw.
//
// A hit is a hint: it says with which protocol and which factory credentials to knock, never what the device is.
// Vendors use one prefix for management ports and host ports alike, so whoever uses a row confirms it with an
// unauthenticated request before any credential is sent.
package macprefixes
