// SPDX-License-Identifier: Apache-2.0

// Package bootmedia writes the media from which a machine boots: EFI system partition and ISO. It is pure Go and needs no
// root. The same inputs give the same bytes: times are fixed and names are sorted.
//
// FAT and ISO 9660 are code of our own, because libraries write a whole image into a file. Ours is composed while it is
// read, so that a boot service can serve an ISO for each server without storing any.
package bootmedia
