// SPDX-License-Identifier: Apache-2.0

// Package power decides which power request is due, given what was asked and read. It asks nothing itself.
//
// A power change goes through these steps, so that no crash makes the BMC hear it twice:
//
//  1. The request is recorded in status.lifecycle.request, under the optimistic lock, by which nothing else changed meanwhile.
//  2. Once the record is stored the BMC is asked, in the background.
//  3. The request is over when a reading shows it. Until the grace has passed since the record, no process asks again,
//     whether or not it knows what the BMC answered. Afterwards only a reading begun since that still shows the old state
//     asks again, a power-on after twice that pause each further time.
package power
