// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	metalv1alpha1 "github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/internal/fieldindex"
	"github.com/metalaw/metalaw/internal/uuids"
	"github.com/metalaw/metalaw/metalprobe"
)

// grant is what a request may speak for.
type grant struct {
	server  *metalv1alpha1.Server
	purpose metalv1alpha1.ProbePurpose
	entry   int64
	// unauthenticated is true where no token was shown and none was asked for.
	unauthenticated bool
	// keyHash is the hash of the key that the agent showed; empty where it showed none.
	keyHash string
}

// noHash is compared with where there is no credential, so that this takes as long.
var noHash = strings.Repeat("0", 2*sha256.Size)

// presented gives the hash of the token that a request shows; shown is false where it has no Authorization header.
func presented(request *http.Request) (hash string, shown bool) {
	header := request.Header.Get("Authorization")
	if header == "" {
		return "", false
	}
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > 512 {
		return "", true
	}
	return metalprobe.HashToken(token), true
}

// authorize finds the server with a system UUID and checks that the request may speak for it. allow says which servers
// need no token; nil: none. live passes the cache by.
func (r *Registry) authorize(request *http.Request, systemUUID string, allow Allow, live bool) (grant, *refusal) {
	key, refused := keyHash(request)
	if refused != nil {
		return grant{}, refused
	}
	g, refused := r.granted(request, systemUUID, allow, live)
	g.keyHash = key
	return g, refused
}

// granted does what authorize does, but for the agent's key.
func (r *Registry) granted(request *http.Request, systemUUID string, allow Allow, live bool) (grant, *refusal) {
	uuid, err := metalprobe.NormalizeUUID(systemUUID)
	if err != nil {
		return grant{}, invalid(err)
	}
	ctx := request.Context()
	hash, shown := presented(request)
	if !shown && allow == nil {
		return grant{}, unauthorized(nil)
	}
	servers, err := r.candidates(ctx, uuid)
	if err != nil {
		return grant{}, failed(err)
	}
	if !shown {
		return anonymous(servers, allow)
	}
	if !live {
		if granted, refused := match(servers, hash); refused == nil {
			r.former.Add(hash, granted.server.UID)
			return granted, nil
		}
	}
	// The credential may be younger than the cache.
	if err := r.refresh(ctx, servers); err != nil {
		return grant{}, failed(err)
	}
	granted, refused := match(servers, hash)
	if refused == nil {
		r.former.Add(hash, granted.server.UID)
		return granted, nil
	}
	if owner, was := r.former.Get(hash); was && refused.server != nil && refused.outcome == OutcomeUnauthorized && owner == refused.server.UID {
		refused = oldEntry(nil) // it is worth no Event: a machine that is left running does this
	}
	return grant{}, refused
}

// candidates finds the servers with a system UUID, in either byte order; the order given comes first.
func (r *Registry) candidates(ctx context.Context, uuid string) ([]metalv1alpha1.Server, error) {
	var found []metalv1alpha1.Server
	for _, form := range uuids.Spellings(uuid) {
		var list metalv1alpha1.ServerList
		if err := r.options.Reader.List(ctx, &list, client.MatchingFields{fieldindex.ServerBySystemUUID: form}); err != nil {
			return nil, fmt.Errorf("finding the server with system UUID %s: %w", form, err)
		}
		found = append(found, list.Items...)
	}
	return found, nil
}

// refresh reads the servers anew. One that is gone, or has another UUID now, matches nothing any more.
func (r *Registry) refresh(ctx context.Context, servers []metalv1alpha1.Server) error {
	for i := range servers {
		var fresh metalv1alpha1.Server
		err := r.options.Live.Get(ctx, client.ObjectKeyFromObject(&servers[i]), &fresh)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("reading server %s: %w", servers[i].Name, err)
		case err != nil || fresh.Spec.SystemUUID != servers[i].Spec.SystemUUID || fresh.UID != servers[i].UID:
			servers[i].Status.Lifecycle = nil
		default:
			servers[i] = fresh
		}
	}
	return nil
}

// match finds the server whose credential the token is.
func match(servers []metalv1alpha1.Server, hash string) (grant, *refusal) {
	var old *refusal
	subtle.ConstantTimeCompare([]byte(noHash), []byte(hash))
	for i := range servers {
		lifecycle := servers[i].Status.Lifecycle
		if lifecycle == nil || lifecycle.Credential == nil || lifecycle.Credential.TokenHash == "" || hash == "" {
			continue
		}
		credential := lifecycle.Credential
		if subtle.ConstantTimeCompare([]byte(credential.TokenHash), []byte(hash)) != 1 {
			continue
		}
		if credential.Entry != lifecycle.Entry {
			old = oldEntry(&servers[i])
			continue
		}
		return grant{server: &servers[i], purpose: credential.Purpose, entry: credential.Entry}, nil
	}
	if old != nil {
		return grant{}, old
	}
	return grant{}, unauthorized(only(servers))
}

// anonymous accepts a request without a token where exactly one server is meant and it is open to that.
func anonymous(servers []metalv1alpha1.Server, allow Allow) (grant, *refusal) {
	server := only(servers)
	if server == nil || server.Status.Lifecycle == nil {
		return grant{}, unauthorized(server)
	}
	switch allowed, err := allow(server); {
	case err != nil:
		return grant{}, policyUnknown(err).about(server)
	case !allowed:
		return grant{}, unauthorized(server)
	}
	return grant{
		server: server, purpose: metalv1alpha1.ProbePurposeProbe, entry: server.Status.Lifecycle.Entry, unauthenticated: true,
	}, nil
}

func only(servers []metalv1alpha1.Server) *metalv1alpha1.Server {
	if len(servers) != 1 {
		return nil
	}
	return &servers[0]
}
