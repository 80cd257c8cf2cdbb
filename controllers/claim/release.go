// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/loop"
	"github.com/metalaw/metalaw/controllers/scheduler"
	"github.com/metalaw/metalaw/internal/counted"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/mergepatch"
	"github.com/metalaw/metalaw/internal/orphaned"
	"github.com/metalaw/metalaw/internal/stored"
	"github.com/metalaw/metalaw/policies"
)

// Finalize implements loop.Scope: it records the claim's end on its server and takes the claim's boot configuration away.
// It waits for nothing else: neither for power, nor for a secret.
func (v *scope) Finalize(ctx context.Context) loop.Progress {
	before := v.facts.claim.DeepCopy()
	retracted := heeded(v.facts.claim)
	err := v.end(ctx)
	var waits *inDoubtError
	switch {
	case err == nil:
		return loop.Holds()
	case errors.As(err, &waits):
		v.condition(v1alpha1.ConditionReady, false, v1alpha1.ReasonServerInDoubt, waits.Error())
		return loop.Waiting(v1alpha1.ReasonServerInDoubt, waits.Error(), doubtAgain)
	}
	if retracted { // the claim stays for another reason now, and the loop writes nothing of what failed
		err = errors.Join(err, client.IgnoreNotFound(v.patchStatus(ctx, before, v.facts.claim)))
	}
	return loop.Broken(err)
}

// end is what is done about a claim's end.
func (v *scope) end(ctx context.Context) error {
	c := v.facts.claim
	var servers []*v1alpha1.Server
	err := v.Scheduler.WithoutBinding(c.UID, func() (err error) {
		if servers, err = v.servers(ctx); err != nil {
			return err
		}
		if err := inDoubt(servers, c); err != nil {
			return err
		}
		for _, server := range servers {
			if err := v.release(ctx, server); err != nil {
				return fmt.Errorf("release server %s: %w", server.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return v.dropBoot(ctx, servers)
}

// servers reads uncached every server that may hold the claim: the one that it names, those that name it, and those
// that record its UID.
func (v *scope) servers(ctx context.Context) ([]*v1alpha1.Server, error) {
	c := v.facts.claim
	found := map[string]*v1alpha1.Server{}
	var naming v1alpha1.ServerList
	err := v.Live.List(ctx, &naming, client.MatchingFields{
		fieldindex.ServerByClaimName: c.Name, fieldindex.ServerByClaimNamespace: c.Namespace})
	if err != nil {
		return nil, fmt.Errorf("find the servers that name the claim: %w", err)
	}
	for i := range naming.Items {
		found[naming.Items[i].Name] = &naming.Items[i]
	}
	var recording v1alpha1.ServerList
	if err := v.Client.List(ctx, &recording, client.MatchingFields{fieldindex.ServerByClaimUID: string(c.UID)}); err != nil {
		return nil, fmt.Errorf("find the servers that record the claim's UID: %w", err)
	}
	names := make([]string, 0, len(recording.Items)+1)
	for i := range recording.Items {
		names = append(names, recording.Items[i].Name)
	}
	if c.Spec.ServerRef != nil {
		names = append(names, c.Spec.ServerRef.Name)
	}
	for _, name := range names {
		if found[name] != nil {
			continue
		}
		server, err := stored.One[v1alpha1.Server](ctx, v.Live, "", name)
		if err != nil {
			return nil, fmt.Errorf("server %s: %w", name, err)
		}
		if server != nil {
			found[name] = server
		}
	}
	all := make([]*v1alpha1.Server, 0, len(found))
	for _, server := range found {
		all = append(all, server)
	}
	return all, nil
}

// release records the claim's end on a server, under the optimistic lock. Without the record nothing would ever be wiped.
// A server that never left Available only loses the reference: nothing was booted, so there is nothing to wipe. A server
// that means another claim is not touched.
func (v *scope) release(ctx context.Context, server *v1alpha1.Server) error {
	c := v.facts.claim
	before := server.DeepCopy()
	if !endBinding(server, c, v.Now(), v.Counted.Now()) {
		return nil
	}
	err := v.Client.Patch(ctx, server, mergepatch.Locked(before))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	logf.FromContext(ctx).Info("released", "claim", c.Namespace+"/"+c.Name, "claimUID", c.UID, "server", server.Name,
		"untouched", server.Spec.ServerClaimRef == nil && before.Spec.ServerClaimRef != nil)
	return nil
}

// endBinding changes a server in memory as the end of a claim asks. It says whether there was anything to change.
func endBinding(server *v1alpha1.Server, c *v1alpha1.ServerClaim, now time.Time, clock counted.Time) bool {
	ours := server.Annotations[v1alpha1.ClaimUIDAnnotation] == string(c.UID)
	switch relation := policies.RelationOf(server, c); {
	case relation == policies.Holds && scheduler.Untouched(server):
		scheduler.ForgetBinding(server)
		return true
	case !ours && relation != policies.Adoptable:
		return false
	case server.Annotations[v1alpha1.ReleasedClaimAnnotation] == string(c.UID):
		return false
	}
	policies.RecordRelease(server, string(c.UID), now, clock)
	if spec := restorable(c, server.Name); spec != "" {
		server.Annotations[v1alpha1.ReleasedSpecAnnotation] = spec
	}
	return true
}

// dropBoot deletes the claim's boot configuration: the one that it owns, or that lost its owner and was its own. One of
// the same name that belongs to another object stays.
func (v *scope) dropBoot(ctx context.Context, servers []*v1alpha1.Server) error {
	dropped, err := v.dropBootOf(ctx, v.Client, servers, true)
	if !dropped { // the cache may be behind
		_, err = v.dropBootOf(ctx, v.Live, servers, false)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("boot configuration: %w", err)
	}
	return nil
}

// dropBootOf deletes the boot configuration as a reader shows it, and says whether it did. From the cache it deletes no other
// version, which may have another owner.
func (v *scope) dropBootOf(ctx context.Context, from client.Reader, servers []*v1alpha1.Server, cached bool) (bool, error) {
	c := v.facts.claim
	var boot v1alpha1.ServerBootConfiguration
	if err := from.Get(ctx, client.ObjectKeyFromObject(c), &boot); err != nil {
		return false, err
	}
	own := metav1.IsControlledBy(&boot, c) || orphaned.Boot(&boot, v1alpha1.BootPurposeClaim, servers...)
	if !own || !boot.DeletionTimestamp.IsZero() {
		return false, nil
	}
	as := client.Preconditions{UID: &boot.UID}
	if cached {
		as.ResourceVersion = &boot.ResourceVersion
	}
	err := v.Client.Delete(ctx, &boot, as)
	return err == nil, err
}
