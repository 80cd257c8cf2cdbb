// SPDX-License-Identifier: Apache-2.0

package bootservice

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/bootserver"
	"github.com/metalaw/metalaw/internal/bootserver/origin"
	"github.com/metalaw/metalaw/internal/mergepatch"
)

// ofAgent says that a boot is an inspection or a wipe. Its ignition holds the token of one entry, and the addresses of the machine may
// not be known before.
func ofAgent(boot *v1alpha1.ServerBootConfiguration) bool {
	purpose := boot.Annotations[v1alpha1.BootPurposeAnnotation]
	return purpose == v1alpha1.BootPurposeProbe || purpose == v1alpha1.BootPurposeWipe
}

// boundToMachine says that an ignition is served to its machine alone: it is no agent's, and no user opened it.
func boundToMachine(server *v1alpha1.Server, boot *v1alpha1.ServerBootConfiguration) bool {
	return !ofAgent(boot) && server.Annotations[v1alpha1.BootAnySourceAnnotation] != "true"
}

// machineOf is what is known of the network interfaces of a server's machine.
func machineOf(server *v1alpha1.Server) origin.Known {
	var known origin.Known
	for i := range server.Status.NetworkInterfaces {
		nic := &server.Status.NetworkInterfaces[i]
		known.Add(nic.MACAddress, append([]string{nic.IP}, nic.IPs...)...)
	}
	return known
}

// closed says that the ignition of a boot is served no longer.
func closed(boot *v1alpha1.ServerBootConfiguration) bool {
	return boot.Annotations[v1alpha1.BootIgnitionAnnotation] == v1alpha1.IgnitionUntilFirstSign &&
		meta.IsStatusConditionTrue(boot.Status.Conditions, v1alpha1.ConditionBootStateReceived)
}

// refusals say what a refusal means. No message holds an address, so that a stranger causes one write.
var refusals = map[bootserver.Refusal]string{
	bootserver.RefusalAnotherAddress: "The ignition was asked for from an address that the machine is not known to have, and was not served. " +
		"The log of metalaw boot has it. If it was the machine, see docs/boot-service.md.",
	bootserver.RefusalFirstSign: "The ignition was asked for after the machine had reported that its system is up, and was not served. " +
		"If the image needs it at each boot, set boot.ignition: Always.",
}

// Refused writes a condition, once for each reason. A write that fails is left: the log has it.
func (s *Source) Refused(ctx context.Context, boot bootserver.Boot, why bootserver.Refusal) {
	s.tell(ctx, boot, func(config *v1alpha1.ServerBootConfiguration) bool {
		return meta.SetStatusCondition(&config.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionIgnitionRefused,
			Status: metav1.ConditionTrue, Reason: string(why), Message: refusals[why], ObservedGeneration: config.Generation})
	})
}

// tell changes the conditions of a boot configuration.
func (s *Source) tell(ctx context.Context, boot bootserver.Boot, change func(*v1alpha1.ServerBootConfiguration) bool) {
	config, err := s.configuration(ctx, boot)
	if err != nil {
		return
	}
	before := config.DeepCopy()
	if !change(config) {
		return
	}
	err = s.Client.Status().Patch(ctx, config, mergepatch.Locked(before))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		ctrl.LoggerFrom(ctx).Error(err, "a condition was not written", "bootConfiguration", boot.Name)
	}
}
