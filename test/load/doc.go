// SPDX-License-Identifier: Apache-2.0

// Command load measures a manager of this API: how long it takes, and what it costs, to bring a number of emulated
// servers from an Endpoint to Available, to keep them, and to give them to claims and take them back.
//
// Five kinds of processes run: the driver, which is this program; a control plane; the emulated BMCs with everything that
// a data centre has beside them (what machines boot, and a boot provider), which is this program again; and the manager.
// Nothing is asked of the manager itself: the counts come from the BMCs and from the API server, the costs from the
// kernel.
package main
