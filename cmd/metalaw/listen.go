// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// place is an address that the manager listens on, and the flags that say which.
type place struct {
	flag, address string
}

func (o *options) places() []place {
	all := []place{{"registry-bind-address", o.registryAddress}}
	if o.webhooks {
		all = append(all, place{"webhook-port", net.JoinHostPort(o.webhookHost, strconv.Itoa(o.webhookPort))})
	}
	all = append(all, place{"metrics-bind-address", o.metricsAddress}, place{"pprof-bind-address", o.pprofAddress},
		place{"health-probe-bind-address", o.healthAddress})
	return slices.DeleteFunc(all, func(p place) bool { return p.address == "0" })
}

// checkPlaces takes every address that the manager will listen on, all at once, and lets go of them: their servers start
// beside the controllers, and one that cannot listen would end a manager that reconciles already.
func (o *options) checkPlaces(ctx context.Context) error {
	var config net.ListenConfig
	var wrong []string
	taken := map[string]string{}
	var held []net.Listener
	defer func() {
		for _, listener := range held {
			_ = listener.Close() // whoever cannot listen there later says so
		}
	}()
	for _, p := range o.places() {
		listener, err := config.Listen(ctx, "tcp", p.address)
		if err != nil {
			wrong = append(wrong, p.words(err, taken))
			continue
		}
		held = append(held, listener)
		if _, port, err := net.SplitHostPort(p.address); err == nil && port != "0" {
			taken[port] = p.flag
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return errors.New("nothing was started: " + strings.Join(wrong, "; "))
}

// words say why the manager cannot listen at a place, and what helps.
func (p place) words(err error, taken map[string]string) string {
	cause, remedy := err.Error(), "choose an address of this host"
	if system := new(syscall.Errno); errors.As(err, system) {
		cause = system.Error()
	}
	_, port, _ := net.SplitHostPort(p.address)
	switch other := taken[port]; {
	case errors.Is(err, syscall.EADDRINUSE) && other != "":
		cause, remedy = "--"+other+" has this port already", "give each a port of its own"
	case errors.Is(err, syscall.EADDRINUSE):
		remedy = "end what listens there, or choose another port"
	case errors.Is(err, syscall.EACCES):
		remedy = "choose a port from 1024, or give the manager the right to it"
	}
	return fmt.Sprintf("--%s: cannot listen on %s: %s; %s", p.flag, p.address, cause, remedy)
}

// namespaceLimit is how long the manager waits for an API server that says nothing of its namespace.
const namespaceLimit = 10 * time.Second

// checkNamespace says whether the manager's namespace is there: its lease and its certificates are kept in it. An API
// server that does not answer says nothing about it, and the manager waits for one later on.
func (o *options) checkNamespace(ctx context.Context, api client.Reader) error {
	limited, cancel := context.WithTimeout(ctx, namespaceLimit)
	defer cancel()
	err := api.Get(limited, types.NamespacedName{Name: o.Namespace}, &corev1.Namespace{})
	const remedy = "name the namespace that the manager runs in, such as metalaw-system"
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("nothing was started: --namespace=%q: there is no such namespace; %s, or create it", o.Namespace, remedy)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("nothing was started: --namespace=%q: there is no such namespace, or the manager has no rights in it (%w); "+
			"%s: the Role metalaw-manager there lets it get the namespace", o.Namespace, err, remedy)
	default:
		return nil
	}
}
