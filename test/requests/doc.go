// SPDX-License-Identifier: Apache-2.0

// Command requests lists what the manager asks for one server: every write, Event, uncached read and BMC request, by phase.
//
// It runs the operator in this process, on a real API server and with emulated machines. So each request has its reason: the
// controller, the functions that made it, and the fields that it changed. docs/load.md explains the output.
package main
