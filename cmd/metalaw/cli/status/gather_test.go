// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/controllers/fleet/overview"
)

// pages is an API server with servers in pages. It fails a kind with an error of refused, by its list, and forgets the
// place in a list once.
type pages struct {
	servers int
	refused map[string]error
	forgets bool
	asked   []string
}

func (p *pages) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no object is read by itself")
}

func (p *pages) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	kind := fmt.Sprintf("%T", list)
	p.asked = append(p.asked, kind)
	if err := p.refused[kind]; err != nil {
		return err
	}
	servers, is := list.(*v1alpha1.ServerList)
	if !is {
		return nil
	}
	from := 0
	if o.Continue != "" {
		if _, err := fmt.Sscan(o.Continue, &from); err != nil {
			return err
		}
		if p.forgets {
			p.forgets = false
			return apierrors.NewResourceExpired("the place is forgotten")
		}
	}
	until := p.servers
	if o.Limit > 0 {
		until = min(until, from+int(o.Limit))
	}
	for i := range until - from {
		s := v1alpha1.Server{}
		s.Name = fmt.Sprintf("s%05d", from+i)
		s.Status.Processors = make([]v1alpha1.Processor, 1)
		servers.Items = append(servers.Items, s)
	}
	if until < p.servers {
		servers.Continue = fmt.Sprint(until)
	}
	return nil
}

func TestEachKindIsListedInPagesAndNoObjectIsRead(t *testing.T) {
	for name, forgets := range map[string]bool{"in pages": false, "the API server forgets the place": true} {
		t.Run(name, func(t *testing.T) {
			from := &pages{servers: 2*page + 1, forgets: forgets}
			in, err := gather(t.Context(), live{from}, "metalaw-system", nil)
			if err != nil || len(in.Servers) != from.servers || len(in.Unread) > 0 {
				t.Fatalf("%d servers, %v, %v", len(in.Servers), in.Unread, err)
			}
			for i := range in.Servers {
				if want := fmt.Sprintf("s%05d", i); in.Servers[i].Name != want || in.Servers[i].Status.Processors != nil {
					t.Fatalf("got %s, want %s without its hardware", in.Servers[i].Name, want)
				}
			}
			if len(from.asked) != 9 { // three pages of servers, and six kinds with one each
				t.Errorf("asked %d times: %v", len(from.asked), from.asked)
			}
		})
	}
}

func TestWhatCannotBeReadIsTold(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", errors.New(`User "vera" cannot list resource "x"`))
	const servers, leases, revisions = "*v1alpha1.ServerList", "*v1.LeaseList", "*v1alpha1.PolicyRevisionList"
	for name, c := range map[string]struct {
		refused map[string]error
		unread  []string
		fails   bool
	}{
		"everything can be read":            {nil, nil, false},
		"two kinds may not be read":         {map[string]error{leases: forbidden, revisions: forbidden}, []string{overview.Revisions, overview.Leases}, false},
		"the kind is not in the cluster":    {map[string]error{revisions: apierrors.NewNotFound(schema.GroupResource{}, "")}, []string{overview.Revisions}, false},
		"the servers may not be read":       {map[string]error{servers: forbidden}, nil, true},
		"the API server answers with trash": {map[string]error{revisions: errors.New("unexpected end")}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := gather(t.Context(), live{&pages{refused: c.refused}}, "metalaw-system", nil)
			if (err != nil) != c.fails {
				t.Fatalf("error %v", err)
			}
			var unread []string
			for _, u := range in.Unread {
				unread = append(unread, u.Resource)
			}
			if !c.fails && !slices.Equal(unread, c.unread) {
				t.Errorf("unread: %v", unread)
			}
		})
	}
}

func TestAFleetControlOfAnotherNameDoesNotCount(t *testing.T) {
	list := &policyv1alpha1.FleetControlList{Items: make([]policyv1alpha1.FleetControl, 2)}
	list.Items[0].Name = "other"
	if got := controlOf(list); got != nil {
		t.Errorf("got %s", got.Name)
	}
	list.Items[1].Name = policyv1alpha1.FleetControlName
	if got := controlOf(list); got == nil || got.Name != "fleet" {
		t.Errorf("got %v", got)
	}
}
