// SPDX-License-Identifier: Apache-2.0

// Package bootmedia writes what a machine boots from: initramfs, unified kernel image, EFI system partition and ISO.
// It is pure Go and needs no root. The same inputs give the same bytes: times are fixed and names are sorted.
package bootmedia
