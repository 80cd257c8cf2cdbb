// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/webhooks/review"
)

const (
	// anotherMachine says how a machine gets a Server, which is never by being written into that of another.
	anotherMachine = "a machine that was exchanged behind its BMC becomes a Server of its own: set annotation " +
		v1alpha1.AcceptSystemAnnotation + ": NEW-UUID on the BMC; " + giveUp
	// anotherBMC says how a Server gets another BMC.
	anotherBMC = "The manager writes another one when that shows the system and the old one is deleted or has not shown it for long. " +
		"Where the old BMC is gone, delete the BMC (its Servers stay); " + giveUp
	// anotherURI says how a Server gets another URI.
	anotherURI = "the manager follows what the BMC shows for the server's systemUUID; " + giveUp
	giveUp     = "to give the Server up, delete it, with annotation " + v1alpha1.DeleteDataAnnotation + `: "true" where it holds data`
)

// checkMachine keeps a Server with the machine that it was made for, and with the way in which that is reached: its record
// of what the disks hold would else speak of others, and a machine would get round the acceptance that a new one needs.
// What is empty may be written.
func checkMachine(c review.Change[v1alpha1.Server], found *review.Findings) {
	if c.Created() || c.Deleted() {
		return
	}
	was, is := c.Old.Spec, c.New.Spec
	if was.SystemUUID != "" && !sameMachine(was.SystemUUID, is.SystemUUID) {
		found.Deny(field.Forbidden(systemUUIDPath, fmt.Sprintf(
			"the server stands for machine %s and cannot stand for another; %s", was.SystemUUID, anotherMachine)))
	}
	if before := bmcOf(was.BMCRef); before != "" && bmcOf(is.BMCRef) != before {
		found.Deny(field.Forbidden(field.NewPath("spec", "bmcRef"), fmt.Sprintf(
			"the server is reached through BMC %s. %s", before, anotherBMC)))
	}
	// Beside an access of its own nobody but its maker knows the URI; the identity of what answers is checked all the same.
	if was.SystemURI != "" && is.SystemURI != was.SystemURI && (was.BMC == nil || was.BMCRef != nil) {
		found.Deny(field.Forbidden(field.NewPath("spec", "systemURI"), fmt.Sprintf(
			"the server is the system at %s; %s", was.SystemURI, anotherURI)))
	}
}

// bmcOf is empty where no BMC is named.
func bmcOf(ref *corev1.LocalObjectReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}
