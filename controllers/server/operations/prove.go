// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
)

// prove answers a person who answers for the machine, once the inventory has the words.
func (d *decision) prove() {
	_, why := Proof(d.Input)
	if why == "" && d.Proved == nil {
		return // it is written first
	}
	d.beginOperation(v1alpha1.OperationProve)
	d.dropRequest()
	if d.Proved == nil {
		d.finish(v1alpha1.OperationRefused, why)
		return
	}
	op := d.server.Status.Operation
	counts := "the machine that reported last is the one of the server"
	if d.Proved.Settled != nil {
		counts = "the machine that reports next is the one of the server"
	}
	d.finish(v1alpha1.OperationSucceeded, said(counts, op.By, op.Reason))
}

// Proof is what operation prove has the inventory remember. The second return says why it has not; empty where it has.
func Proof(in Input) (policyv1alpha1.SettledIdentity, string) {
	notes := in.Server.Annotations
	s := policyv1alpha1.SettledIdentity{By: notes[v1alpha1.OperationByAnnotation],
		Reason: notes[v1alpha1.OperationReasonAnnotation], At: metav1.NewMicroTime(in.Now)}
	switch {
	case strings.TrimSpace(s.Reason) == "":
		return s, "say how the machine is known, in annotation " + v1alpha1.OperationReasonAnnotation
	case s.By == "":
		return s, "who asks is not known, because the admission webhook was not asked"
	}
	return s, ""
}
