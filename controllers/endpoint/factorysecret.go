// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
)

// seal is what the annotation of a factory account says: whom it was made for, a salt, and the digest of the data with it.
// A secret that is written anew under the same name keeps its annotations, and begins to count its generations again, so
// that only the data itself can tell whether it is what was made.
func seal(uid types.UID, data map[string][]byte) string {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // does not fail
	return sealWith(uid, hex.EncodeToString(salt), data)
}

func sealWith(uid types.UID, salt string, data map[string][]byte) string {
	h := hmac.New(sha256.New, []byte(salt))
	put := func(part []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		put([]byte(key))
		put(data[key])
	}
	return string(uid) + "." + salt + "." + hex.EncodeToString(h.Sum(nil))
}

// asMade says that a secret holds what was made for an endpoint. One whose annotation says less was not made so, as far as
// anybody can tell.
func asMade(secret *v1alpha1.BMCSecret, uid types.UID) bool {
	said := secret.Annotations[v1alpha1.FactoryCredentialsAnnotation]
	parts := strings.Split(said, ".")
	return len(parts) == 3 && parts[0] == string(uid) && said == sealWith(uid, parts[1], secret.Data)
}

// dropSecret deletes the BMCSecret that was made for the endpoint and still holds what it was made with: the factory account
// is known to the policy. Any other may hold the only copy of a password.
func (v *scope) dropSecret(ctx context.Context) error {
	secret, err := v.readSecret(ctx)
	if err != nil || secret == nil || !asMade(secret, v.endpoint.UID) || !secret.DeletionTimestamp.IsZero() {
		return err
	}
	if used, err := v.secretIsUsed(ctx, secret.Name); used || err != nil {
		return err
	}
	// What was looked at is what goes: any change since makes this a conflict.
	err = v.Client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion})
	return wrapped(client.IgnoreNotFound(err), "delete BMCSecret %s", secret.Name)
}

// secretIsUsed says that a BMC which was not made from the endpoint, or a Server, names a BMCSecret. The index answers at
// once where it knows of one; that there is none is read past the cache, which may be behind.
func (v *scope) secretIsUsed(ctx context.Context, name string) (bool, error) {
	var known v1alpha1.BMCList
	if err := v.Client.List(ctx, &known, client.MatchingFields{fieldindex.BMCBySecret: name}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list the BMCs that name BMCSecret %s: %w", name, err)
	}
	if v.namedBy(&known, name) {
		return true, nil
	}
	var bmcs v1alpha1.BMCList
	used, err := pages(ctx, v.Reader, &bmcs, func() bool { return v.namedBy(&bmcs, name) })
	if used || err != nil {
		return used, wrapped(err, "list the BMCs that name BMCSecret %s", name)
	}
	var servers v1alpha1.ServerList
	used, err = pages(ctx, v.Reader, &servers, func() bool {
		return slices.ContainsFunc(servers.Items, func(s v1alpha1.Server) bool {
			return s.Spec.BMC != nil && s.Spec.BMC.BMCSecretRef.Name == name
		})
	})
	return used, wrapped(err, "list the Servers that name BMCSecret %s", name)
}

// namedBy leaves the endpoint's own BMCs out: they are gone by now, and the cache may still show them.
func (v *scope) namedBy(bmcs *v1alpha1.BMCList, secret string) bool {
	return slices.ContainsFunc(bmcs.Items, func(b v1alpha1.BMC) bool {
		return b.Spec.BMCSecretRef.Name == secret && !metav1.IsControlledBy(&b, v.endpoint)
	})
}

// pageSize bounds what one list brings.
const pageSize = 500

// pages reads a list page by page until found says so of one.
func pages(ctx context.Context, reader client.Reader, list client.ObjectList, found func() bool) (bool, error) {
	for next := ""; ; {
		if err := reader.List(ctx, list, client.Limit(pageSize), client.Continue(next)); err != nil {
			return false, err
		}
		if found() {
			return true, nil
		}
		if next = list.GetContinue(); next == "" {
			return false, nil
		}
	}
}

func wrapped(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
