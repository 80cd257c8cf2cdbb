// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/metalaw/metalaw/controllers/leading"
)

const (
	leaderLease = "metalaw-leader"
	// leaseLasts is how long a renewal counts, renewsFor how long the leader tries to renew before it ends, and renewsEvery how
	// often it renews.
	leaseLasts  = 15 * time.Second
	renewsFor   = 10 * time.Second
	renewsEvery = 2 * time.Second
)

// leaderLock is the lock of the leader election, under an identity that this process knows; nil without leader election.
func (o *options) leaderLock(config *rest.Config) (*resourcelock.LeaseLock, error) {
	if !o.leaderElect {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	config = rest.AddUserAgent(config, "leader-election")
	config.Timeout = renewsFor / 2 // one request that hangs loses no lease
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	lock := &resourcelock.LeaseLock{Client: leases, LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}}
	lock.LeaseMeta.Namespace, lock.LeaseMeta.Name = o.Namespace, leaderLease
	return lock, nil
}

// elect adds the lock to the options of a manager.
func elect(lock *resourcelock.LeaseLock, to *ctrl.Options) {
	if lock == nil {
		return
	}
	to.LeaderElection, to.LeaderElectionReleaseOnCancel, to.LeaderElectionResourceLockInterface = true, true, lock
	to.LeaseDuration, to.RenewDeadline, to.RetryPeriod = new(leaseLasts), new(renewsFor), new(renewsEvery)
}

// leads gives the lock its recorder, and the controllers what fences their writes to BMCs.
func (o *options) leads(mgr ctrl.Manager, lock *resourcelock.LeaseLock) {
	if lock == nil {
		return
	}
	id := lock.LockConfig.Identity
	lock.LockConfig.EventRecorder = mgr.GetEventRecorderFor(id) //nolint:staticcheck // leader election knows no other recorder
	o.Leader = &leading.Leader{Reader: mgr.GetAPIReader(), Lease: types.NamespacedName{Namespace: o.Namespace, Name: leaderLease},
		Identity: id, Lasts: leaseLasts, Exit: func(why string) {
			ctrl.Log.WithName("leader").Error(errors.New(why), "the process ends at once, before its next write")
			fmt.Fprintln(os.Stderr, "error: "+why)
			os.Exit(1)
		}}
}
