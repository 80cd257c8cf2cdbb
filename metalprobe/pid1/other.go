// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package pid1

// Main does nothing: only Linux starts a program as its first process.
func Main(string, string) bool { return false }
