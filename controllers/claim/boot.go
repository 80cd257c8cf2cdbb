// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/metalaw/metalaw/api/v1alpha1"
)

// bootFollows says that the boot configuration is the claim's and asks for what the claim asks for now.
func (f facts) bootFollows() bool { return f.bootIsOurs() && len(f.differs()) == 0 }

// differs are the fields in which the boot configuration is not as the claim asks.
func (f facts) differs() []string {
	var fields []string
	is, wanted := &f.boot.Spec, &f.claim.Spec
	if is.Image != wanted.Image {
		fields = append(fields, "spec.image")
	}
	if !equality.Semantic.DeepEqual(is.IgnitionSecretRef, wanted.IgnitionSecretRef) {
		fields = append(fields, "spec.ignitionSecretRef")
	}
	if is.ServerRef.Name != f.server.Name {
		fields = append(fields, "spec.serverRef")
	}
	return fields
}

// changed are the fields that another program changed: the manager wrote the boot configuration for this generation of the
// claim, and it is not as the claim asks. One that is to be left alone was changed by a user.
func (f facts) changed() []string {
	if !f.bootIsOurs() || v1alpha1.Ignored(f.boot) ||
		f.boot.Annotations[v1alpha1.BootOwnerGenerationAnnotation] != strconv.FormatInt(f.claim.Generation, 10) {
		return nil
	}
	return f.differs()
}

func changedWords(boot *v1alpha1.ServerBootConfiguration, fields []string) string {
	return fmt.Sprintf("Another program, such as a mutating policy of the cluster, changes %s of ServerBootConfiguration %s/%s. "+
		"The machine boots what stands there. Change that policy, or have the claim ask for the same.",
		strings.Join(fields, " and "), boot.Namespace, boot.Name)
}

// changedSinceBoot says that the machine may run what the boot configuration asked for before its last change. A claim that
// was taken over has no time of its boot.
func (f facts) changedSinceBoot() bool {
	if f.boot.Generation <= 1 {
		return false
	}
	l, handed := f.server.Status.Lifecycle, meta.FindStatusCondition(f.boot.Status.Conditions, v1alpha1.ConditionSpecHandedOver)
	if l == nil || l.BootedAt == nil || handed == nil {
		return true
	}
	return !handed.LastTransitionTime.Time.Before(l.BootedAt.Truncate(time.Second)) // conditions are stored in whole seconds
}
