// SPDX-License-Identifier: Apache-2.0

// Package pid1 lets the agent be the first process of a machine: the /init of an initramfs. The first process mounts, reaps,
// answers the power button, and starts a child; the child loads kernel modules, brings the network up, finds its configuration and
// is the agent. A crash of the child therefore never ends the first process, which the kernel would answer with a panic.
package pid1
